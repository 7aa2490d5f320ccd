//! The work of loading the scheduler.

use libbpf_rs::query::ProgInfoIter;
use libtest_mimic::Failed;
use prorata_kernel::scheduler::Scheduler;

use crate::world::STRIDE;

/// The most instructions that the verifier may walk: each costs some 5,000 of the CPU. An
/// unbounded loop, or a function that is walked at each call, exceeds it.
const MOST_WALKED: u32 = 30_000;

pub fn verifier() -> Result<(), Failed> {
    let _scheduler = Scheduler::load(&STRIDE)?;
    let mut all = 0;
    for program in ProgInfoIter::default() {
        let name = program.name.to_string_lossy();
        eprintln!("    {name}: {}", program.verified_insns);
        all += program.verified_insns;
    }
    eprintln!("    {all} instructions were walked");
    if all == 0 || all > MOST_WALKED {
        return Err(format!("{all} instructions were walked").into());
    }
    Ok(())
}
