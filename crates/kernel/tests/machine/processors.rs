//! Three CPUs: shares, affinity, hotplug.

use std::fs;
use std::thread;
use std::time::Duration;

use libtest_mimic::Failed;
use prorata_kernel::scheduler::{Options, Queues, Scheduler};

use crate::hogs::Hog;
use crate::world::{STRIDE, base, check_shares, hog, hogs, place, received, same, settle};

pub const PER_CPU: Options = Options {
    queues: Queues::Cpu,
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
    check_shares(&scheduler, &shares, 3, 3.0)?;
    let received = scheduler.account(4)?.received_ns - before;
    if received < 2_900_000_000 {
        return Err(format!("the richest received {received} ns").into());
    }
    eprintln!("    {:?}", scheduler.statistics()?);
    // The rich ones go: nothing is left over from what they could not use.
    drop(rich);
    hogs[2..].iter().for_each(|late| late.signal(libc::SIGCONT));
    let shares = [(1, 1.0), (2, 2.0), (5, 2.0), (6, 1.0), (7, 2.0), (8, 2.0)];
    check_shares(&scheduler, &shares, 3, 3.0)
}

pub fn infeasible_in_one_queue() -> Result<(), Failed> {
    infeasible(&STRIDE)
}

pub fn infeasible_in_queues_per_cpu() -> Result<(), Failed> {
    infeasible(&PER_CPU)
}

pub fn bind(hog: &Hog, cpu: usize) {
    bind_to(hog, &[cpu]);
}

fn bind_to(hog: &Hog, cpus: &[usize]) {
    // SAFETY: all bits zero is an empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set lives, and the CPUs are within it.
    unsafe {
        cpus.iter().for_each(|&cpu| libc::CPU_SET(cpu, &mut set));
        libc::sched_setaffinity(hog.pid().cast_signed(), size_of_val(&set), &raw const set);
    }
}

/// Two that are bound to a CPU share it; the third has the others.
pub fn affinity() -> Result<(), Failed> {
    for options in [STRIDE, PER_CPU] {
        let scheduler = Scheduler::load(&options)?;
        let bound = hogs(&scheduler, &[(1, 100), (2, 300)])?;
        let _free = hog(&scheduler, 3, &[base(400)])?;
        bound.iter().for_each(|hog| bind(hog, 0));
        thread::sleep(Duration::from_millis(300));
        let shares = [(1, 1.0), (2, 3.0), (3, 4.0)];
        check_shares(&scheduler, &shares, 2, 3.0)?;
    }
    Ok(())
}

/// A CPU's residents are entitled to more than that CPU. A task that joins them late, or is
/// suddenly worth more, waits no longer because of that.
pub fn newcomer() -> Result<(), Failed> {
    for options in [STRIDE, PER_CPU] {
        let scheduler = Scheduler::load(&options)?;
        let mut bound = Vec::new();
        for node in [1, 2] {
            let hog = hog(&scheduler, node, &[base(300)])?;
            bind(&hog, 0);
            bound.push(hog);
        }
        let _free = hogs(&scheduler, &[(3, 100), (4, 100)])?;
        thread::sleep(Duration::from_secs(3));
        let late = hog(&scheduler, 5, &[base(300)])?;
        bind(&late, 0);
        settle();
        let shares = [(1, 1.0), (2, 1.0), (5, 1.0)];
        check_shares(&scheduler, &shares, 1, 3.0)?;
        scheduler.set_tickets(1, &[base(600)])?;
        let shares = [(1, 2.0), (2, 1.0), (5, 1.0)];
        check_shares(&scheduler, &shares, 1, 3.0)?;
    }
    Ok(())
}

/// Three that may run on two of three CPUs, 3:4:3, and one that is bound to the third.
/// None is entitled to a whole CPU: such a task gets what interrupts leave of that CPU, which
/// is not half of what they leave on both.
pub fn roamers() -> Result<(), Failed> {
    for options in [STRIDE, PER_CPU] {
        let scheduler = Scheduler::load(&options)?;
        // Starting programs take CPU time from earlier ones.
        let hogs: Vec<Hog> = (0..4).map(|_| Hog::start()).collect();
        for (hog, (node, amount)) in hogs.iter().zip([(1, 300), (2, 400), (3, 300), (4, 500)]) {
            bind_to(hog, if node == 4 { &[2] } else { &[0, 1] });
            place(&scheduler, node, &[base(amount)], hog)?;
        }
        settle();
        // How much of a CPU there is beside interrupts differs between CPUs.
        let shares = [(1, 3.0), (2, 4.0), (3, 3.0)];
        let before = scheduler.account(4)?.received_ns;
        check_shares(&scheduler, &shares, 2, 3.0)?;
        let received = scheduler.account(4)?.received_ns - before;
        if received < 1_900_000_000 {
            return Err(format!("the resident received {received} ns").into());
        }
    }
    Ok(())
}

/// Nodes, and the parts that are due to them.
type Shares = Vec<(u32, f64)>;

/// Seven hogs under two packages, each with a queue for its two CPUs, and what is due to
/// each.
fn in_packages() -> Result<(Scheduler, Vec<Hog>, Shares), Failed> {
    let options = Options {
        queues: Queues::Cache,
        ..STRIDE
    };
    let scheduler = Scheduler::load(&options)?;
    same(scheduler.statistics()?.queues, 2)?;
    let mut hogs = Vec::new();
    let mut shares = Vec::new();
    for (node, amount) in (1..).zip([100, 200, 300, 400, 400, 300, 200]) {
        hogs.push(hog(&scheduler, node, &[base(amount)])?);
        shares.push((node, amount as f64));
    }
    settle();
    Ok((scheduler, hogs, shares))
}

/// Each package takes tasks with smaller passes from the other's queue, and no task starves.
pub fn caches() -> Result<(), Failed> {
    let (scheduler, _hogs, shares) = in_packages()?;
    let before = scheduler.statistics()?.steals;
    let nodes: Vec<u32> = shares.iter().map(|share| share.0).collect();
    let received = received(&scheduler, &nodes, Duration::from_secs(3))?;
    let steals = scheduler.statistics()?.steals - before;
    eprintln!("    {steals} steals");
    if steals == 0 {
        return Err("each kept to its own queue".into());
    }
    match received.iter().all(|received_ns| *received_ns > 0.0) {
        true => Ok(()),
        false => Err(format!("received {received:?} ns").into()),
    }
}

/// So shares are those of one queue.
pub fn shares_over_caches() -> Result<(), Failed> {
    let (scheduler, _hogs, shares) = in_packages()?;
    check_shares(&scheduler, &shares, 3, 3.0)
}

/// A CPU goes and comes back. All tasks continue, also those bound to it.
pub fn hotplug() -> Result<(), Failed> {
    const SWITCH: &str = "/sys/devices/system/cpu/cpu1/online";
    for options in [STRIDE, PER_CPU] {
        let scheduler = Scheduler::load(&options)?;
        let mut hogs = Vec::new();
        for node in 1..=6 {
            hogs.push(hog(&scheduler, node, &[base(100)])?);
        }
        // They wait there when it goes.
        hogs[..3].iter().for_each(|hog| bind(hog, 1));
        bind_to(&hogs[3], &[1, 2]);
        settle();
        for online in ["0", "1", "0", "1"] {
            fs::write(SWITCH, online)?;
            let nodes = [1, 2, 3, 4, 5, 6];
            let received = received(&scheduler, &nodes, Duration::from_secs(1))?;
            if received.iter().any(|ns| *ns < 0.1e9) {
                return Err(format!("received {received:?} with {online}").into());
            }
        }
    }
    Ok(())
}
