//! The trace of decisions, replayed against the core.

use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::Failed;
use prorata_kernel::replay::Replay;
use prorata_kernel::scheduler::Scheduler;

use crate::hogs::Hog;
use crate::world::{QUANTUM_NS, STRIDE, TICK_NS, base, hog, place};

pub fn picks() -> Result<(), Failed> {
    let scheduler = Scheduler::load_traced(&STRIDE)?;
    let _hogs = [
        hog(&scheduler, 1, &[base(300)])?,
        hog(&scheduler, 2, &[base(200)])?,
        hog(&scheduler, 3, &[base(100)])?,
    ];
    let sleepers = [Hog::bursts(2, 3), Hog::bursts(30, 20)];
    place(&scheduler, 4, &[base(150)], &sleepers[0])?;
    place(&scheduler, 5, &[base(250)], &sleepers[1])?;
    let mut replay = Replay::new(QUANTUM_NS, TICK_NS);
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(4) {
        thread::sleep(Duration::from_millis(50));
        let trace = scheduler.take_decisions()?;
        if trace.lost > 0 {
            return Err(format!("{} decisions were lost", trace.lost).into());
        }
        for decision in &trace.decisions {
            replay.step(decision)?;
        }
    }
    eprintln!("    {} picks", replay.picks());
    if replay.picks() < 100 {
        return Err(format!("only {} picks", replay.picks()).into());
    }
    Ok(())
}
