//! Why slots are not to be had: one sentence each.

use prorata_bulletin::BulletinError;
use prorata_protocol::{ConnectError, PathError};

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SlotsError {
    /// The daemon cannot be asked.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The daemon has no directories.
    #[error(transparent)]
    Paths(#[from] PathError),
    /// The table cannot be read.
    #[error(transparent)]
    Bulletin(#[from] BulletinError),
    /// The daemon refused the call; nothing has changed.
    #[error("{0}")]
    Refused(String),
    /// The table changed whenever the program had looked at it.
    #[error("the timetable changes faster than it can be looked at: try again later")]
    Restless,
    /// The library scheduler finds no room.
    #[error("the timetable has no room for {wanted}: {fix}")]
    NoRoom {
        /// What was wanted.
        wanted: String,
        /// What may help.
        fix: &'static str,
    },
    /// A wish that no table can fulfil.
    #[error("{0}")]
    Wish(String),
    /// What ran in the slots has ended, and the claims with it.
    #[error("what ran in the slots has ended")]
    ScheduleeEnded,
    /// The table was closed.
    #[error("the timetable was closed: all claims have ended")]
    Closed,
}
