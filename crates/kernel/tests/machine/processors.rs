//! Three CPUs: shares, affinity, hotplug.

use std::fs;
use std::thread;
use std::time::Duration;

use libtest_mimic::Failed;
use prorata_kernel::scheduler::{Options, Queues, Scheduler};

use crate::hogs::Hog;
use crate::world::{STRIDE, base, check_shares, hog, place, received, settle};

pub const PER_CPU: Options = Options {
    queues: Queues::PerCpu,
    ..STRIDE
};

/// Hogs at 1:2:3:4 on three CPUs: the last is entitled to more than one, so to
/// one; the others share the other two 1:2:3, so that the third has one, too.
fn infeasible(options: &Options) -> Result<(), Failed> {
    let scheduler = Scheduler::load(options)?;
    let mut rich = Vec::new();
    let mut hogs = Vec::new();
    for (node, amount) in [(1, 100), (2, 200), (3, 300), (4, 400)] {
        let list = if amount > 200 { &mut rich } else { &mut hogs };
        list.push(hog(&scheduler, node, &[base(amount)])?);
    }
    // These come in later, when they have all that they need.
    for (node, amount) in [(5, 200), (6, 100), (7, 200), (8, 200)] {
        let late = Hog::start();
        place(&scheduler, node, &[base(amount)], &late)?;
        hogs.push(late);
    }
    settle();
    hogs[2..].iter().for_each(|late| late.signal(libc::SIGSTOP));
    settle();
    // How much of a CPU there is beside interrupts differs between CPUs, so what
    // the last one has is compared with the time that there was.
    let before = scheduler.account(4)?.received_ns;
    let shares = [(1, 1.0), (2, 2.0), (3, 3.0)];
    check_shares(&scheduler, &shares, Duration::from_secs(3), 5.0)?;
    let received = scheduler.account(4)?.received_ns - before;
    if received < 2_700_000_000 {
        return Err(format!("the richest received {received} ns").into());
    }
    eprintln!("    {:?}", scheduler.statistics()?);
    // The rich ones go: nothing is left over from what they could not use.
    drop(rich);
    hogs[2..].iter().for_each(|late| late.signal(libc::SIGCONT));
    let shares = [(1, 1.0), (2, 2.0), (5, 2.0), (6, 1.0), (7, 2.0), (8, 2.0)];
    check_shares(&scheduler, &shares, Duration::from_secs(3), 5.0)
}

pub fn infeasible_in_one_queue() -> Result<(), Failed> {
    infeasible(&STRIDE)
}

pub fn infeasible_in_queues_per_cpu() -> Result<(), Failed> {
    infeasible(&PER_CPU)
}

pub fn bind(hog: &Hog, cpu: usize) {
    // SAFETY: all bits zero is an empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set lives, and the CPU is within it.
    unsafe {
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(hog.pid().cast_signed(), size_of_val(&set), &raw const set);
    }
}

/// Two that are bound to a CPU share it; the third has the others.
pub fn affinity() -> Result<(), Failed> {
    for options in [STRIDE, PER_CPU] {
        let scheduler = Scheduler::load(&options)?;
        let bound = [
            hog(&scheduler, 1, &[base(100)])?,
            hog(&scheduler, 2, &[base(300)])?,
        ];
        let _free = hog(&scheduler, 3, &[base(400)])?;
        bound.iter().for_each(|hog| bind(hog, 0));
        thread::sleep(Duration::from_millis(300));
        let shares = [(1, 1.0), (2, 3.0), (3, 4.0)];
        check_shares(&scheduler, &shares, Duration::from_secs(2), 4.0)?;
    }
    Ok(())
}

/// A CPU goes and comes back: everybody runs on.
pub fn hotplug() -> Result<(), Failed> {
    const SWITCH: &str = "/sys/devices/system/cpu/cpu1/online";
    for options in [STRIDE, PER_CPU] {
        let scheduler = Scheduler::load(&options)?;
        let mut hogs = Vec::new();
        for node in 1..=4 {
            hogs.push(hog(&scheduler, node, &[base(100)])?);
        }
        for online in ["0", "1"] {
            fs::write(SWITCH, online)?;
            let nodes = [1, 2, 3, 4];
            let received = received(&scheduler, &nodes, Duration::from_secs(1))?;
            if received.iter().any(|ns| *ns < 0.1e9) {
                return Err(format!("received {received:?} with {online}").into());
            }
        }
    }
    Ok(())
}
