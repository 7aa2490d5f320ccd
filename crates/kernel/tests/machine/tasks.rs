//! What may happen to a task: it executes another program, is traced, stopped,
//! bound elsewhere, robbed of its CPU; and very many of them.

use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::Failed;
use prorata_kernel::scheduler::Scheduler;

use crate::hogs::{Hog, wait_until};
use crate::processors::{PER_CPU, bind};
use crate::world::{
    QUANTUM_NS, STRIDE, TICK_NS, base, check_shares, hog, hogs, place, received, same, settle,
};

/// A process that executes one program after another stays in its client. (How much it runs
/// depends on how fast the host reads files.)
pub fn exec() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&STRIDE)?;
    let relay = Hog::execs(5);
    place(&scheduler, 1, &[base(100)], &relay)?;
    let _hog = hog(&scheduler, 2, &[base(100)])?;
    let received = received(&scheduler, &[1, 2], Duration::from_secs(4))?;
    eprintln!("    received {received:?} ns");
    same(scheduler.node_of(relay.pid()), Some(1))?;
    same(scheduler.account(1)?.tasks, 1)?;
    if received.iter().any(|ns| *ns < 1e8) {
        return Err(format!("received {received:?} ns").into());
    }
    Ok(())
}

/// A debugger attaches, takes single steps, and goes.
pub fn trace() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&STRIDE)?;
    let traced = hog(&scheduler, 1, &[base(300)])?;
    let _other = hog(&scheduler, 2, &[base(100)])?;
    settle();
    ptrace(libc::PTRACE_ATTACH, &traced)?;
    wait_for_stop(&traced)?;
    let alone = [(1, 0.0), (2, 1.0)];
    check_shares(&scheduler, &alone, 1, 1.0)?;
    for _ in 0..10 {
        ptrace(libc::PTRACE_SINGLESTEP, &traced)?;
        wait_for_stop(&traced)?;
    }
    same(scheduler.node_of(traced.pid()), Some(1))?;
    ptrace(libc::PTRACE_DETACH, &traced)?;
    // It catches up on what it waited for: its part of ten turns at most.
    thread::sleep(Duration::from_millis(1500));
    let shares = [(1, 3.0), (2, 1.0)];
    check_shares(&scheduler, &shares, 2, 3.0)
}

fn ptrace(request: libc::c_uint, hog: &Hog) -> Result<(), Failed> {
    let null = ptr::null_mut::<libc::c_void>();
    // SAFETY: these requests take no pointers.
    match unsafe { libc::ptrace(request, hog.pid().cast_signed(), null, null) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error().into()),
    }
}

fn wait_for_stop(hog: &Hog) -> Result<(), Failed> {
    let mut status = 0;
    // SAFETY: the status lives.
    let pid = unsafe { libc::waitpid(hog.pid().cast_signed(), &raw mut status, 0) };
    same(
        (pid, libc::WIFSTOPPED(status)),
        (hog.pid().cast_signed(), true),
    )
}

/// Stopped and continued over and over, and then let alone: it catches up on what it
/// waited for in between, and then all is as it was.
pub fn stop_and_continue() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&STRIDE)?;
    let stopped = hog(&scheduler, 1, &[base(300)])?;
    let _other = hog(&scheduler, 2, &[base(100)])?;
    settle();
    for _ in 0..40 {
        stopped.signal(libc::SIGSTOP);
        thread::sleep(Duration::from_millis(10));
        stopped.signal(libc::SIGCONT);
        thread::sleep(Duration::from_millis(15));
    }
    same(scheduler.statistics()?.active_base, 400)?;
    thread::sleep(Duration::from_secs(2));
    let shares = [(1, 3.0), (2, 1.0)];
    check_shares(&scheduler, &shares, 2, 2.0)
}

/// A real-time task takes 95 % of the time. Tickets share the rest, and the kernel does not
/// unload the scheduler for it.
pub fn real_time() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&STRIDE)?;
    let greedy = Hog::bursts(95, 5);
    let parameter = libc::sched_param { sched_priority: 1 };
    let pid = greedy.pid().cast_signed();
    // SAFETY: the parameter lives.
    let set = unsafe { libc::sched_setscheduler(pid, libc::SCHED_FIFO, &raw const parameter) };
    same(set, 0)?;
    let _hogs = hogs(&scheduler, &[(1, 300), (2, 100)])?;
    thread::sleep(Duration::from_secs(2));
    let time = Duration::from_secs(10);
    let received = received(&scheduler, &[1, 2], time)?;
    eprintln!("    received {received:?} ns of {time:?}");
    let sum = received[0] + received[1];
    // There are two ends, as always.
    let off = (received[0] - sum * 0.75).abs();
    if off > 2.0 * (QUANTUM_NS + TICK_NS) as f64 || sum < 0.02 * time.as_nanos() as f64 {
        return Err(format!("received {received:?} ns").into());
    }
    Ok(())
}

/// A turn comes after as long as the share implies, and at the latest so many
/// quanta after that as there are clients.
pub fn waits() -> Result<(), Failed> {
    const CLIENTS: u64 = 10;
    const TURN_NS: u64 = QUANTUM_NS + TICK_NS;
    let scheduler = Scheduler::load(&STRIDE)?;
    let mut hogs = Vec::new();
    for node in 1..=CLIENTS {
        hogs.push(hog(&scheduler, node as u32, &[base(100 * node)])?);
    }
    settle();
    let read = || (1..=CLIENTS).map(|node| scheduler.account(node as u32));
    let before = read().collect::<Result<Vec<_>, _>>()?;
    let begin = Instant::now();
    thread::sleep(Duration::from_secs(6));
    let after = read().collect::<Result<Vec<_>, _>>()?;
    let all = before.iter().zip(&after);
    let received_ns: u64 = all.map(|(b, a)| a.received_ns - b.received_ns).sum();
    // All wait while the machine's own programs run.
    let passed = begin.elapsed().as_nanos() as f64 / received_ns as f64;
    if passed > 1.1 {
        return Err(format!("clients receive too little: {received_ns} ns").into());
    }
    for (index, (before, after)) in before.iter().zip(&after).enumerate() {
        let tickets = index as u64 + 1;
        let total = CLIENTS * (CLIENTS + 1) / 2;
        let longest_ns = total * TURN_NS / tickets + CLIENTS * TURN_NS;
        // Class n is of waits from 2^(n-1) ns.
        let classes = before.waits.iter().zip(&after.waits).enumerate();
        let class = classes.filter(|(_, (b, a))| a > b).map(|(n, _)| n).max();
        let least_ns = class.map_or(0, |class| 1 << class >> 1);
        let turns = after.dispatches - before.dispatches;
        let mean_ns = (after.waited_ns - before.waited_ns) / turns.max(1);
        eprintln!("    {tickets}: {turns} turns, waited {mean_ns} ns, at most from {least_ns}");
        // There are some turns only, which begin and end the time.
        let most_ns = (longest_ns - CLIENTS * TURN_NS) as f64 * passed * 1.05;
        if turns == 0 || least_ns > longest_ns || mean_ns as f64 > most_ns {
            return Err(format!("{tickets} of {total} tickets: {after:?}").into());
        }
    }
    Ok(())
}

/// Ten thousand tasks of one client, each of which runs now and then, beside a
/// hog with as many tickets.
pub fn crowd() -> Result<(), Failed> {
    const TASKS: u32 = 10_000;
    let scheduler = Scheduler::load(&STRIDE)?;
    let crowd = Hog::crowd(TASKS);
    place(&scheduler, 1, &[base(100)], &crowd)?;
    let tasks = |count| {
        let is_so = || {
            scheduler
                .account(1)
                .is_ok_and(|account| account.tasks == count)
        };
        if (0..5).any(|_| wait_until(is_so)) {
            return Ok(());
        }
        Err(Failed::from(format!("{:?}", scheduler.account(1))))
    };
    tasks(TASKS + 1)?;
    let _hog = hog(&scheduler, 2, &[base(100)])?;
    thread::sleep(Duration::from_secs(5));
    let shares = [(1, 1.0), (2, 1.0)];
    check_shares(&scheduler, &shares, 5, 4.0)?;
    drop(crowd);
    tasks(0)
}

/// Bound to one CPU after another, it still gets its turns. (For three CPUs.)
pub fn affinity_changes() -> Result<(), Failed> {
    for options in [STRIDE, PER_CPU] {
        let scheduler = Scheduler::load(&options)?;
        let mut hogs = Vec::new();
        for node in 1..=6 {
            hogs.push(hog(&scheduler, node, &[base(100)])?);
        }
        settle();
        let before = scheduler.account(1)?.received_ns;
        for round in 0..200 {
            bind(&hogs[0], round % 3);
            thread::sleep(Duration::from_millis(10));
        }
        let received = scheduler.account(1)?.received_ns - before;
        eprintln!("    received {} ms", received / 1_000_000);
        if let Some(failure) = scheduler.failure() {
            return Err(failure.into());
        }
        // Half of three CPUs' sixth: each change may cost it its turn.
        if received < 500_000_000 {
            return Err(format!("received {received} ns").into());
        }
    }
    Ok(())
}
