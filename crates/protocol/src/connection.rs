//! The client's side of a connection to the daemon.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

use crate::answer::Response;
use crate::error::{ANSWER_TIMEOUT, ConnectError};
use crate::frame::{self, Inbox};
use crate::paths::SocketPath;
use crate::request::{Envelope, MAX_REQUEST_BYTES, MAX_RESPONSE_BYTES, PROTOCOL_VERSION, Request};

/// A conversation with a daemon; blocking.
///
/// Transfers made with `hold` last as long as the connection.
#[derive(Debug)]
pub struct Connection {
    stream: UnixStream,
    inbox: Inbox,
}

impl Connection {
    /// Connects to a running daemon, and checks that both speak the same
    /// version.
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
        // A daemon that is about to end hangs up without accepting the connection.
        // An answer proves that the daemon has accepted it, and stays as long as
        // the connection.
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

    /// `None` where no daemon listens.
    pub fn open_if_running(socket: &SocketPath) -> Result<Option<Connection>, ConnectError> {
        match Self::open(socket) {
            Ok(connection) => Ok(Some(connection)),
            Err(ConnectError::NotRunning { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends a request and waits for the answer. A refusal is an answer too:
    /// [`Response::Refused`].
    pub fn call(&mut self, request: &Request) -> Result<Response, ConnectError> {
        let envelope = Envelope {
            version: PROTOCOL_VERSION,
            request: request.clone(),
        };
        let frame =
            frame::encode(&envelope, MAX_REQUEST_BYTES).map_err(ConnectError::RequestTooLong)?;
        // A daemon that hangs up may have said why, so read in any case.
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
