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
#[allow(missing_docs, reason = "the messages explain the variants")]
pub enum ConnectError {
    #[error("no daemon listens on {socket}: start a program with `prorata run` first")]
    NotRunning { socket: SocketPath },
    #[error("the daemon's socket {socket} cannot be reached: {source}")]
    Unreachable {
        socket: SocketPath,
        source: io::Error,
    },
    #[error(transparent)]
    Paths(#[from] PathError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("the daemon on {socket} refused the connection: {message}")]
    Refused { socket: SocketPath, message: String },
    #[error("a request of {0} bytes is too long: the limit is {MAX_REQUEST_BYTES} bytes")]
    RequestTooLong(usize),
    #[error("the daemon went away before it answered: try again, its log may say why")]
    HungUp,
    #[error("the daemon did not answer within {} s: it may be stopped", ANSWER_TIMEOUT.as_secs())]
    Slow,
    #[error("the daemon answered something that this program does not understand: {0}")]
    Malformed(String),
    #[error("the connection to the daemon failed: {0}")]
    Io(io::Error),
}

/// Why a daemon did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages explain the variants")]
pub enum StartError {
    #[error("the daemon did not start: {0}")]
    Failed(String),
    #[error(
        "{holder}, without progress for {} s: end that process, or see {}",
        patience.as_secs(),
        log.display()
    )]
    Stuck {
        holder: String,
        patience: Duration,
        log: PathBuf,
    },
    #[error("no daemon can be started, since the lock {} cannot be used: {source}", path.display())]
    Lock { path: PathBuf, source: io::Error },
}
