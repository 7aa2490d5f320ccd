//! One connection, as the daemon sees it.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use prorata_core::ids::TransferId;
use prorata_protocol::frame::{self, FrameTooLong, Inbox};
use prorata_protocol::{MAX_REQUEST_BYTES, MAX_RESPONSE_BYTES, Response};
use rustix::event::epoll::EventFlags;

use crate::peer::Peer;
use crate::refusal::Refusal;

/// Bytes read at once.
const READ_BYTES: usize = 64 << 10;

/// A connection. The daemon answers one request before it reads the next.
#[derive(Debug)]
pub(crate) struct Session {
    stream: UnixStream,
    /// The client at the other end.
    pub peer: Peer,
    /// Transfers that end with this connection.
    pub held: Vec<TransferId>,
    /// At most one request and what one read adds.
    inbox: Inbox,
    /// The rest of an answer that the peer has not taken yet; at most one
    /// frame.
    outbox: Vec<u8>,
    /// The daemon reads no more: the client closed its side, or sent something
    /// after which the frames are lost.
    deaf: bool,
    /// When to give up on the peer: set while a request has begun or an answer
    /// lies in the outbox.
    deadline: Option<Instant>,
    /// How long a request may take from its first byte to its last, and the
    /// peer to take an answer.
    patience: Duration,
}

/// Tells a client that has just connected why the daemon does not serve it.
/// `stream` does not block.
pub(crate) fn turn_away(mut stream: UnixStream, refusal: &Refusal) {
    let message = refusal.to_string();
    let response = match refusal {
        Refusal::TooManyConnections { .. } => Response::Full { message },
        _ => Response::Refused { message },
    };
    let frame = frame::encode(&response, MAX_RESPONSE_BYTES).expect("refusals are short");
    // The socket has room, since nothing was sent before. A client that has
    // gone misses the answer.
    let _ = stream.write(&frame);
}

impl Session {
    /// Starts to talk with `peer`, which has just connected by `stream`. The
    /// stream does not block.
    pub fn new(stream: UnixStream, peer: Peer, patience: Duration) -> Self {
        Self {
            stream,
            peer,
            held: Vec::new(),
            inbox: Inbox::default(),
            outbox: Vec::new(),
            deaf: false,
            deadline: None,
            patience,
        }
    }

    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// What it waits for. Hang-ups are always told.
    pub fn interest(&self) -> EventFlags {
        if !self.outbox.is_empty() {
            EventFlags::OUT
        } else if self.deaf || self.has_frame() {
            EventFlags::empty()
        } else {
            EventFlags::IN
        }
    }

    /// Whether a request can be taken and answered.
    pub fn has_frame(&self) -> bool {
        self.outbox.is_empty() && self.inbox.has_frame(MAX_REQUEST_BYTES)
    }

    /// Whether the connection is over.
    pub fn is_over(&self) -> bool {
        self.deaf && self.outbox.is_empty() && !self.has_frame()
    }

    /// When to call [`Self::expire`].
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline.filter(|_| !self.has_frame())
    }

    /// Does what the socket is ready for. An error means that the peer is
    /// gone.
    pub fn advance(&mut self, now: Instant) -> io::Result<()> {
        if !self.outbox.is_empty() {
            self.flush(now)?;
        }
        if self.interest() == EventFlags::IN {
            self.read(now)?;
        }
        Ok(())
    }

    fn read(&mut self, now: Instant) -> io::Result<()> {
        let mut chunk = [0; READ_BYTES];
        match self.stream.read(&mut chunk) {
            Ok(0) => self.deaf = true,
            Ok(length) => {
                self.inbox.extend(&chunk[..length]);
                self.deadline.get_or_insert(now + self.patience);
            }
            Err(error) if is_transient(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// The next request, if all of it is there.
    pub fn take_frame(&mut self) -> Result<Option<Vec<u8>>, Refusal> {
        if !self.has_frame() {
            return Ok(None);
        }
        let frame = self.inbox.take_frame(MAX_REQUEST_BYTES);
        frame.map_err(|FrameTooLong(length)| Refusal::TooLong(length))
    }

    /// Sends an answer, as much of it as the peer takes now.
    pub fn answer(&mut self, response: &Response, now: Instant) -> io::Result<()> {
        self.outbox = frame::encode(response, MAX_RESPONSE_BYTES).unwrap_or_else(|length| {
            let message = Refusal::AnswerTooLong(length).to_string();
            frame::encode(&Response::Refused { message }, MAX_RESPONSE_BYTES)
                .expect("refusals are short")
        });
        self.deadline = Some(now + self.patience);
        self.flush(now)
    }

    /// Sends the reason why the daemon stops listening to this client.
    pub fn dismiss(&mut self, refusal: &Refusal, now: Instant) -> io::Result<()> {
        self.deaf = true;
        self.inbox = Inbox::default();
        self.answer(
            &Response::Refused {
                message: refusal.to_string(),
            },
            now,
        )
    }

    fn flush(&mut self, now: Instant) -> io::Result<()> {
        match self.stream.write(&self.outbox) {
            Ok(length) => drop(self.outbox.drain(..length)),
            Err(error) if is_transient(&error) => {}
            Err(error) => return Err(error),
        }
        if self.outbox.is_empty() {
            // What has come in of the next request has its own time.
            self.deadline = (!self.inbox.is_empty()).then_some(now + self.patience);
        }
        Ok(())
    }

    /// Gives up on a peer that took too long. Tells it so if it was sending.
    pub fn expire(&mut self, now: Instant) -> io::Result<()> {
        if self.deadline.is_none_or(|deadline| deadline > now) || self.has_frame() {
            Ok(())
        } else if self.outbox.is_empty() {
            self.dismiss(&Refusal::TooSlow(self.patience), now)
        } else {
            Err(io::ErrorKind::TimedOut.into())
        }
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
