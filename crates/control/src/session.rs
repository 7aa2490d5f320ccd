//! One connection, as the daemon sees it.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use prorata_protocol::frame::{self, FrameTooLong, Inbox};
use prorata_protocol::slots::{MOST_NEWS, SlotsAnswer, SlotsNews};
use prorata_protocol::{MAX_REQUEST_BYTES, MAX_RESPONSE_BYTES, Response};
use rustix::event::epoll::EventFlags;

use crate::control::Held;
use crate::peer::Peer;
use crate::refusal::Refusal;
use crate::slots::{Audience, News};

/// Bytes read at once.
const READ_BYTES: usize = 64 << 10;

/// A connection. The daemon answers one request before it reads the next.
#[derive(Debug)]
pub(crate) struct Session {
    stream: UnixStream,
    /// The client at the other end.
    pub peer: Peer,
    /// What ends with this connection.
    pub held: Vec<Held>,
    /// At most one request and what one read adds.
    inbox: Inbox,
    /// The rest of an answer that the peer has not taken yet: one frame, or all news that waited.
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
    /// Set once the connection watches the timetable: it takes no more requests.
    watch: Option<Watch>,
}

/// News that wait until the peer has taken earlier ones.
#[derive(Debug)]
struct Watch {
    /// Whether slots that became free are told.
    freed: bool,
    /// Of at most [`MOST_NEWS`] slots.
    news: VecDeque<SlotsNews>,
    /// The slots that they name.
    slots: usize,
    /// News that found no room.
    missed: u64,
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
            watch: None,
        }
    }

    /// Something more ends with the connection. Of several timetables only the last is open.
    pub fn hold(&mut self, more: Option<Held>) {
        if let Some(Held::Timetable(_)) = more {
            self.held.retain(|held| !matches!(held, Held::Timetable(_)));
        }
        self.held.extend(more);
    }

    /// The connection only sends from now on.
    pub fn watch(&mut self, freed: bool) {
        self.watch = Some(Watch {
            freed,
            news: VecDeque::new(),
            slots: 0,
            missed: 0,
        });
    }

    /// Whether the connection watches the timetable.
    pub fn is_watching(&self) -> bool {
        self.watch.is_some()
    }

    /// Sends news, or has them wait, if they are for this peer.
    pub fn tell(&mut self, news: &News, now: Instant) -> io::Result<()> {
        let Some(watch) = &mut self.watch else {
            return Ok(());
        };
        let is_for_peer = match news.audience {
            Audience::User(user) => self.peer.principal.acts_for(user),
            Audience::WantsFree => watch.freed,
            Audience::All => true,
        };
        if !is_for_peer {
            return Ok(());
        }
        let slots = match &news.news {
            SlotsNews::Freed(cells) => cells.len(),
            _ => 1,
        };
        if watch.slots + slots <= MOST_NEWS {
            watch.slots += slots;
            watch.news.push_back(news.news.clone());
        } else {
            watch.missed += 1;
        }
        match self.outbox.is_empty() {
            true => self.tell_waiting(now),
            false => Ok(()),
        }
    }

    /// Sends all news that wait.
    fn tell_waiting(&mut self, now: Instant) -> io::Result<()> {
        let Some(watch) = &mut self.watch else {
            return Ok(());
        };
        watch.slots = 0;
        let missed = std::mem::take(&mut watch.missed);
        let missed = (missed > 0).then_some(SlotsNews::Missed(missed));
        let news = watch.news.drain(..).chain(missed);
        for news in news {
            let response = Response::Slots(SlotsAnswer::News(news));
            let frame = frame::encode(&response, MAX_RESPONSE_BYTES);
            self.outbox.extend(frame.expect("a table's news are short"));
        }
        if self.outbox.is_empty() {
            return Ok(());
        }
        self.deadline = Some(now + self.patience);
        self.flush(now)
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
            self.tell_waiting(now)?;
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
