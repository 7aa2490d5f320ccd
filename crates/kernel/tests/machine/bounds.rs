//! Bounds on waits, and shares that no number of tasks can take.

use std::thread;
use std::time::Duration;

use libtest_mimic::Failed;
use prorata_kernel::scheduler::Scheduler;

use crate::hogs::{Hog, wait_until};
use crate::world::{STRIDE, base, check_shares, hog, place};

/// A client with one ticket beside ten thousand gets a turn in eight seconds, more than its
/// share. Otherwise the kernel would unload the scheduler for starving it.
pub fn weights() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&STRIDE)?;
    let _rich = hog(&scheduler, 1, &[base(10_000)])?;
    let _poor = hog(&scheduler, 2, &[base(1)])?;
    let _none = hog(&scheduler, 3, &[])?;
    let before = [2, 3].map(|node| scheduler.account(node).map(|a| a.received_ns));
    thread::sleep(Duration::from_secs(10));
    for (node, before) in [2, 3].into_iter().zip(before) {
        let received = scheduler.account(node)?.received_ns - before?;
        if received == 0 || received > 100_000_000 {
            return Err(format!("node {node} received {received} ns").into());
        }
    }
    Ok(())
}

/// Three hundred processes of one client start at once, beside one process of another client
/// with as many tickets.
pub fn storm() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&STRIDE)?;
    let herd = Hog::herd(300);
    place(&scheduler, 1, &[base(100)], &herd)?;
    let _hog = hog(&scheduler, 2, &[base(100)])?;
    // Processes forked before the herd was given do not belong to it.
    let born = || {
        scheduler
            .account(1)
            .is_ok_and(|account| account.tasks > 100)
    };
    if !wait_until(born) {
        return Err(format!("{:?}", scheduler.account(1)).into());
    }
    herd.signal(libc::SIGUSR1);
    thread::sleep(Duration::from_millis(200));
    check_shares(&scheduler, &[(1, 1.0), (2, 1.0)], 3, 4.0)
}
