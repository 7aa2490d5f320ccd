//! The policy that each thread had before the scheduler got it. The engine
//! restores it when the thread leaves.
//!
//! A child has its parent's policy, so the list holds only threads that were
//! given. If the daemon is killed, the next one finds every member under
//! `SCHED_EXT` (which the kernel then treats as `SCHED_OTHER`) and cannot find
//! out its former policy. So a file holds every policy but the ordinary one.

use std::collections::HashMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use prorata_user::{Policy, ProcessId, procfs};

/// The policy of members: `SCHED_EXT` in the kernel's
/// `include/uapi/linux/sched.h`. Where tests run, the kernel may not have it;
/// there `SCHED_IDLE` stands for it.
pub(crate) const SCHED_EXT: u32 = if cfg!(test) {
    libc::SCHED_IDLE as u32
} else {
    7
};

/// Threads and their own policies.
#[derive(Debug)]
pub(crate) struct Policies {
    known: HashMap<ProcessId, Policy>,
    /// One line each: thread, start time, policy.
    file: File,
}

impl Policies {
    /// Reads what the last daemon left in `directory`, which may not exist yet,
    /// and keeps the lines about threads that live.
    pub fn open(directory: &Path) -> io::Result<Self> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(directory.join("policies"))?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let lines = text.lines().filter_map(parse);
        let known: HashMap<ProcessId, Policy> =
            lines.filter(|(thread, _)| thread.is_alive()).collect();
        file.set_len(0)?;
        let mut policies = Self { known, file };
        let all: Vec<(ProcessId, Policy)> = policies.known.clone().into_iter().collect();
        for (thread, policy) in all {
            policies.write(thread, policy)?;
        }
        Ok(policies)
    }

    /// A thread is about to be given. `leader` is the first thread of its
    /// process.
    pub fn keep(&mut self, thread: ProcessId, leader: ProcessId) -> io::Result<()> {
        let now = Policy::of(thread.pid)?;
        // A dead daemon's member. If the thread chose that policy itself, the
        // ordinary one does no harm.
        let own = match now.class() {
            SCHED_EXT => self.known.get(&thread).copied().unwrap_or(Policy::OTHER),
            _ => now,
        };
        let known = self.known.insert(thread, own);
        let of_leader = self.known.get(&leader).copied().unwrap_or(Policy::OTHER);
        if known == Some(own) || (own == Policy::OTHER && of_leader == Policy::OTHER) {
            return Ok(());
        }
        self.write(thread, own)
    }

    /// The own policy of a thread that was given.
    pub fn of(&self, thread: ProcessId) -> Option<Policy> {
        self.known.get(&thread).copied()
    }

    /// Forgets threads that have ended. Their lines stay until the next daemon
    /// reads them.
    pub fn forget_ended(&mut self) {
        self.known.retain(|thread, _| {
            let stat = procfs::stat(thread.pid);
            stat.is_ok_and(|stat| stat.start_time_ticks == thread.start_time_ticks)
        });
    }

    fn write(&mut self, thread: ProcessId, policy: Policy) -> io::Result<()> {
        let ProcessId {
            pid,
            start_time_ticks,
        } = thread;
        let line = format!("{pid} {start_time_ticks} {}\n", policy.0);
        self.file.write_all(line.as_bytes())
    }
}

/// The daemon's end may have cut a line short: such a line does not count.
fn parse(line: &str) -> Option<(ProcessId, Policy)> {
    let mut numbers = line.split(' ');
    let thread = ProcessId {
        pid: numbers.next()?.parse().ok()?,
        start_time_ticks: numbers.next()?.parse().ok()?,
    };
    let policy = Policy(numbers.next()?.parse().ok()?);
    Some((thread, policy)).filter(|_| policy.is_fair() && numbers.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_successor_knows_the_policies_that_were_chosen() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().join("engine");
        let mut policies = Policies::open(&directory).unwrap();
        let mut children = [0, 1, 2].map(|_| Command::new("sleep").arg("100").spawn().unwrap());
        let [batch, other, ended] = children
            .each_ref()
            .map(|child| ProcessId::of(child.id()).unwrap());
        Policy(libc::SCHED_BATCH as u32).set(batch.pid).unwrap();
        Policy(libc::SCHED_BATCH as u32).set(ended.pid).unwrap();
        for thread in [batch, other, ended] {
            policies.keep(thread, thread).unwrap();
        }
        assert_eq!(policies.of(batch), Some(Policy(libc::SCHED_BATCH as u32)));
        assert_eq!(policies.of(other), Some(Policy::OTHER));
        children[2].kill().unwrap();
        children[2].wait().unwrap();
        drop(policies);
        let mut policies = Policies::open(&directory).unwrap();
        assert_eq!(policies.of(batch), Some(Policy(libc::SCHED_BATCH as u32)));
        // The ordinary policy needs no line.
        assert_eq!((policies.of(other), policies.of(ended)), (None, None));
        children[0].kill().unwrap();
        children[0].wait().unwrap();
        policies.forget_ended();
        assert_eq!(policies.of(batch), None);
        children[1].kill().unwrap();
        children[1].wait().unwrap();
    }

    #[test]
    fn lines_that_are_none_are_skipped() {
        for line in ["", "1", "1 2", "1 2 3 4", "1 2 1", "x 2 3"] {
            assert!(parse(line).is_none(), "{line:?}");
        }
        assert!(
            parse("1 2 3").is_some_and(|(_, policy)| policy == Policy(libc::SCHED_BATCH as u32))
        );
    }
}
