//! What loading costs.

use libbpf_rs::query::ProgInfoIter;
use libtest_mimic::Failed;
use prorata_kernel::scheduler::Scheduler;

use crate::world::STRIDE;

/// Instructions that the verifier walks: loading takes some 2 us for each. An
/// unbounded loop or a function that is walked at each call shows here.
const MOST_WALKED: u32 = 100_000;

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
