//! Why a load was refused or failed.

use std::io;
use std::ops::RangeInclusive;

use crate::MAX_THREADS;

/// Why a load was refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A setting is out of its range.
    #[error("{what} {value} is out of range: give {} to {}", .range.start(), .range.end())]
    OutOfRange {
        /// Which setting.
        what: &'static str,
        /// The value asked for.
        value: u64,
        /// Its range.
        range: RangeInclusive<u64>,
    },
    /// A probability is out of its range.
    #[error("yield probability {0} is out of range: give 0 to 1")]
    NoProbability(f64),
    /// More threads than a load may have.
    #[error("this would take {0} threads, more than {MAX_THREADS}: ask for fewer {1}")]
    TooManyThreads(u64, &'static str),
    /// More descriptors than the process may open.
    #[error(
        "this takes {wanted} open files and this process may have {limit}: ask for fewer {what}, \
         or raise the hard limit (ulimit -Hn)"
    )]
    TooManyFiles {
        /// Descriptors needed, those open already included.
        wanted: u64,
        /// The hard limit.
        limit: u64,
        /// The setting to reduce.
        what: &'static str,
    },
    /// The system refused a thread.
    #[error("cannot start thread {number} of {of}: {cause}")]
    Thread {
        /// The thread's number, from 1.
        number: usize,
        /// How many threads were to start.
        of: usize,
        /// The system's reason.
        cause: io::Error,
    },
    /// Sockets or pipes could not be made.
    #[error("cannot make {0}: {1}")]
    Channel(&'static str, io::Error),
    /// A socket or pipe failed.
    #[error("{0} failed: {1}")]
    Broken(&'static str, io::Error),
    /// Messages or rounds are missing.
    #[error("{lost} of {of} {what} are missing")]
    Lost {
        /// Messages or rounds.
        what: &'static str,
        /// How many are missing.
        lost: u64,
        /// How many there should be.
        of: u64,
    },
    /// A message arrived twice, too early or changed.
    #[error("user {receiver} of room {room} got a message that was not the next one of its sender")]
    Garbled {
        /// Room, from 0.
        room: usize,
        /// User, from 0.
        receiver: usize,
    },
    /// The watch ended the load.
    #[error("ended early")]
    Interrupted,
}
