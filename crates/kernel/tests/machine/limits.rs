//! Limits of CPU time (`bpf/limits.bpf.h`). All checks hold on any number of CPUs.

use std::ops::RangeInclusive;
use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::Failed;
use prorata_core::cpu_limit::CpuLimit;
use prorata_kernel::KernelError;
use prorata_kernel::scheduler::{BASE, Options, Policy, Queues, Scheduler, possible_cpus};

use crate::hogs::{Hog, used_ns, wait_until};
use crate::processors::bind;
use crate::world::{
    HYBRID, QUANTUM_NS, STRIDE, TICK_NS, base, check_shares, hog, hogs, place, received, same,
    settle, ticket,
};

/// A full allowance is what the limit is worth in this time.
const PERIOD_NS: f64 = 100e6;

const PER_CPU_HYBRID: Options = Options {
    queues: Queues::Cpu,
    ..HYBRID
};

fn percent(percent: u32) -> Option<CpuLimit> {
    CpuLimit::from_thousandths(percent * 10)
}

/// For how long the machine stood still meanwhile. Its clock goes on while its host is busy with other
/// programs, if it idles at the moment, and then the ends of pauses are late.
fn stalls(time: Duration) -> Duration {
    const STEP: Duration = Duration::from_millis(10);
    let begin = Instant::now();
    let mut stalled = Duration::ZERO;
    while begin.elapsed() < time {
        let begin = Instant::now();
        thread::sleep(STEP);
        let late = begin.elapsed().saturating_sub(STEP);
        if late > STEP {
            stalled += late;
        }
    }
    stalled
}

/// Checks that a client that wants more receives its limit: to within a full allowance, and what
/// was used too late at either end, at most a tick on each CPU.
pub fn check_limit(
    scheduler: &Scheduler,
    node: u32,
    percent: u32,
    seconds: u64,
) -> Result<(), Failed> {
    let time = Duration::from_secs(seconds);
    let began = Instant::now();
    let stalls = thread::spawn(move || stalls(time));
    let used_ns = received(scheduler, &[node], time)?[0];
    let elapsed_ns = began.elapsed().as_nanos() as f64;
    let stalled = stalls.join().expect("it does not panic");
    let rate = f64::from(percent) / 100.0;
    let least_ns = rate * time.saturating_sub(stalled).as_nanos() as f64;
    let late_ns = 2.0 * TICK_NS as f64 * f64::from(possible_cpus());
    let slack_ns = rate * PERIOD_NS + late_ns;
    eprintln!(
        "    received {:.1} of {:.1} ms, {:.2} % of a CPU; stalled for {stalled:?}",
        used_ns / 1e6,
        rate * elapsed_ns / 1e6,
        100.0 * used_ns / elapsed_ns
    );
    if used_ns < least_ns - slack_ns || used_ns > rate * elapsed_ns + slack_ns {
        return Err(format!("received {used_ns} ns at {percent} % in {elapsed_ns} ns").into());
    }
    Ok(())
}

/// Alone, although its CPU idles. What it is due is what it receives.
pub fn alone() -> Result<(), Failed> {
    for options in [STRIDE, PER_CPU_HYBRID] {
        let scheduler = Scheduler::load(&options)?;
        let _hog = hog(&scheduler, 1, &[base(100)])?;
        scheduler.set_limit(1, percent(30))?;
        settle();
        let before = scheduler.account(1)?;
        check_limit(&scheduler, 1, 30, 4)?;
        let after = scheduler.account(1)?;
        let received = after.received_ns - before.received_ns;
        let specified = after.specified_ns - before.specified_ns;
        // An unfinished turn at either end is not charged yet.
        if received.abs_diff(specified) > 2 * (QUANTUM_NS + TICK_NS) {
            return Err(format!("received {received}, specified {specified}").into());
        }
    }
    Ok(())
}

/// Half of the tickets, but a quarter of a CPU. Others get the rest in proportion, and what
/// is due to all says the same. Without the limit shares are as ever.
pub fn beside_hogs() -> Result<(), Failed> {
    let cpus = u64::from(possible_cpus());
    let scheduler = Scheduler::load(&HYBRID)?;
    let _limited = hog(&scheduler, 1, &[base(400)])?;
    let others: Vec<u32> = (2..=2 * cpus as u32 + 1).collect();
    let nodes: Vec<(u32, u64)> = others.iter().map(|&node| (node, 200 / cpus)).collect();
    let _hogs = hogs(&scheduler, &nodes)?;
    scheduler.set_limit(1, percent(25))?;
    settle();
    let before = accounts(&scheduler, &others)?;
    check_limit(&scheduler, 1, 25, 3)?;
    let rest = (cpus as f64 - 0.25) / others.len() as f64;
    let mut shares = vec![(1, 0.25)];
    shares.extend(others.iter().map(|&node| (node, rest)));
    // A full allowance is more than a quantum.
    check_shares(&scheduler, &shares, 3, 4.0)?;
    for (before, after) in before.into_iter().zip(accounts(&scheduler, &others)?) {
        let (received, specified) = (after.0 - before.0, after.1 - before.1);
        if received.abs_diff(specified) > 120_000_000 {
            return Err(format!("received {received}, specified {specified}").into());
        }
    }
    scheduler.set_limit(1, None)?;
    settle();
    let most = 1.0_f64.min(cpus as f64 / 2.0);
    let rest = (cpus as f64 - most) / others.len() as f64;
    let mut shares = vec![(1, most)];
    shares.extend(others.iter().map(|&node| (node, rest)));
    check_shares(&scheduler, &shares, 3, 4.0)
}

/// What nodes received, and what was due to them.
fn accounts(scheduler: &Scheduler, nodes: &[u32]) -> Result<Vec<(u64, u64)>, Failed> {
    let account = |&node| {
        let account = scheduler.account(node)?;
        Ok((account.received_ns, account.specified_ns))
    };
    nodes.iter().map(account).collect()
}

/// The tasks of a client count together, also those that sleep, yield, wake one another or are
/// bound. In a currency, too.
pub fn tasks_together() -> Result<(), Failed> {
    for options in [STRIDE, PER_CPU_HYBRID] {
        let scheduler = Scheduler::load(&options)?;
        scheduler.set_tickets(1, &[base(300)])?;
        scheduler.set_tickets(2, &[ticket(1, 7)])?;
        let tasks = [
            Hog::start(),
            Hog::start(),
            Hog::bursts(2, 3),
            Hog::yields(1),
            Hog::relay(5),
        ];
        bind(&tasks[1], 0);
        for task in &tasks {
            scheduler.give(2, task.pid())?;
        }
        let _other = hog(&scheduler, 3, &[base(100)])?;
        scheduler.set_limit(2, percent(40))?;
        settle();
        check_limit(&scheduler, 2, 40, 3)?;
    }
    Ok(())
}

/// Several CPUs for one client, and no more than its limit. All of its tasks get turns.
pub fn more_than_a_cpu() -> Result<(), Failed> {
    let cpus = possible_cpus();
    let max = 100 * cpus - 50;
    for options in [STRIDE, PER_CPU_HYBRID] {
        let scheduler = Scheduler::load(&options)?;
        let tasks: Vec<Hog> = (0..=cpus).map(|_| Hog::start()).collect();
        scheduler.set_tickets(1, &[base(100)])?;
        scheduler.set_limit(1, percent(max))?;
        for task in &tasks {
            scheduler.give(1, task.pid())?;
        }
        settle();
        let before: Vec<u64> = tasks.iter().map(|task| used_ns(task.pid())).collect();
        check_limit(&scheduler, 1, max, 3)?;
        let used = tasks.iter().zip(before);
        let used: Vec<u64> = used
            .map(|(task, before)| used_ns(task.pid()) - before)
            .collect();
        let fair = 3e9 * f64::from(max) / 100.0 / f64::from(cpus + 1);
        if used.iter().any(|used| (*used as f64) < fair / 2.0) {
            return Err(format!("used {used:?}, {fair} each").into());
        }
    }
    Ok(())
}

/// A lottery gives no more either.
pub fn lottery() -> Result<(), Failed> {
    let options = Options {
        policy: Policy::Lottery,
        ..STRIDE
    };
    let scheduler = Scheduler::load(&options)?;
    let _hog = hog(&scheduler, 1, &[base(100)])?;
    scheduler.set_limit(1, percent(30))?;
    settle();
    check_limit(&scheduler, 1, 30, 3)
}

/// Waits until a client pauses.
fn wait_for_pause(scheduler: &Scheduler, node: u32) -> Result<(), Failed> {
    let pauses = || scheduler.account(node).is_ok_and(|account| account.pauses);
    match wait_until(pauses) {
        true => Ok(()),
        false => Err(format!("node {node} never pauses").into()),
    }
}

/// A client that is over its smallest limit for many seconds, with these tasks.
fn deep_in_debt(scheduler: &Scheduler, tasks: &[Hog]) -> Result<(), Failed> {
    scheduler.set_tickets(1, &[base(100)])?;
    for task in tasks {
        scheduler.give(1, task.pid())?;
    }
    settle();
    scheduler.set_limit(1, Some(CpuLimit::LEAST))?;
    wait_for_pause(scheduler, 1)
}

/// Checks that so much is received soon, long before a debt at the smallest limit is paid.
fn check_runs(scheduler: &Scheduler, node: u32) -> Result<(), Failed> {
    let received = || {
        scheduler
            .account(node)
            .map_or(0, |account| account.received_ns)
    };
    let before = received();
    match wait_until(|| received() > before + 500_000_000) {
        true => Ok(()),
        false => Err("it does not run".into()),
    }
}

/// A limit that ends or rises during a pause lets the client run.
pub fn changes_during_a_pause() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&PER_CPU_HYBRID)?;
    let tasks = [Hog::start(), Hog::start()];
    bind(&tasks[1], 0);
    deep_in_debt(&scheduler, &tasks)?;
    scheduler.set_limit(1, None)?;
    check_runs(&scheduler, 1)?;
    same(scheduler.account(1)?.pauses, false)?;
    scheduler.set_limit(1, Some(CpuLimit::LEAST))?;
    wait_for_pause(&scheduler, 1)?;
    scheduler.set_limit(1, percent(90))?;
    check_runs(&scheduler, 1)?;
    check_limit(&scheduler, 1, 90, 2)
}

/// Killed tasks of a pausing client end at once, and so does a client that is removed.
pub fn ends_during_a_pause() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&PER_CPU_HYBRID)?;
    let tasks = [Hog::start(), Hog::start(), Hog::start()];
    bind(&tasks[1], 0);
    deep_in_debt(&scheduler, &tasks)?;
    let received = scheduler.account(1)?.received_ns;
    // Kills them, and waits until they have ended.
    drop(tasks);
    let mut exited = Vec::new();
    let are_gone = wait_until(|| {
        exited.extend(scheduler.take_exited());
        exited.contains(&1)
    });
    let received = scheduler.account(1)?.received_ns - received;
    eprintln!("    ended with {received} ns");
    if !are_gone || received > 100_000_000 {
        return Err(format!("gone: {are_gone}, with {received} ns").into());
    }
    // Its tasks did not wait for the end of the pause.
    same(scheduler.account(1)?.pauses, true)?;
    scheduler.remove(1)?;
    // Its number is another one's, which has no limit.
    let _hog = hog(&scheduler, 1, &[base(100)])?;
    check_runs(&scheduler, 1)?;
    // Tasks that are released run elsewhere.
    let tasks = [Hog::start(), Hog::start()];
    bind(&tasks[1], 0);
    scheduler.set_tickets(2, &[base(100)])?;
    for task in &tasks {
        scheduler.give(2, task.pid())?;
    }
    scheduler.set_limit(2, Some(CpuLimit::LEAST))?;
    wait_for_pause(&scheduler, 2)?;
    for task in &tasks {
        scheduler.take_back(task.pid())?;
        let before = used_ns(task.pid());
        same(
            wait_until(|| used_ns(task.pid()) > before + 200_000_000),
            true,
        )?;
    }
    scheduler.remove(2)?;
    // The kernel's own scheduler runs its tasks first.
    drop(tasks);
    check_runs(&scheduler, 1)
}

/// The scheduler is unloaded during a pause: the tasks run under the kernel's own.
pub fn unloaded_during_a_pause() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&PER_CPU_HYBRID)?;
    let tasks = [Hog::start(), Hog::start()];
    bind(&tasks[1], 0);
    deep_in_debt(&scheduler, &tasks)?;
    drop(scheduler);
    for task in &tasks {
        let before = used_ns(task.pid());
        same(
            wait_until(|| used_ns(task.pid()) > before + 200_000_000),
            true,
        )?;
    }
    Ok(())
}

/// Many tasks at the smallest limit: each gets a turn now and then, so that the kernel does not
/// unload the scheduler for starvation (after 30 s).
pub fn no_starvation() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&STRIDE)?;
    let tasks: Vec<Hog> = (0..30).map(|_| Hog::start()).collect();
    bind(&tasks[1], 0);
    deep_in_debt(&scheduler, &tasks)?;
    let before: Vec<u64> = tasks.iter().map(|task| used_ns(task.pid())).collect();
    let received = received(&scheduler, &[1], Duration::from_secs(45))?[0];
    eprintln!("    received {} ms in 45 s", received / 1e6);
    let starving = tasks.iter().zip(before);
    let starving = starving.filter(|(task, before)| used_ns(task.pid()) == *before);
    same(starving.count(), 0)?;
    // 45 ms, and a tick on each CPU too late. The turns last some microseconds; where one CPU ends
    // those of another, up to a millisecond, since the machine's CPUs take turns.
    let turn_ns = if possible_cpus() == 1 { 200e3 } else { 1e6 };
    let most = 45e6 + (TICK_NS * u64::from(possible_cpus())) as f64 + 30.0 * 5.0 * turn_ns;
    match received <= most {
        true => Ok(()),
        false => Err(format!("received {received} ns").into()),
    }
}

/// Thousands of tasks at the smallest limit: the midst of the line does not starve, and all of them
/// end once they are killed.
pub fn no_starvation_of_a_crowd() -> Result<(), Failed> {
    const TASKS: u32 = 2_000;
    let scheduler = Scheduler::load(&STRIDE)?;
    let crowd = Hog::crowd(TASKS);
    place(&scheduler, 1, &[base(100)], &crowd)?;
    let are_there = |counts: RangeInclusive<u32>| {
        let account = || scheduler.account(1);
        let are_there = || account().is_ok_and(|account| counts.contains(&account.tasks));
        (0..5).any(|_| wait_until(are_there))
    };
    same(are_there(TASKS + 1..=TASKS + 1), true)?;
    scheduler.set_limit(1, Some(CpuLimit::LEAST))?;
    wait_for_pause(&scheduler, 1)?;
    thread::sleep(Duration::from_secs(35));
    if let Some(failure) = scheduler.failure() {
        return Err(failure.to_string().into());
    }
    crowd.signal(libc::SIGKILL);
    let ends = Instant::now();
    // Until it is waited for, Linux 6.18 counts its first thread.
    same(are_there(0..=1), true)?;
    eprintln!("    ended after {:?}", ends.elapsed());
    Ok(())
}

/// Limits are refused where there is no client, and end with the node.
pub fn refusals() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&STRIDE)?;
    same(scheduler.holds_limits(), true)?;
    for node in [BASE, 1] {
        match scheduler.set_limit(node, percent(50)) {
            Err(KernelError::Base | KernelError::UnknownNode { .. }) => {}
            other => return Err(format!("node {node}: {other:?}").into()),
        }
    }
    const MOST: u32 = prorata_kernel::scheduler::MOST_LIMITS as u32;
    for node in 1..=MOST + 1 {
        scheduler.set_tickets(node, &[base(1)])?;
    }
    for node in 1..=MOST {
        scheduler.set_limit(node, percent(1))?;
    }
    match scheduler.set_limit(MOST + 1, percent(1)) {
        Err(KernelError::TooManyLimits) => {}
        other => return Err(format!("{other:?}").into()),
    }
    scheduler.set_limit(MOST, percent(2))?;
    scheduler.remove(7)?;
    scheduler.set_limit(MOST + 1, percent(30))?;
    // One among so many holds.
    let hog = Hog::start();
    scheduler.give(MOST + 1, hog.pid())?;
    thread::sleep(Duration::from_millis(500));
    check_limit(&scheduler, MOST + 1, 30, 2)
}
