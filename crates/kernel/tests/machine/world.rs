//! Nodes under a scheduler, and what they received.

use std::thread;
use std::time::Duration;

use libtest_mimic::Failed;
use prorata_kernel::scheduler::{
    BASE, Mechanisms, Options, Policy, Queues, Scheduler, Scope, Ticket,
};

use crate::hogs::Hog;

pub const QUANTUM_NS: u64 = 20_000_000;
/// The most by which a turn lasts too long: the kernel ends turns at its tick.
pub const TICK_NS: u64 = 4_000_000;

pub const STRIDE: Options = Options {
    policy: Policy::Stride,
    quantum_ns: QUANTUM_NS,
    scope: Scope::Given,
    queues: Queues::One,
    hybrid: Mechanisms::NONE,
};

pub const ABBREVIATED: Options = Options {
    hybrid: Mechanisms {
        abbreviated_quanta: true,
        ..Mechanisms::NONE
    },
    ..STRIDE
};

pub const HYBRID: Options = Options {
    hybrid: Mechanisms::ALL,
    ..STRIDE
};

pub const WHOLE: Options = Options {
    scope: Scope::All,
    ..HYBRID
};

pub const fn ticket(currency: u32, amount: u64) -> Ticket {
    Ticket { currency, amount }
}

pub const fn base(amount: u64) -> Ticket {
    ticket(BASE, amount)
}

/// Starts a hog in a node with these tickets.
pub fn hog(scheduler: &Scheduler, node: u32, tickets: &[Ticket]) -> Result<Hog, Failed> {
    let hog = Hog::start();
    place(scheduler, node, tickets, &hog)?;
    Ok(hog)
}

/// Starts a hog in each node with so many base tickets.
pub fn hogs(scheduler: &Scheduler, nodes: &[(u32, u64)]) -> Result<Vec<Hog>, Failed> {
    let hogs = nodes.iter();
    hogs.map(|&(node, amount)| hog(scheduler, node, &[base(amount)]))
        .collect()
}

/// Puts a process in a node with these tickets.
pub fn place(
    scheduler: &Scheduler,
    node: u32,
    tickets: &[Ticket],
    hog: &Hog,
) -> Result<(), Failed> {
    scheduler.set_tickets(node, tickets)?;
    scheduler.give(node, hog.pid())?;
    Ok(())
}

/// Waits until new processes have all that they need: they sleep now and then before.
pub fn settle() {
    thread::sleep(Duration::from_millis(400));
}

/// What each node received during `time`.
pub fn received(scheduler: &Scheduler, nodes: &[u32], time: Duration) -> Result<Vec<f64>, Failed> {
    let read = || -> Result<Vec<u64>, Failed> {
        let received = |&node| Ok(scheduler.account(node)?.received_ns);
        nodes.iter().map(received).collect()
    };
    let before = read()?;
    thread::sleep(time);
    let after = read()?;
    if let Some(failure) = scheduler.failure() {
        return Err(failure.into());
    }
    let received = after
        .iter()
        .zip(before)
        .map(|(after, before)| (after - before) as f64);
    Ok(received.collect())
}

/// Checks that these nodes share what they receive in these proportions, to within `quanta`.
/// Stride scheduling errs by one quantum at either end (1995, 2.1), and an unfinished turn is
/// not charged yet, so three is the least that can be asked for.
pub fn check_shares(
    scheduler: &Scheduler,
    shares: &[(u32, f64)],
    seconds: u64,
    quanta: f64,
) -> Result<(), Failed> {
    let (nodes, shares): (Vec<u32>, Vec<f64>) = shares.iter().copied().unzip();
    let received = received(scheduler, &nodes, Duration::from_secs(seconds))?;
    // The nodes always want to run; the rest of the machine needs some time.
    judge(&received, &shares, quanta, 0.7e9 * seconds as f64)
}

/// Checks that times are at least `least_ns` together, and in these proportions to within
/// `quanta`.
pub fn judge(times: &[f64], shares: &[f64], quanta: f64, least_ns: f64) -> Result<(), Failed> {
    let sum: f64 = times.iter().sum();
    let all: f64 = shares.iter().sum();
    let due: Vec<f64> = shares.iter().map(|share| share / all * sum).collect();
    let tolerance = quanta * (QUANTUM_NS + TICK_NS) as f64;
    let ms =
        |times: &[f64]| -> Vec<f64> { times.iter().map(|ns| (ns / 1e5).round() / 10.0).collect() };
    let found = format!("received {:?} of {:?} ms", ms(times), ms(&due));
    eprintln!("    {found}");
    let mut pairs = times.iter().zip(&due);
    match sum >= least_ns && pairs.all(|(time, due)| (time - due).abs() <= tolerance) {
        true => Ok(()),
        false => Err(found.into()),
    }
}

/// Checks that both are the same.
pub fn same<T: PartialEq + std::fmt::Debug>(found: T, expected: T) -> Result<(), Failed> {
    if found == expected {
        return Ok(());
    }
    Err(format!("{found:?} instead of {expected:?}").into())
}
