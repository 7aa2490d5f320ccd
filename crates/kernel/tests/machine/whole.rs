//! All of the machine: kernel threads, control groups that go, storms in them.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use libtest_mimic::Failed;
use prorata_kernel::scheduler::{ROOT_CGROUP, ROOT_TICKETS, Scheduler};

use crate::cgroups::{ALL, Group, ROOT, check};
use crate::hogs::{Hog, used_ns};
use crate::processors::bind;
use crate::world::{QUANTUM_NS, TICK_NS, base, hog};

/// Kernel threads are scheduled as others are, and get their turns beside tasks that
/// compute.
pub fn kernel_threads() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&ALL)?;
    let group = Group::top("a", 10_000)?;
    let _hogs = [group.hog()?, group.hog()?, group.hog()?];
    let threads = kernel_threads_in_class()?;
    let bound = threads
        .iter()
        .any(|(_, name)| name.starts_with("ksoftirqd"));
    // Grace periods come about as long as control groups come and go.
    let grace = threads.iter().find(|(_, name)| name.starts_with("rcu_"));
    let (Some(&(grace, _)), true) = (grace, bound) else {
        return Err(format!("{threads:?}").into());
    };
    let before = turns(grace);
    for round in 0..20 {
        drop(Group::top(&format!("b{round}"), 100)?);
        thread::sleep(Duration::from_millis(50));
    }
    let turns = turns(grace) - before;
    eprintln!("    {} kernel threads, {turns} turns", threads.len());
    if let Some(failure) = scheduler.failure() {
        return Err(failure.into());
    }
    if turns < 10 {
        return Err(format!("{turns} turns").into());
    }
    Ok(())
}

/// Kernel threads under sched_ext, by number, with their names.
fn kernel_threads_in_class() -> Result<Vec<(u32, String)>, Failed> {
    /// The parent of all of them.
    const KTHREADD: &str = "2";
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let read = |file| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let stat = read("stat");
        let parent = stat
            .rsplit(')')
            .next()
            .and_then(|rest| rest.split(' ').nth(2));
        let sched = read("sched");
        let field = sched.lines().find(|line| line.starts_with("ext.enabled"));
        if parent == Some(KTHREADD) && field.is_some_and(|line| line.ends_with('1')) {
            found.push((pid, read("comm").trim_end().to_owned()));
        }
    }
    Ok(found)
}

/// How often a task was put on a CPU.
fn turns(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
    let turns = text.split_whitespace().nth(2);
    turns.and_then(|turns| turns.parse().ok()).unwrap_or(0)
}

/// Control groups that are removed just after their last task has left them or
/// has ended: nothing of them remains, and others share as before.
pub fn removed_groups() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&ALL)?;
    let steady = Group::top("steady", 100)?;
    let _hog = steady.hog()?;
    // A few at a time: each round waits for a turn of a new one.
    let mut moved = VecDeque::new();
    for round in 0..60 {
        let short = Group::top("short", 100 + round)?;
        let hog = short.hog()?;
        thread::sleep(Duration::from_millis(10));
        match round % 3 {
            0 => drop(hog),
            1 => {
                fs::write(Path::new(ROOT).join("cgroup.procs"), hog.pid().to_string())?;
                moved.push_back(hog);
            }
            _ => {
                steady.add(&hog)?;
                moved.push_back(hog);
            }
        }
        short.remove()?;
        if moved.len() > 6 {
            moved.pop_front();
        }
    }
    drop(moved);
    let other = Group::top("other", 300)?;
    let _hogs = [other.hog()?, other.hog()?];
    thread::sleep(Duration::from_millis(300));
    let used = || vec![steady.used_ns(), other.used_ns()];
    check(&scheduler, &used, &[1.0, 3.0], 3, 3.0)
}

/// One process after another, as fast as they can be started, in one of two
/// equal groups.
pub fn storm() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&ALL)?;
    let groups = [Group::top("a", 100)?, Group::top("b", 100)?];
    let _hog = groups[0].hog()?;
    let storm = Hog::forks();
    groups[1].add(&storm)?;
    thread::sleep(Duration::from_millis(500));
    let used = || groups.iter().map(Group::used_ns).collect();
    check(&scheduler, &used, &[1.0, 1.0], 3, 4.0)
}

/// Tasks of two groups that are bound, one of each to each CPU. (For three.)
pub fn bound_tasks() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&ALL)?;
    let groups = [Group::top("a", 100)?, Group::top("b", 300)?];
    let mut hogs = Vec::new();
    for cpu in 0..3 {
        for group in &groups {
            let hog = group.hog()?;
            bind(&hog, cpu);
            hogs.push(hog);
        }
    }
    // The first ones run alone until the others begin, and pay that lead back.
    thread::sleep(Duration::from_secs(4));
    let used = || groups.iter().map(Group::used_ns).collect();
    check(&scheduler, &used, &[1.0, 3.0], 3, 6.0)
}

/// A client with as many base tickets as all groups together, beside groups of which one
/// naps, as a thread of the root group does: so the others' worth changes all the time.
pub fn client_beside_groups() -> Result<(), Failed> {
    const CLIENT: u32 = 1;
    let scheduler = Scheduler::load(&ALL)?;
    let parent = Group::top("services", 100)?;
    let groups = [
        Group::new(parent.path(), "a", 100)?,
        Group::new(parent.path(), "b", 100)?,
        Group::new(parent.path(), "naps", 100)?,
    ];
    let _hogs = [groups[0].hog()?, groups[0].hog()?, groups[1].hog()?];
    let naps = Hog::bursts(3, 30);
    groups[2].add(&naps)?;
    let root = Hog::bursts(1, 7);
    let client = hog(&scheduler, CLIENT, &[base(ROOT_TICKETS)])?;
    thread::sleep(Duration::from_millis(500));
    let used = || {
        let others = parent.used_ns() + used_ns(root.pid());
        vec![used_ns(client.pid()), others]
    };
    check(&scheduler, &used, &[1.0, 1.0], 8, 6.0)?;
    // A napping task waits no longer than a turn or two.
    let account = scheduler.account(ROOT_CGROUP)?;
    let mean_ns = account.waited_ns / account.dispatches.max(1);
    eprintln!("    threads of the root group waited for {mean_ns} ns in the mean");
    match mean_ns < 2 * (QUANTUM_NS + TICK_NS) {
        true => Ok(()),
        false => Err(format!("they waited for {mean_ns} ns in the mean").into()),
    }
}

/// A task that wakes, waits for a turn to end, uses little and sleeps again is not owed all
/// that when it wants more: others go on at once.
pub fn naps_save_nothing_up() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&ALL)?;
    let groups = [Group::top("a", 100)?, Group::top("b", 100)?];
    let _hog = groups[0].hog()?;
    let naps = Hog::bursts(1, 3);
    groups[1].add(&naps)?;
    thread::sleep(Duration::from_secs(6));
    let _second = groups[1].hog()?;
    let used = || groups.iter().map(Group::used_ns).collect();
    check(&scheduler, &used, &[1.0, 1.0], 2, 4.0)
}
