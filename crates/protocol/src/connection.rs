//! The client's side of a connection to the daemon.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::answer::{Response, StatusReport};
use crate::error::ConnectError;
use crate::frame::{self, Inbox};
use crate::listener::Listener;
use crate::paths::SocketPath;
use crate::request::{Envelope, MAX_REQUEST_BYTES, MAX_RESPONSE_BYTES, PROTOCOL_VERSION, Request};
use crate::slots::{SlotsAnswer, SlotsNews, SlotsReport, SlotsRequest};

/// Longest wait for the answer of a daemon that works. It answers within milliseconds; a burst of
/// programs takes its time, since each registration looks at all processes of the machine.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// After each such wait for an answer, [`Listener::is_idle_since`] finds out whether to wait on.
const LOOK_AGAIN: Duration = Duration::from_millis(2_500);

/// A conversation with a daemon; blocking.
///
/// Transfers made with `hold` last as long as the connection.
#[derive(Debug)]
pub struct Connection {
    conversation: Conversation,
    /// The daemon's state when the connection was opened.
    status: StatusReport,
}

impl Connection {
    /// Connects to a running daemon, and checks that both speak the same
    /// version.
    pub fn open(socket: &SocketPath) -> Result<Connection, ConnectError> {
        Self::open_within(socket, LONGEST_WAIT)
    }

    /// The same where no answer may take longer than `longest_wait`. The clock of that has steps of
    /// 2.5 s.
    pub fn open_within(
        socket: &SocketPath,
        longest_wait: Duration,
    ) -> Result<Connection, ConnectError> {
        let stream = reach(socket)?;
        stream
            .set_read_timeout(Some(LOOK_AGAIN))
            .and_then(|()| stream.set_write_timeout(Some(LOOK_AGAIN)))
            .map_err(ConnectError::Io)?;
        let mut opening = Conversation {
            daemon: Listener::of(&stream).map_err(ConnectError::Io)?,
            stream,
            inbox: Inbox::default(),
            longest_wait,
        };
        // A daemon that is about to end hangs up without accepting the connection.
        // An answer proves that the daemon has accepted it, and stays as long as
        // the connection.
        match opening.call(&Request::Status) {
            Ok(Response::Full { message }) => Err(ConnectError::Full {
                socket: socket.clone(),
                message,
            }),
            Ok(Response::Refused { message }) => Err(ConnectError::Refused {
                socket: socket.clone(),
                message,
            }),
            Ok(Response::Status(status)) => Ok(Connection {
                conversation: opening,
                status,
            }),
            Ok(other) => Err(ConnectError::Malformed(format!("{other:?}"))),
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

    /// The daemon's state when the connection was opened.
    pub fn status(&self) -> &StatusReport {
        &self.status
    }

    /// The user that the daemon runs as.
    pub fn user(&self) -> u32 {
        self.conversation.daemon.user
    }

    /// Sends a request and waits for the answer. A refusal is an answer too:
    /// [`Response::Refused`].
    pub fn call(&mut self, request: &Request) -> Result<Response, ConnectError> {
        self.conversation.call(request)
    }

    /// Has the daemon tell this connection, from now on, which claims of the user end, and with
    /// `freed` which slots become free.
    pub fn watch_slots(mut self, freed: bool) -> Result<SlotsWatch, ConnectError> {
        let request = Request::Slots(SlotsRequest::Watch { freed });
        match self.call(&request)? {
            Response::Slots(SlotsAnswer::Open(table)) => Ok(SlotsWatch {
                conversation: self.conversation,
                table,
            }),
            Response::Refused { message } => Err(ConnectError::Denied(message)),
            other => Err(ConnectError::Malformed(format!("{other:?}"))),
        }
    }
}

/// News of the timetable, as they happen.
#[derive(Debug)]
pub struct SlotsWatch {
    conversation: Conversation,
    /// The table when the watch began.
    table: SlotsReport,
}

impl SlotsWatch {
    /// The table when the watch began.
    pub fn table(&self) -> &SlotsReport {
        &self.table
    }

    /// Whether there are news that have been read already: the descriptor does not tell of them.
    pub fn has_news(&self) -> bool {
        self.conversation.inbox.has_frame(MAX_RESPONSE_BYTES)
    }

    /// Waits for the next news, for ever if there are none.
    pub fn next_news(&mut self) -> Result<SlotsNews, ConnectError> {
        let body = loop {
            match self.conversation.read_frame() {
                Ok(body) => break body,
                // A daemon has nothing to say while nothing happens.
                Err(ConnectError::Stopped { .. } | ConnectError::Slow(_)) => {}
                Err(error) => return Err(error),
            }
        };
        let malformed = |error: &dyn std::fmt::Display| ConnectError::Malformed(error.to_string());
        match serde_json::from_slice(&body).map_err(|error| malformed(&error))? {
            Response::Slots(SlotsAnswer::News(news)) => Ok(news),
            Response::Refused { message } => Err(malformed(&message)),
            other => Err(malformed(&format!("{other:?}"))),
        }
    }
}

impl AsFd for SlotsWatch {
    /// Readable when there are news, or part of them, beside those of [`SlotsWatch::has_news`].
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.conversation.stream.as_fd()
    }
}

/// Whether a process listens on the socket.
pub(crate) fn listens(socket: &SocketPath) -> bool {
    matches!(reach(socket), Ok(_) | Err(ConnectError::Full { .. }))
}

/// Connects to the socket without waiting. Where too many connections wait to be accepted, a
/// stopped daemon would make this process wait for ever.
fn reach(socket: &SocketPath) -> Result<UnixStream, ConnectError> {
    let io_error = |error: Errno| ConnectError::Io(error.into());
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let stream = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None);
    let stream = UnixStream::from(stream.map_err(io_error)?);
    let address = SocketAddrUnix::new(socket.path()).map_err(io_error)?;
    match connect(&stream, &address) {
        Ok(()) => {}
        Err(Errno::NOENT | Errno::CONNREFUSED) => {
            return Err(ConnectError::NotRunning {
                socket: socket.clone(),
            });
        }
        Err(Errno::AGAIN) => {
            return Err(ConnectError::Full {
                socket: socket.clone(),
                message: "has a full queue of new connections, so it is busy or stopped".to_owned(),
            });
        }
        Err(error) => {
            return Err(ConnectError::Unreachable {
                socket: socket.clone(),
                source: error.into(),
            });
        }
    }
    stream.set_nonblocking(false).map_err(ConnectError::Io)?;
    Ok(stream)
}

/// Requests and answers on a stream.
#[derive(Debug)]
struct Conversation {
    stream: UnixStream,
    inbox: Inbox,
    daemon: Listener,
    /// Longest wait for an answer.
    longest_wait: Duration,
}

impl Conversation {
    fn call(&mut self, request: &Request) -> Result<Response, ConnectError> {
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
            (Err(ConnectError::HungUp), Err(error)) => return Err(connection_error(error)),
            (Err(error), _) => return Err(error),
        };
        serde_json::from_slice(&body).map_err(|error| ConnectError::Malformed(error.to_string()))
    }

    fn read_frame(&mut self) -> Result<Vec<u8>, ConnectError> {
        let mut chunk = vec![0; 64 << 10];
        let begun = Instant::now();
        let cpu_ticks = self.daemon.cpu_ticks();
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
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let waited = begun.elapsed();
                    if self.daemon.is_idle_since(cpu_ticks) {
                        let pid = self.daemon.pid;
                        return Err(ConnectError::Stopped { pid, waited });
                    }
                    if waited >= self.longest_wait {
                        return Err(ConnectError::Slow(waited));
                    }
                }
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
        _ => ConnectError::Io(error),
    }
}
