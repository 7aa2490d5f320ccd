//! Shares of those who always want to run, and of those who do not.

use std::time::{Duration, Instant};

use libtest_mimic::Failed;
use prorata_kernel::scheduler::{Options, Policy, Scheduler};

use crate::hogs::Hog;
use crate::world::{QUANTUM_NS, STRIDE, base, check_shares, hog, place, settle};

pub fn three_hogs() -> Result<(), Failed> {
    let begin = Instant::now();
    let scheduler = Scheduler::load(&STRIDE)?;
    eprintln!("    loaded in {:?}", begin.elapsed());
    let _hogs = [
        hog(&scheduler, 1, &[base(300)])?,
        hog(&scheduler, 2, &[base(200)])?,
        hog(&scheduler, 3, &[base(100)])?,
    ];
    settle();
    let shares = [(1, 3.0), (2, 2.0), (3, 1.0)];
    check_shares(&scheduler, &shares, Duration::from_secs(3), 3.0)?;
    // What was due to them is worked out otherwise: from what was dispensed.
    for node in 1..=3 {
        let account = scheduler.account(node)?;
        let error_ns = account.received_ns.abs_diff(account.specified_ns);
        let turns: u64 = account.waits.iter().sum();
        let counted = account.tasks == 1 && account.dispatches == turns && turns > 10;
        if error_ns > 3 * QUANTUM_NS || !counted {
            return Err(format!("node {node}: {account:?}").into());
        }
    }
    Ok(())
}

/// At 4 ms a lottery: of 750, one of probability p wins 750 p, with a standard
/// deviation below 14.
pub fn lottery() -> Result<(), Failed> {
    let options = Options {
        policy: Policy::Lottery,
        quantum_ns: 4_000_000,
        ..STRIDE
    };
    let scheduler = Scheduler::load(&options)?;
    let _hogs = [
        hog(&scheduler, 1, &[base(300)])?,
        hog(&scheduler, 2, &[base(200)])?,
        hog(&scheduler, 3, &[base(100)])?,
    ];
    settle();
    let shares = [(1, 3.0), (2, 2.0), (3, 1.0)];
    check_shares(&scheduler, &shares, Duration::from_secs(3), 10.0)?;
    // Live, and back.
    scheduler.set_policy(Policy::Stride)?;
    scheduler.set_quantum_ns(20_000_000)?;
    check_shares(&scheduler, &shares, Duration::from_secs(2), 3.0)?;
    scheduler.set_policy(Policy::Lottery)?;
    check_shares(&scheduler, &shares, Duration::from_secs(2), 25.0)
}

/// Who uses a fifth of its quantum and yields gets as much as a hog with as
/// many tickets (1994, 3.4).
pub fn compensation() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&STRIDE)?;
    let bursts = Hog::yields(4);
    place(&scheduler, 1, &[base(100)], &bursts)?;
    let _hog = hog(&scheduler, 2, &[base(100)])?;
    settle();
    check_shares(
        &scheduler,
        &[(1, 1.0), (2, 1.0)],
        Duration::from_secs(3),
        3.0,
    )
}

/// Who sleeps in between, too, where it may end the other's quantum; else it
/// would have at most the 4 ms in 24 that the other leaves it.
pub fn abbreviated_quanta() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&STRIDE)?;
    scheduler.set_abbreviated(true)?;
    let bursts = Hog::bursts(4, 1);
    place(&scheduler, 1, &[base(100)], &bursts)?;
    let _hog = hog(&scheduler, 2, &[base(100)])?;
    settle();
    check_shares(
        &scheduler,
        &[(1, 1.0), (2, 1.0)],
        Duration::from_secs(3),
        3.0,
    )
}

/// Who runs for ten quanta and then sleeps for as long comes back with what it
/// owes: it cannot have more than its half of the time in which it wants to
/// run.
pub fn sleeping_sheds_no_debt() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&STRIDE)?;
    let sleeper = Hog::bursts(200, 100);
    place(&scheduler, 1, &[base(100)], &sleeper)?;
    let _hog = hog(&scheduler, 2, &[base(100)])?;
    settle();
    // 200 ms of use take 400 ms; 100 ms of sleep in 500 are the hog's: 2 to 3.
    check_shares(
        &scheduler,
        &[(1, 2.0), (2, 3.0)],
        Duration::from_secs(4),
        4.0,
    )
}

/// Who forks one short process after another gets what it is due.
pub fn short_processes() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&STRIDE)?;
    let relay = Hog::relay(5);
    place(&scheduler, 1, &[base(100)], &relay)?;
    let _hog = hog(&scheduler, 2, &[base(100)])?;
    settle();
    check_shares(
        &scheduler,
        &[(1, 1.0), (2, 1.0)],
        Duration::from_secs(3),
        4.0,
    )
}
