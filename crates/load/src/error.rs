//! Why a load was refused or failed.

use std::io;
use std::ops::RangeInclusive;

use crate::MAX_THREADS;

/// Why a load was refused or failed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages explain the variants")]
pub enum LoadError {
    #[error("{what} {value} is out of range: give {} to {}", .range.start(), .range.end())]
    OutOfRange {
        what: &'static str,
        value: u64,
        range: RangeInclusive<u64>,
    },
    #[error(
        "the time from {begin_ns} to {end_ns} is empty or more than a day away: give one that lies \
         ahead on the monotonic clock"
    )]
    Window { begin_ns: u64, end_ns: u64 },
    #[error("the time to {end_ns} is over: give one that ends ahead on the monotonic clock")]
    Over { end_ns: u64 },
    #[error("yield probability {0} is out of range: give 0 to 1")]
    NoProbability(f64),
    #[error("this would take {0} threads, more than {MAX_THREADS}: ask for fewer {1}")]
    TooManyThreads(u64, &'static str),
    #[error(
        "this takes {wanted} open files and this process may have {limit}: ask for fewer {what}, \
         or raise the hard limit (ulimit -Hn)"
    )]
    TooManyFiles {
        /// Descriptors needed, those open already included.
        wanted: u64,
        limit: u64,
        what: &'static str,
    },
    #[error("cannot start thread {number} of {of}: {cause}")]
    Thread {
        /// The thread's number, from 1.
        number: usize,
        of: usize,
        cause: io::Error,
    },
    #[error("cannot make {0}: {1}")]
    Channel(&'static str, io::Error),
    #[error("{0} failed: {1}")]
    Broken(&'static str, io::Error),
    #[error("{lost} of {of} {what} are missing")]
    Lost {
        what: &'static str,
        lost: u64,
        of: u64,
    },
    #[error("user {receiver} of room {room} got a message that was not the next one of its sender")]
    Garbled {
        /// Room, from 0.
        room: usize,
        /// User, from 0.
        receiver: usize,
    },
    #[error("cannot run {program}: {cause}")]
    Program { program: String, cause: io::Error },
    #[error("the program on the terminal ended before all keys were echoed")]
    ProgramEnded,
    #[error("ended early")]
    Interrupted,
}
