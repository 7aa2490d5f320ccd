//! Limits of a load, checked before any thread starts.

use std::fs;
use std::io;
use std::ops::RangeInclusive;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::LoadError;

/// Most threads of one load: half of Linux's default `pid_max`, 32,768.
pub const MAX_THREADS: u64 = 16_384;

/// Refuses a setting that is out of its range.
pub(crate) fn in_range(
    what: &'static str,
    value: u64,
    range: RangeInclusive<u64>,
) -> Result<(), LoadError> {
    if range.contains(&value) {
        Ok(())
    } else {
        Err(LoadError::OutOfRange { what, value, range })
    }
}

/// Refuses more threads than [`MAX_THREADS`]; `what` is the setting to reduce.
pub(crate) fn threads(count: u64, what: &'static str) -> Result<(), LoadError> {
    if count > MAX_THREADS {
        return Err(LoadError::TooManyThreads(count, what));
    }
    Ok(())
}

/// Raises the soft limit, up to the hard limit, for `more` descriptors beside those
/// open.
pub(crate) fn make_room_for_files(more: u64, what: &'static str) -> Result<(), LoadError> {
    let limits = getrlimit(Resource::Nofile);
    let wanted = open_files() + more;
    if limits.current.is_none_or(|soft| wanted <= soft) {
        return Ok(());
    }
    if let Some(limit) = limits.maximum.filter(|&hard| wanted > hard) {
        return Err(LoadError::TooManyFiles {
            wanted,
            limit,
            what,
        });
    }
    let raised = Rlimit {
        current: Some(wanted),
        maximum: limits.maximum,
    };
    let refused = |errno| LoadError::Channel("room for files", io::Error::from(errno));
    setrlimit(Resource::Nofile, raised).map_err(refused)
}

/// Open descriptors, without those of threads that read files just now.
fn open_files() -> u64 {
    fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_the_limit_and_one_past_it() {
        assert!(threads(MAX_THREADS, "rooms").is_ok());
        let refused = threads(MAX_THREADS + 1, "rooms").unwrap_err();
        assert_eq!(
            refused.to_string(),
            "this would take 16385 threads, more than 16384: ask for fewer rooms"
        );
        assert!(in_range("rooms", 7, 1..=7).is_ok());
        assert_eq!(
            in_range("rooms", 8, 1..=7).unwrap_err().to_string(),
            "rooms 8 is out of range: give 1 to 7"
        );
    }

    #[test]
    fn the_hard_limit_of_files_stands() {
        let Some(hard) = getrlimit(Resource::Nofile).maximum else {
            return;
        };
        let refused = make_room_for_files(hard, "rooms").unwrap_err();
        assert!(
            matches!(refused, LoadError::TooManyFiles { wanted, limit, .. }
                if limit == hard && wanted > hard)
        );
    }
}
