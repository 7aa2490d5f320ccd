//! Why a daemon could not be asked or started: one sentence each.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::paths::{PathError, SocketPath};
use crate::request::MAX_REQUEST_BYTES;

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
    /// A request of this connection's beginning was refused.
    #[error("{0}")]
    Denied(String),
    /// [`crate::open_or_start`] waits for a turn and tries again.
    #[error("the daemon on {socket} {message}: try again later")]
    Full { socket: SocketPath, message: String },
    #[error("a request of {0} bytes is too long: the limit is {MAX_REQUEST_BYTES} bytes")]
    RequestTooLong(usize),
    #[error("the daemon went away before it answered: try again, its log may say why")]
    HungUp,
    #[error(
        "the daemon (process {pid}) did not answer within {} s and does nothing: continue it with \
         `kill -CONT {pid}`, or end it with `kill -KILL {pid}`",
        waited.as_secs()
    )]
    Stopped { pid: u32, waited: Duration },
    #[error("the daemon did not answer within {} s: try again later", .0.as_secs())]
    Slow(Duration),
    #[error("the daemon answered something that this program does not understand: {0}")]
    Malformed(String),
    #[error("the connection to the daemon failed: {0}")]
    Io(io::Error),
}

impl ConnectError {
    /// Whether the daemon or its directories are in trouble, so that a program can only do without
    /// it. Otherwise the caller asked for something that the daemon refuses.
    pub fn is_daemons_trouble(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::Start(_)
            | Self::Full { .. }
            | Self::HungUp
            | Self::Stopped { .. }
            | Self::Slow(_)
            | Self::Io(_) => true,
            Self::Paths(error) => {
                !matches!(error, PathError::NotAbsolute(_) | PathError::TooLong(_))
            }
            Self::NotRunning { .. }
            | Self::Refused { .. }
            | Self::Denied(_)
            | Self::RequestTooLong(_)
            | Self::Malformed(_) => false,
        }
    }
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
