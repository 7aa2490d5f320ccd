//! The client's side of a connection to the daemon.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::answer::Response;
use crate::frame::{self, Inbox};
use crate::paths::{DaemonPaths, PathError, SocketPath};
use crate::request::{Envelope, MAX_REQUEST_BYTES, MAX_RESPONSE_BYTES, PROTOCOL_VERSION, Request};
use crate::start::{self, StartError};

/// Longest wait for an answer. The daemon answers within milliseconds; only a
/// stopped or stuck one takes longer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// A conversation with a daemon; blocking.
///
/// Transfers made with `hold` last as long as the connection.
#[derive(Debug)]
pub struct Connection {
    stream: UnixStream,
    inbox: Inbox,
}

/// Why a daemon could not be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// Nobody listens.
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
    /// There is no place for a daemon.
    #[error(transparent)]
    Paths(#[from] PathError),
    /// A daemon could not be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The daemon does not talk to us (another version, too many connections).
    #[error("the daemon on {socket} refused the connection: {message}")]
    Refused {
        /// Which one.
        socket: SocketPath,
        /// Its own words.
        message: String,
    },
    /// The request is longer than a daemon reads.
    #[error("a request of {0} bytes is too long: the limit is {MAX_REQUEST_BYTES} bytes")]
    RequestTooLong(usize),
    /// The connection ended before the answer.
    #[error("the daemon went away before it answered: try again, its log may say why")]
    HungUp,
    /// No answer within half a minute.
    #[error("the daemon did not answer within {} s: it may be stopped", ANSWER_TIMEOUT.as_secs())]
    Slow,
    /// An answer that is not one.
    #[error("the daemon answered something that this program does not understand: {0}")]
    Malformed(String),
    /// Reading or writing failed.
    #[error("the connection to the daemon failed: {0}")]
    Io(io::Error),
}

impl Connection {
    /// Connects to a daemon that runs already, and checks that it speaks our
    /// language.
    pub fn open(socket: &SocketPath) -> Result<Connection, ConnectError> {
        let stream = UnixStream::connect(socket.path()).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                ConnectError::NotRunning {
                    socket: socket.clone(),
                }
            }
            _ => ConnectError::Unreachable {
                socket: socket.clone(),
                source,
            },
        })?;
        stream
            .set_read_timeout(Some(ANSWER_TIMEOUT))
            .map_err(ConnectError::Io)?;
        stream
            .set_write_timeout(Some(ANSWER_TIMEOUT))
            .map_err(ConnectError::Io)?;
        let mut connection = Connection {
            stream,
            inbox: Inbox::default(),
        };
        // A daemon that is about to go hangs up without having accepted us. An
        // answer proves that it has, and that it stays as long as we do.
        match connection.call(&Request::Status) {
            Ok(Response::Refused { message }) => Err(ConnectError::Refused {
                socket: socket.clone(),
                message,
            }),
            Ok(_) => Ok(connection),
            Err(ConnectError::HungUp) => Err(ConnectError::NotRunning {
                socket: socket.clone(),
            }),
            Err(error) => Err(error),
        }
    }

    /// Connects to the daemon of `paths`, starting one by `starter` if none
    /// listens. Of several programs that find none at the same time one
    /// starts it and the others wait.
    ///
    /// `starter` returns once the daemon listens or has failed; see
    /// [`crate::start_daemon`].
    pub fn open_or_start(
        paths: &DaemonPaths,
        starter: &dyn Fn() -> io::Result<()>,
    ) -> Result<Connection, ConnectError> {
        match Self::open_if_running(&paths.socket)? {
            Some(connection) => Ok(connection),
            None => start::open_starting(paths, starter),
        }
    }

    /// `None` where nobody listens.
    pub fn open_if_running(socket: &SocketPath) -> Result<Option<Connection>, ConnectError> {
        match Self::open(socket) {
            Ok(connection) => Ok(Some(connection)),
            Err(ConnectError::NotRunning { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Asks and waits for the answer. What the daemon refuses is an answer
    /// too: [`Response::Refused`].
    pub fn call(&mut self, request: &Request) -> Result<Response, ConnectError> {
        let envelope = Envelope {
            version: PROTOCOL_VERSION,
            request: request.clone(),
        };
        let frame =
            frame::encode(&envelope, MAX_REQUEST_BYTES).map_err(ConnectError::RequestTooLong)?;
        // A daemon that hangs up on us may have said why: read in any case.
        let sent = self.stream.write_all(&frame);
        let body = match (self.read_frame(), sent) {
            (Ok(body), _) => body,
            (Err(ConnectError::HungUp), Err(error)) | (Err(_), Err(error)) => {
                return Err(connection_error(error));
            }
            (Err(error), Ok(())) => return Err(error),
        };
        serde_json::from_slice(&body).map_err(|error| ConnectError::Malformed(error.to_string()))
    }

    fn read_frame(&mut self) -> Result<Vec<u8>, ConnectError> {
        let mut chunk = vec![0; 64 << 10];
        loop {
            let frame = self
                .inbox
                .take_frame(MAX_RESPONSE_BYTES)
                .map_err(|too_long| {
                    ConnectError::Malformed(format!("an answer of {} bytes", too_long.0))
                })?;
            if let Some(body) = frame {
                return Ok(body);
            }
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(ConnectError::HungUp),
                Ok(length) => self.inbox.extend(&chunk[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(connection_error(error)),
            }
        }
    }
}

fn connection_error(error: io::Error) -> ConnectError {
    match error.kind() {
        io::ErrorKind::BrokenPipe
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::UnexpectedEof => ConnectError::HungUp,
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ConnectError::Slow,
        _ => ConnectError::Io(error),
    }
}
