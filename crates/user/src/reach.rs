//! Changing exactly one thread by its number.
//!
//! `sched_setscheduler(2)` and `sched_setaffinity(2)` take a bare number; Linux has no form of
//! them that takes a descriptor. So the engine checks the number against the process's handle
//! right before a change and right after. If the thread ended in between, and another thread got
//! its number within those microseconds, the engine undoes the change. The other thread stays
//! changed only if the engine is killed before the second check.

use std::io;

use rustix::io::Errno;
use rustix::thread::CpuSet;

use crate::process_id::Handle;
use crate::scheduler::{self, Policy};

/// A thread of a process that a handle holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) process: &'a Handle,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
}

impl Target<'_> {
    /// Whether the number names a thread of that process. As long as the handle finds the
    /// process, zombies included, no other process has its number, nor has the number any thread
    /// but its first. Cost: 0.5 us.
    fn is_met(self) -> bool {
        let is_thread = || {
            let (pid, tid) = (self.pid as libc::pid_t, self.tid as libc::pid_t);
            // SAFETY: takes plain numbers; signal 0 is never delivered.
            let sent = unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, 0) } == 0;
            sent || io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
        };
        (self.tid == self.pid || is_thread()) && !matches!(self.process.exists(), Ok(false))
    }

    /// Gives it this policy, where it has another one. Cost: 2 us.
    pub(crate) fn set_policy(self, before: Policy, policy: Policy) -> io::Result<()> {
        self.change(|| policy.set(self.tid), || before.set(self.tid))
    }

    /// Gives it this policy and real-time priority, where it has others. The number is checked only
    /// afterwards, because there is no time at the boundary of a slot: another thread has the priority
    /// for some microseconds if it got the number since the last boundary. Cost: 1.5 us.
    pub(crate) fn set_priority(
        self,
        (policy_before, before): (Policy, u32),
        (policy, priority): (Policy, u32),
    ) -> io::Result<()> {
        policy.set_at(self.tid, priority)?;
        self.undo_unless_met(|| policy_before.set_at(self.tid, before))
    }

    /// Binds it to these CPUs, where it may use others. Cost: 3 us.
    pub(crate) fn set_affinity(self, before: &CpuSet, cpus: &CpuSet) -> io::Result<()> {
        self.change(
            || scheduler::set_affinity(self.tid, cpus),
            || scheduler::set_affinity(self.tid, before),
        )
    }

    fn change(
        self,
        deed: impl FnOnce() -> io::Result<()>,
        undo: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        if !self.is_met() {
            return Err(Errno::SRCH.into());
        }
        deed()?;
        self.undo_unless_met(undo)
    }

    fn undo_unless_met(self, undo: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        if self.is_met() {
            return Ok(());
        }
        // Mostly no thread has the number by now.
        let _ = undo();
        Err(Errno::SRCH.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process_id::ProcessId;

    #[test]
    fn only_threads_of_the_process_are_changed() {
        let me = std::process::id();
        let mut child = std::process::Command::new("sleep")
            .arg("100")
            .spawn()
            .expect("spawns");
        let handle = |pid| {
            let id = ProcessId::of(pid).expect("it runs");
            id.open().expect("it may be signalled")
        };
        let (mine, its) = (handle(me), handle(child.id()));
        let target = |process, pid, tid| Target { process, pid, tid };
        let policy = Policy::of(child.id()).expect("it runs");
        let hit = target(&its, child.id(), child.id());
        hit.set_policy(policy, policy).expect("it is there");
        // The number belongs to another process.
        let missed = target(&mine, me, child.id()).set_policy(policy, Policy::IDLE);
        assert_eq!(missed.map_err(|e| e.raw_os_error()), Err(Some(libc::ESRCH)));
        assert_eq!(Policy::of(child.id()).expect("it runs"), policy);
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        // The process of the handle has ended.
        let missed = target(&its, me, me).set_policy(policy, Policy::IDLE);
        assert_eq!(missed.map_err(|e| e.raw_os_error()), Err(Some(libc::ESRCH)));
        assert_eq!(Policy::of(me).expect("we exist"), policy);
    }

    #[test]
    fn a_change_of_another_thread_is_undone() {
        let mut child = std::process::Command::new("sleep")
            .arg("100")
            .spawn()
            .expect("spawns");
        let id = ProcessId::of(child.id()).expect("it runs");
        let handle = id.open().expect("it may be signalled");
        let target = Target {
            process: &handle,
            pid: child.id(),
            tid: child.id(),
        };
        let mut undone = false;
        let die = || {
            child.kill()?;
            child.wait().map(drop)
        };
        let result = target.change(die, || {
            undone = true;
            Ok(())
        });
        assert!(result.is_err() && undone);
    }
}
