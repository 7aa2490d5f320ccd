//! The work of loading the scheduler.

use libbpf_rs::query::ProgInfoIter;
use libtest_mimic::Failed;
use prorata_kernel::scheduler::{Options, Scheduler};

use crate::world::{HYBRID, STRIDE};

/// The most instructions that the verifier may walk: each costs some 5,000 of the CPU. An
/// unbounded loop, or a function that is walked at each call, exceeds it.
const MOST_WALKED: u32 = 55_000;
/// The same with all that early tasks need.
const MOST_WALKED_OF_HYBRID: u32 = 90_000;

pub fn verifier() -> Result<(), Failed> {
    walk(&STRIDE, MOST_WALKED)?;
    walk(&HYBRID, MOST_WALKED_OF_HYBRID)
}

fn walk(options: &Options, most: u32) -> Result<(), Failed> {
    let _scheduler = Scheduler::load(options)?;
    let mut all = 0;
    for program in ProgInfoIter::default() {
        let name = program.name.to_string_lossy();
        eprintln!("    {name}: {}", program.verified_insns);
        all += program.verified_insns;
    }
    eprintln!("    {all} instructions were walked");
    if all == 0 || all > most {
        return Err(format!("{all} instructions were walked").into());
    }
    Ok(())
}
