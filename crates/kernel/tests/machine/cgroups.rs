//! Control groups as currencies.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use libtest_mimic::Failed;
use prorata_kernel::scheduler::{Options, Scheduler, Scope};

use crate::hogs::{Hog, used_ns, wait_until};
use crate::world::{QUANTUM_NS, STRIDE, TICK_NS, judge};

pub const ALL: Options = Options {
    scope: Scope::All,
    ..STRIDE
};
pub const ROOT: &str = "/sys/fs/cgroup";

/// A control group that is removed with its value: after all in it have gone.
pub struct Group(PathBuf);

impl Group {
    pub fn new(parent: &Path, name: &str, weight: u32) -> Result<Self, Failed> {
        fs::write(parent.join("cgroup.subtree_control"), "+cpu")?;
        let path = parent.join(name);
        fs::create_dir(&path)?;
        let group = Self(path);
        group.set_weight(weight)?;
        Ok(group)
    }

    pub fn top(name: &str, weight: u32) -> Result<Self, Failed> {
        Self::new(Path::new(ROOT), name, weight)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn set_weight(&self, weight: u32) -> Result<(), Failed> {
        Ok(fs::write(self.0.join("cpu.weight"), weight.to_string())?)
    }

    pub fn add(&self, hog: &Hog) -> Result<(), Failed> {
        Ok(fs::write(
            self.0.join("cgroup.procs"),
            hog.pid().to_string(),
        )?)
    }

    pub fn hog(&self) -> Result<Hog, Failed> {
        let hog = Hog::start();
        self.add(&hog)?;
        Ok(hog)
    }

    /// Removes it now: all in it have gone.
    pub fn remove(self) -> Result<(), Failed> {
        Ok(fs::remove_dir(&self.0)?)
    }

    pub fn used_ns(&self) -> u64 {
        let text = fs::read_to_string(self.0.join("cpu.stat")).unwrap_or_default();
        let used = text
            .lines()
            .find_map(|line| line.strip_prefix("usage_usec "));
        used.and_then(|used| used.parse::<u64>().ok()).unwrap_or(0) * 1000
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::write(self.0.join("cgroup.kill"), "1");
        wait_until(|| fs::remove_dir(&self.0).is_ok() || !self.0.exists());
    }
}

/// Checks that what is used in a time is shared so, to within so many quanta.
pub fn check(
    scheduler: &Scheduler,
    used: &dyn Fn() -> Vec<u64>,
    shares: &[f64],
    seconds: u64,
    quanta: f64,
) -> Result<(), Failed> {
    let before = used();
    thread::sleep(Duration::from_secs(seconds));
    let after = used();
    if let Some(failure) = scheduler.failure() {
        return Err(failure.into());
    }
    let pairs = after.iter().zip(before);
    let used: Vec<f64> = pairs
        .map(|(after, before)| (after - before) as f64)
        .collect();
    judge(&used, shares, quanta, 0.6e9 * seconds as f64)
}

/// Three deep, with unequal weights and numbers of processes.
pub fn nested() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&ALL)?;
    let a = Group::top("a", 300)?;
    let b = Group::top("b", 100)?;
    let a1 = Group::new(&a.0, "1", 100)?;
    let a2 = Group::new(&a.0, "2", 200)?;
    let leaves = [
        Group::new(&a1.0, "x", 200)?,
        Group::new(&a1.0, "y", 100)?,
        a2,
        b,
    ];
    let mut hogs = Vec::new();
    for (leaf, count) in leaves.iter().zip([1, 3, 1, 2]) {
        for _ in 0..count {
            hogs.push(leaf.hog()?);
        }
    }
    thread::sleep(Duration::from_millis(500));
    let used = || leaves.iter().map(Group::used_ns).collect();
    // a has three quarters; 1 a third of that, and x two thirds of that.
    let shares = [6.0, 3.0, 18.0, 9.0];
    check(&scheduler, &used, &shares, 5, 4.0)?;
    leaves[3].set_weight(600)?;
    let shares = [6.0, 3.0, 18.0, 54.0];
    check(&scheduler, &used, &shares, 3, 4.0)?;
    // The hog of x moves to b: 1 is y's alone.
    leaves[3].add(&hogs[0])?;
    let shares = [0.0, 9.0, 18.0, 54.0];
    check(&scheduler, &used, &shares, 3, 4.0)?;
    drop(hogs);
    drop(leaves);
    drop((a1, a));
    Ok(())
}

/// Three programs in the lesser of two groups, at two quanta: within 1 %, but for a turn
/// that an end of the time cuts in two.
pub fn programs() -> Result<(), Failed> {
    for quantum_ns in [8_000_000, QUANTUM_NS] {
        let scheduler = Scheduler::load(&Options { quantum_ns, ..ALL })?;
        let groups = [Group::top("a", 100)?, Group::top("b", 300)?];
        let _hogs = [
            groups[0].hog()?,
            groups[0].hog()?,
            groups[0].hog()?,
            groups[1].hog()?,
        ];
        thread::sleep(Duration::from_millis(500));
        let used = || groups.iter().map(Group::used_ns).collect();
        // The lesser is due a quarter of the time.
        let percent = 0.01 * 2.5e9 / (QUANTUM_NS + TICK_NS) as f64;
        check(&scheduler, &used, &[1.0, 3.0], 10, 1.0 + percent)?;
    }
    Ok(())
}

/// A thousand that wake at once in one of two equal groups.
pub fn herd() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&ALL)?;
    let groups = [Group::top("a", 100)?, Group::top("b", 100)?];
    let _hog = groups[0].hog()?;
    let herd = Hog::herd(1000);
    groups[1].add(&herd)?;
    let members = || {
        let text = fs::read_to_string(groups[1].0.join("pids.current"));
        let procs = fs::read_to_string(groups[1].0.join("cgroup.procs"));
        text.or(procs.map(|procs| procs.lines().count().to_string()))
    };
    let all = || members().is_ok_and(|count| count.trim() == "1001");
    if !wait_until(all) {
        return Err(format!("{:?} are there", members()).into());
    }
    thread::sleep(Duration::from_millis(500));
    herd.signal(libc::SIGUSR1);
    let used = || groups.iter().map(Group::used_ns).collect();
    check(&scheduler, &used, &[1.0, 1.0], 4, 4.0)
}

/// As many control groups as a busy machine has.
pub fn many() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&ALL)?;
    // Dropped last.
    let mut tops = Vec::new();
    let mut leaves = Vec::new();
    for top in 0..50 {
        let group = Group::top(&format!("t{top}"), 100)?;
        for leaf in 0..49 {
            leaves.push(Group::new(&group.0, &format!("l{leaf}"), 100)?);
        }
        tops.push(group);
    }
    // Two below one group, one below another.
    let hogs = [leaves[0].hog()?, leaves[1].hog()?, leaves[700].hog()?];
    thread::sleep(Duration::from_millis(300));
    let used = || hogs.iter().map(|hog| used_ns(hog.pid())).collect();
    check(&scheduler, &used, &[1.0, 1.0, 2.0], 3, 3.0)?;
    let without = scheduler.statistics()?.groups_without_node;
    if without != 0 {
        return Err(format!("{without} groups without a node").into());
    }
    drop(hogs);
    drop(leaves);
    drop(tops);
    Ok(())
}

/// Nice values within a group, as Linux weighs them.
pub fn nice() -> Result<(), Failed> {
    let scheduler = Scheduler::load(&ALL)?;
    let group = Group::top("a", 100)?;
    let hogs = [group.hog()?, group.hog()?];
    // SAFETY: takes no pointers.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, hogs[1].pid(), 5) };
    thread::sleep(Duration::from_millis(200));
    let used = || hogs.iter().map(|hog| used_ns(hog.pid())).collect();
    check(&scheduler, &used, &[1024.0, 335.0], 3, 3.0)
}
