//! Files that the engine keeps open.
//!
//! Each process takes a handle, and the daemon watches each client's root by another one. For the
//! first processes the engine also keeps files open that it reads or writes often; for further
//! processes it opens them whenever it needs them.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::table::MAX_RECORDS;

/// Most processes that an engine manages. The other half of the records is for threads.
const MAX_PROCESSES: u32 = MAX_RECORDS / 2;

/// Handles for each process.
const HANDLES_EACH: u64 = 2;

/// For connections, and everything else.
const RESERVED: u64 = 384;

/// Most processes for which files are kept open.
const MAX_KEPT: u32 = 1024;

/// Files that are kept for such a process: its state, its foster parent's, and two of its client's
/// control group.
const FILES_EACH: u64 = 4;

/// The part of all descriptors that kept files may take.
const KEPT_PART: u64 = 8;

/// Enough for all of these.
const WANTED: u64 = RESERVED + MAX_PROCESSES as u64 * HANDLES_EACH + MAX_KEPT as u64 * FILES_EACH;

/// What a limit on open files permits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Allowance {
    /// Most processes that can be managed.
    pub(crate) processes: u32,
    /// For how many of them, and for how many foster parents, files are kept open.
    pub(crate) kept: u32,
}

impl Allowance {
    /// Of this process.
    pub(crate) fn of_this_process() -> Allowance {
        Self::within(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX))
    }

    fn within(limit: u64) -> Allowance {
        let free = limit.saturating_sub(RESERVED);
        let kept = (free / KEPT_PART / FILES_EACH).min(MAX_KEPT.into());
        let processes = (free - kept * FILES_EACH) / HANDLES_EACH;
        Allowance {
            processes: processes.clamp(1, MAX_PROCESSES.into()) as u32,
            kept: kept as u32,
        }
    }

    /// Whether a higher limit on open files would permit more processes.
    pub(crate) fn is_short(self) -> bool {
        self.processes < MAX_PROCESSES
    }
}

/// Raises the limit on open files as far as permitted: an ordinary user's to the hard limit, and
/// root's to what the most processes take. Where it fails, the engine manages fewer processes.
pub fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let is_enough = limit.maximum.is_none_or(|maximum| maximum >= WANTED);
    let raised = Rlimit {
        current: Some(WANTED),
        maximum: Some(WANTED),
    };
    if is_enough || setrlimit(Resource::Nofile, raised).is_err() {
        let current = limit.maximum;
        let _ = setrlimit(Resource::Nofile, Rlimit { current, ..limit });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_files_and_handles_stay_within_the_limit() {
        for limit in (0..100_000)
            .step_by(7)
            .chain([1024, 4096, 20_000, WANTED, u64::MAX])
        {
            let Allowance { processes, kept } = Allowance::within(limit);
            let taken = u64::from(processes) * HANDLES_EACH + u64::from(kept) * FILES_EACH;
            assert!(processes == 1 || RESERVED + taken <= limit, "{limit}");
        }
        assert!(!Allowance::within(WANTED).is_short());
        assert!(Allowance::within(WANTED - 2).is_short());
        assert!(Allowance::within(21_500).processes >= 9_000);
    }

    #[test]
    fn a_small_limit_leaves_room_for_many_processes() {
        let allowance = |limit| {
            let Allowance { processes, kept } = Allowance::within(limit);
            (processes, kept)
        };
        assert_eq!(allowance(0), (1, 0));
        assert_eq!(allowance(RESERVED + 4), (2, 0));
        assert_eq!(allowance(1024), (280, 20));
        assert_eq!(allowance(20_000), (8_582, 613));
        assert_eq!(allowance(524_288), (MAX_PROCESSES, MAX_KEPT));
    }
}
