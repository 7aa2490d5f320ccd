//! Nice values of clients (1999, 3.4; `bpf/nice.h`).

use std::cell::Cell;
use std::thread::available_parallelism;
use std::time::Duration;

use libtest_mimic::Failed;
use prorata_core::hybrid::{Nice, NiceLaw};
use prorata_kernel::scheduler::{Mechanisms, Options, Scheduler};

use crate::hogs::Hog;
use crate::replay::check_for;
use crate::world::{
    HYBRID, STRIDE, base, check_shares, hog, hogs, place, received, settle, ticket,
};

const NICE: Options = Options {
    hybrid: Mechanisms {
        nice: true,
        ..Mechanisms::NONE
    },
    ..STRIDE
};

/// The default funding of a user.
const FUNDING: u64 = 1_000;

fn renice(hog: &Hog, nice: i32) {
    // SAFETY: takes no pointers.
    let failed = unsafe { libc::setpriority(libc::PRIO_PROCESS, hog.pid(), nice) };
    assert_eq!(failed, 0, "root may do that");
}

fn weight(nice: i8) -> f64 {
    f64::from(NiceLaw::Linux.factor(Nice::new(nice).expect("it is in range")))
}

/// One CPU. A hog of one user at nice 19 beside another user's, with equal funding.
pub fn users() -> Result<(), Failed> {
    let options = Options {
        quantum_ns: 4_000_000,
        ..NICE
    };
    let scheduler = Scheduler::load(&options)?;
    for user in [1, 2] {
        scheduler.set_tickets(user, &[base(FUNDING)])?;
    }
    let niced = hog(&scheduler, 3, &[ticket(1, 100)])?;
    let _other = hog(&scheduler, 4, &[ticket(2, 100)])?;
    renice(&niced, 19);
    settle();
    let specified_ns = |node| Ok::<_, Failed>(scheduler.account(node)?.specified_ns);
    let before = [specified_ns(3)?, specified_ns(4)?];
    let used = received(&scheduler, &[3, 4], Duration::from_secs(20))?;
    let specified = [specified_ns(3)? - before[0], specified_ns(4)? - before[1]];
    let ratio = used[0] / used[1] * 1000.0;
    let due = specified[0] as f64 / specified[1] as f64 * 1000.0;
    eprintln!("    {ratio:.2} : 1000, specified {due:.2} : 1000");
    let expected = weight(19) / weight(0) * 1000.0;
    let fits = |found: f64| (found / expected - 1.0).abs() < 0.05;
    match fits(ratio) && fits(due) {
        true => Ok(()),
        false => Err(format!("{ratio} and {due} : 1000 instead of {expected}").into()),
    }
}

/// Any number of CPUs, with two hogs for each. Half of them go up and down.
pub fn renices() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&NICE)?;
    let cpus = available_parallelism().map_or(1, |cpus| cpus.get() as u32);
    let nodes: Vec<(u32, u64)> = (1..=2 * cpus).map(|node| (node, FUNDING)).collect();
    let hogs = hogs(&scheduler, &nodes)?;
    for nice in [5, -2, 0] {
        for hog in &hogs[..cpus as usize] {
            renice(hog, nice.into());
        }
        settle();
        let share = |node| {
            if node <= cpus {
                weight(nice)
            } else {
                weight(0)
            }
        };
        let shares: Vec<_> = (1..=2 * cpus).map(|node| (node, share(node))).collect();
        check_shares(&scheduler, &shares, 3, 4.0)?;
    }
    Ok(())
}

/// One CPU. Whatever funds a client, at nice 5 it is worth at most 327 base tickets.
pub fn bounds() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&NICE)?;
    let hogs = hogs(&scheduler, &[(1, 500), (2, 5_000), (3, 1_000)])?;
    hogs[..2].iter().for_each(|hog| renice(hog, 5));
    settle();
    let factor = weight(5) / weight(0);
    let shares = [(1, 500.0 * factor), (2, 1_000.0 * factor), (3, 1_000.0)];
    check_shares(&scheduler, &shares, 4, 3.0)?;
    hogs[..2].iter().for_each(|hog| renice(hog, -3));
    settle();
    let factor = weight(-3) / weight(0);
    let shares = [(1, 1_000.0 * factor), (2, 5_000.0 * factor), (3, 1_000.0)];
    check_shares(&scheduler, &shares, 4, 3.0)
}

/// One CPU. A nice task takes nothing from the task beside it, and more of them gain nothing.
pub fn several_tasks() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&NICE)?;
    let mut own = hogs(&scheduler, &[(1, FUNDING)])?;
    let _other = hog(&scheduler, 2, &[base(FUNDING)])?;
    let mut niced = Vec::new();
    for _ in 0..3 {
        let hog = Hog::start();
        renice(&hog, 10);
        place(&scheduler, 1, &[base(FUNDING)], &hog)?;
        niced.push(hog);
    }
    settle();
    check_shares(&scheduler, &[(1, 1.0), (2, 1.0)], 3, 4.0)?;
    own.clear();
    settle();
    let shares = [(1, weight(10)), (2, weight(0))];
    check_shares(&scheduler, &shares, 3, 3.0)
}

/// Without the mechanism a client is worth what it is funded with, and so is a control group.
pub fn off() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&STRIDE)?;
    let hogs = hogs(&scheduler, &[(1, FUNDING), (2, FUNDING)])?;
    renice(&hogs[0], 19);
    settle();
    check_shares(&scheduler, &[(1, 1.0), (2, 1.0)], 2, 3.0)
}

/// Programs of all sorts go up and down while each pick is judged.
pub fn picks() -> Result<(), Failed> {
    for options in [NICE, HYBRID] {
        let scheduler = Scheduler::load_traced(&options)?;
        let mut programs = hogs(&scheduler, &[(1, 300), (2, 2_000), (3, 1_000)])?;
        for (node, sleeper) in [(1, Hog::bursts(2, 3)), (4, Hog::bursts(30, 20))] {
            place(&scheduler, node, &[base(250)], &sleeper)?;
            programs.push(sleeper);
        }
        settle();
        let turns = Cell::new(0);
        check_for(&scheduler, Duration::from_secs(4), || {
            let turn = turns.replace(turns.get() + 3);
            let nice = [0, 5, 19, -4, 1][turn % 5];
            renice(&programs[turn % programs.len()], nice);
        })?;
    }
    Ok(())
}
