//! What the observer sees of a thread that sleeps.

use std::thread::{sleep, spawn};
use std::time::Duration;

use libtest_mimic::Failed;
use prorata_kernel::observe::{Observer, Seen, What};
use prorata_kernel::scheduler::Scheduler;

use crate::world::STRIDE;

const NAPS: u64 = 40;
const NAP: Duration = Duration::from_millis(5);

/// What is seen of this process while one of its threads naps.
fn of_naps() -> Result<Seen, Failed> {
    let observer = Observer::load(What {
        process: Some(std::process::id()),
        sleeps: true,
    })?;
    let naps = spawn(|| (0..NAPS).for_each(|_| sleep(NAP)));
    naps.join().map_err(|_| "the thread panicked")?;
    Ok(observer.seen()?)
}

fn check(seen: &Seen) -> Result<(), Failed> {
    let naps = seen
        .sleeps
        .iter()
        .find(|(name, _)| name.contains("nanosleep"));
    let (_, naps) = naps.ok_or_else(|| format!("no naps in {:?}", seen.sleeps))?;
    // A sleep begins after its timer. The median is rounded up to a power of two.
    let least_ns = NAP.as_nanos() as u64 * 9 / 10;
    let right = naps.count == NAPS
        && naps.total_ns >= NAPS * least_ns
        && (least_ns..4 * least_ns).contains(&naps.median_ns())
        && seen.waits.count() >= NAPS
        && seen.switches >= NAPS
        && seen
            .waits
            .quantile_ns(500)
            .is_some_and(|wait_ns| wait_ns > 0);
    match right {
        true => Ok(()),
        false => Err(format!(
            "{naps:?}, {} waits, {} switches",
            seen.waits.count(),
            seen.switches
        )
        .into()),
    }
}

pub fn naps() -> Result<(), Failed> {
    let _scheduler = Scheduler::load(&STRIDE)?;
    check(&of_naps()?)
}
