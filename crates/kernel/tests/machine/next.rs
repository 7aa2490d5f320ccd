//! Tasks that go to the CPU's own queue without waiting in another one (`bpf/next.bpf.h`).

use std::thread;
use std::time::Duration;

use libtest_mimic::Failed;
use prorata_kernel::scheduler::Scheduler;

use crate::hogs::{Hog, used_ns};
use crate::world::{QUANTUM_NS, STRIDE, TICK_NS, base, check_shares, place, settle};

/// A task that yields to another one of its node runs next without a comparison. It still gets
/// no more than that one, however little either uses at a time, also beside a third task that
/// waits in line. The node gets its share beside another node.
pub fn yielding_tasks() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&STRIDE)?;
    let mut hogs = vec![Hog::yields(1), Hog::yields(5)];
    for hog in &hogs {
        place(&scheduler, 1, &[base(300)], hog)?;
    }
    settle();
    check_equal(&hogs)?;
    hogs.push(Hog::start());
    place(&scheduler, 1, &[base(300)], &hogs[2])?;
    settle();
    check_equal(&hogs)?;
    let others = [Hog::yields(1), Hog::bursts(2, 1)];
    for hog in &others {
        place(&scheduler, 2, &[base(100)], hog)?;
    }
    settle();
    let shares = [(1, 3.0), (2, 1.0)];
    check_shares(&scheduler, &shares, 2, 3.0)?;
    check_equal(&hogs)
}

/// A task wakes before each turn ends and runs next, so no `dispatch` looks at the node's line.
/// The node's tasks take turns all the same.
pub fn a_task_wakes_before_each_turn_ends() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&STRIDE)?;
    let hogs = [Hog::start(), Hog::start()];
    for hog in &hogs {
        place(&scheduler, 1, &[base(100)], hog)?;
    }
    let sleeper = Hog::bursts(1, 1);
    place(&scheduler, 2, &[base(100)], &sleeper)?;
    settle();
    check_equal(&hogs)
}

/// Checks that tasks of a node receive the same within two turns and one unfinished turn.
fn check_equal(hogs: &[Hog]) -> Result<(), Failed> {
    let look = || hogs.iter().map(|hog| used_ns(hog.pid()));
    let before: Vec<u64> = look().collect();
    thread::sleep(Duration::from_secs(1));
    let used: Vec<u64> = look().zip(before).map(|(now, then)| now - then).collect();
    eprintln!("    used {used:?} ns");
    let (most, least) = (used.iter().max(), used.iter().min());
    let apart = most.zip(least).map_or(0, |(most, least)| most - least);
    if apart > 3 * (QUANTUM_NS + TICK_NS) {
        return Err(format!("{apart} ns apart: {used:?}").into());
    }
    Ok(())
}
