//! Files that the engine keeps open.
//!
//! The daemon watches the root of each client by a handle. For the first processes the engine keeps
//! a handle open too, and files that it reads or writes often; for further processes it opens them
//! whenever it needs them.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::table::MAX_RECORDS;

/// Most processes that an engine manages. The other half of the records is for threads.
pub(crate) const MAX_PROCESSES: u32 = MAX_RECORDS / 2;

/// For connections, and everything else.
const RESERVED: u64 = 384;

/// Most processes for which files are kept open.
const MAX_KEPT: u32 = 1024;

/// Files that are kept for such a process: its handle, its state, its foster parent's, and two of
/// its client's control group.
const FILES_EACH: u64 = 5;

/// The part of all descriptors that kept files may take.
const KEPT_PART: u64 = 8;

/// Enough for the most processes and the most kept files.
const WANTED: u64 = RESERVED + MAX_KEPT as u64 * FILES_EACH * KEPT_PART;
const _: () = assert!(WANTED > RESERVED + MAX_PROCESSES as u64 + MAX_KEPT as u64 * FILES_EACH);

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
        let processes = free - kept * FILES_EACH;
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
            let taken = u64::from(processes) + u64::from(kept) * FILES_EACH;
            assert!(processes == 1 || RESERVED + taken <= limit, "{limit}");
        }
        assert!(!Allowance::within(WANTED).is_short());
        assert!(Allowance::within(MAX_PROCESSES.into()).is_short());
        assert!(Allowance::within(20_000).processes >= 10_000);
    }

    #[test]
    fn a_small_limit_leaves_room_for_many_processes() {
        let allowance = |limit| {
            let Allowance { processes, kept } = Allowance::within(limit);
            (processes, kept)
        };
        assert_eq!(allowance(0), (1, 0));
        assert_eq!(allowance(RESERVED + 2), (2, 0));
        assert_eq!(allowance(1024), (560, 16));
        assert_eq!(allowance(20_000), (MAX_PROCESSES, 490));
        assert_eq!(allowance(524_288), (MAX_PROCESSES, MAX_KEPT));
    }
}
