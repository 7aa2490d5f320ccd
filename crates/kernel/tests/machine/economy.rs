//! Currencies, activation, inflation, transfer.

use std::thread;
use std::time::Duration;

use libtest_mimic::Failed;
use prorata_kernel::KernelError;
use prorata_kernel::scheduler::{BASE, CGROUP_NODES, MAX_DEPTH, Scheduler};

use crate::hogs::{Hog, wait_until};
use crate::world::{STRIDE, base, check_shares, hog, hogs, place, same, settle, ticket};

/// The graph of 1994, Figure 3, with its first thread blocked and then not.
pub fn figure_3() -> Result<(), Failed> {
    const ALICE: u32 = 1;
    const BOB: u32 = 2;
    const TASKS: [u32; 3] = [3, 4, 5];
    let scheduler = Scheduler::load(&STRIDE)?;
    scheduler.set_tickets(ALICE, &[base(1000)])?;
    scheduler.set_tickets(BOB, &[base(2000)])?;
    scheduler.set_tickets(TASKS[0], &[ticket(ALICE, 100)])?;
    scheduler.set_tickets(TASKS[1], &[ticket(ALICE, 200)])?;
    scheduler.set_tickets(TASKS[2], &[ticket(BOB, 100)])?;
    let threads = [
        hog(&scheduler, 11, &[ticket(TASKS[0], 100)])?,
        hog(&scheduler, 12, &[ticket(TASKS[1], 200)])?,
        hog(&scheduler, 13, &[ticket(TASKS[1], 300)])?,
        hog(&scheduler, 14, &[ticket(TASKS[2], 100)])?,
    ];
    threads[0].signal(libc::SIGSTOP);
    settle();
    let blocked = [(11, 0.0), (12, 400.0), (13, 600.0), (14, 2000.0)];
    check_shares(&scheduler, &blocked, 3, 3.0)?;
    threads[0].signal(libc::SIGCONT);
    settle();
    let all = [
        (11, 1000.0 / 3.0),
        (12, 800.0 / 3.0),
        (13, 400.0),
        (14, 2000.0),
    ];
    check_shares(&scheduler, &all, 3, 3.0)?;
    same(scheduler.statistics()?.active_base, 3000)?;
    for thread in &threads {
        thread.signal(libc::SIGSTOP);
    }
    // No task competes, so no amount is active.
    wait_for_active_base(&scheduler, 0)
}

/// Inflation, deflation, and a ticket that moves.
pub fn changes() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&STRIDE)?;
    let _hogs = hogs(&scheduler, &[(1, 100), (2, 100)])?;
    settle();
    check_shares(&scheduler, &[(1, 1.0), (2, 1.0)], 2, 3.0)?;
    scheduler.set_tickets(1, &[base(400)])?;
    check_shares(&scheduler, &[(1, 4.0), (2, 1.0)], 2, 3.0)?;
    // A ticket of 300 is transferred.
    scheduler.set_tickets(1, &[base(100)])?;
    scheduler.set_tickets(2, &[base(100), base(300)])?;
    check_shares(&scheduler, &[(1, 1.0), (2, 4.0)], 2, 3.0)?;
    // From almost nothing to almost everything: not after its long wait.
    scheduler.set_tickets(1, &[base(1)])?;
    scheduler.set_tickets(2, &[base(10_000)])?;
    thread::sleep(Duration::from_millis(500));
    scheduler.set_tickets(1, &[base(1_000_000)])?;
    check_shares(&scheduler, &[(1, 100.0), (2, 1.0)], 1, 3.0)
}

/// A rich client blocks; its poor sibling gets what it leaves, at once.
pub fn a_blocked_client_s_tickets() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&STRIDE)?;
    scheduler.set_tickets(1, &[base(100)])?;
    let rich = hog(&scheduler, 2, &[ticket(1, 1000)])?;
    let _poor = hog(&scheduler, 3, &[ticket(1, 1)])?;
    let _other = hog(&scheduler, 4, &[base(100)])?;
    settle();
    check_shares(&scheduler, &[(2, 1000.0), (3, 1.0), (4, 1001.0)], 1, 3.0)?;
    rich.signal(libc::SIGSTOP);
    check_shares(&scheduler, &[(2, 0.0), (3, 1.0), (4, 1.0)], 1, 3.0)
}

/// The longest chain of currencies, beside a short one, and one longer; in the last of
/// the nodes, too.
pub fn depth() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&STRIDE)?;
    scheduler.set_tickets(1, &[base(300)])?;
    for node in 2..MAX_DEPTH {
        scheduler.set_tickets(node, &[ticket(node - 1, 7), ticket(BASE, 1)])?;
    }
    let deepest = MAX_DEPTH;
    let _deep = hog(&scheduler, deepest, &[ticket(deepest - 1, 1000)])?;
    let last = CGROUP_NODES - 1;
    let _flat = hog(&scheduler, last, &[base(150)])?;
    // 300 at the top, and 1 from each currency on the way.
    let deep = 300.0 + f64::from(MAX_DEPTH - 2);
    check_shares(&scheduler, &[(deepest, deep), (last, 150.0)], 3, 3.0)?;
    match scheduler.set_tickets(200, &[ticket(deepest, 1)]) {
        Err(KernelError::TooDeep { node: 200 }) => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}

/// After much blocking, waking and changing, every amount is as it should be.
pub fn conservation() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&STRIDE)?;
    scheduler.set_tickets(1, &[base(1000)])?;
    scheduler.set_tickets(2, &[ticket(1, 10), base(100)])?;
    let mut hogs = Vec::new();
    for index in 0..12 {
        let hog = Hog::bursts(1 + index % 3, 1 + index % 4);
        let currency = index as u32 % 3;
        place(&scheduler, 10 + index as u32, &[ticket(currency, 10)], &hog)?;
        hogs.push(hog);
    }
    for round in 0..200 {
        let node = 10 + round % 12;
        let currency = (round / 12) % 3;
        scheduler.set_tickets(node, &[ticket(currency, 1 + u64::from(round))])?;
        thread::sleep(Duration::from_millis(5));
    }
    for hog in &hogs {
        hog.signal(libc::SIGSTOP);
    }
    wait_for_active_base(&scheduler, 0)?;
    // One of each currency wakes.
    for (index, hog) in hogs.iter().enumerate().take(3) {
        let node = 10 + index as u32;
        scheduler.set_tickets(node, &[ticket(index as u32, 10)])?;
        hog.signal(libc::SIGCONT);
    }
    // 10 of the base themselves, 1000 through node 1, 100 through node 2.
    wait_for_active_base(&scheduler, 1110)?;
    drop(hogs);
    let gone = || (10..22).all(|node| scheduler.account(node).is_ok_and(|a| a.tasks == 0));
    same(wait_until(gone), true)?;
    let mut exited = scheduler.take_exited();
    exited.sort_unstable();
    exited.dedup();
    same(exited, (10..22).collect())
}

fn wait_for_active_base(scheduler: &Scheduler, tickets: u64) -> Result<(), Failed> {
    let is_so = || {
        let totals = scheduler.statistics();
        totals.is_ok_and(|totals| totals.active_base == tickets)
    };
    same(wait_until(is_so), true)
}
