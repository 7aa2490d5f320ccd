//! Why a daemon could not be asked or started: one sentence each.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::paths::{PathError, SocketPath};
use crate::request::MAX_REQUEST_BYTES;

/// Longest wait for an answer. The daemon answers within milliseconds; only a
/// stopped or stuck one takes longer.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Why a daemon could not be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// No daemon listens.
    #[error("no daemon listens on {socket}: start a program with `prorata run` first")]
    NotRunning {
        /// Where one was expected.
        socket: SocketPath,
    },
    /// The socket could not be reached.
    #[error("the daemon's socket {socket} cannot be reached: {source}")]
    Unreachable {
        /// Which one.
        socket: SocketPath,
        /// Why not.
        source: io::Error,
    },
    /// A daemon has no directory or socket here.
    #[error(transparent)]
    Paths(#[from] PathError),
    /// A daemon could not be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The daemon refuses the client: another version, too many connections.
    #[error("the daemon on {socket} refused the connection: {message}")]
    Refused {
        /// Which one.
        socket: SocketPath,
        /// The daemon's own words.
        message: String,
    },
    /// The request is longer than a daemon reads.
    #[error("a request of {0} bytes is too long: the limit is {MAX_REQUEST_BYTES} bytes")]
    RequestTooLong(usize),
    /// The connection ended before the answer.
    #[error("the daemon went away before it answered: try again, its log may say why")]
    HungUp,
    /// No answer came in time.
    #[error("the daemon did not answer within {} s: it may be stopped", ANSWER_TIMEOUT.as_secs())]
    Slow,
    /// The answer is none that a daemon gives.
    #[error("the daemon answered something that this program does not understand: {0}")]
    Malformed(String),
    /// Reading or writing failed.
    #[error("the connection to the daemon failed: {0}")]
    Io(io::Error),
}

/// Why a daemon did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The daemon ended, with this explanation.
    #[error("the daemon did not start: {0}")]
    Failed(String),
    /// A process that others wait for is stuck.
    #[error(
        "{holder}, without progress for {} s: end that process, or see {}",
        patience.as_secs(),
        log.display()
    )]
    Stuck {
        /// Its pid, and what it does.
        holder: String,
        /// For how long it did nothing.
        patience: Duration,
        /// Where to look.
        log: PathBuf,
    },
    /// A lock file could not be used.
    #[error("no daemon can be started, since the lock {} cannot be used: {source}", path.display())]
    Lock {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}
