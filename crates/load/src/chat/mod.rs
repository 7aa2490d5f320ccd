//! Chat (2001, 5.2): rooms of users who send messages to one another.
//!
//! A user has four threads, a pair on either end of its connection, as in the published
//! program (chat 1.0.1):
//!
//! ```text
//!   client_send --socket--> server_receive --relay--> server_send
//!                                                          |
//!   client_receive of all others <--------sockets----------+
//! ```
//!
//! Each message is of 100 bytes, and is read and written by itself, blocking.
//! The number of rooms says how many threads there are, the number of messages
//! how often they sleep and wake.
//!
//! The account: ends travel the way of the messages. Who has sent all closes
//! its side; `server_receive` sees that and closes the relay; the last
//! `server_send` of a room to have emptied its relay closes all connections; and
//! what `client_receive` has got by then must be all messages of all others,
//! those of each sender in their order.

mod connection;
mod relay;
mod room;

use std::iter::repeat_with;

use serde::Serialize;

use self::connection::Pairs;
use self::room::Room;
use crate::crew::{self, Job, Running};
use crate::limits::{in_range, make_room_for_files, threads};
use crate::{LoadError, Performance, Watch};

/// Threads of a user.
const THREADS: u64 = 4;

/// Descriptors of a user: an end for its client and one for the server. Its
/// threads look each into a file besides.
const FILES: u64 = 2 + THREADS;

/// What messages travel over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// TCP over the loopback interface, as in the paper.
    Tcp,
    /// Pairs of Unix stream sockets, for machines without that interface.
    Unix,
}

/// How large a chat is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Settings {
    /// Rooms, 1 or more.
    pub rooms: u64,
    /// Users of a room, 2 or more.
    pub users: u64,
    /// Messages that each user sends to all others of its room, 1 to a
    /// million.
    pub messages: u64,
    /// What they travel over.
    pub transport: Transport,
}

impl Settings {
    /// Threads that it takes.
    fn threads(&self) -> u64 {
        self.rooms
            .saturating_mul(self.users)
            .saturating_mul(THREADS)
    }

    /// Messages that arrive in all: each at all others of the room.
    fn deliveries(&self) -> u64 {
        self.rooms * self.users * self.messages * (self.users - 1)
    }

    fn check(&self) -> Result<(), LoadError> {
        in_range("rooms", self.rooms, 1..=u64::from(u32::MAX))?;
        in_range("users", self.users, 2..=u64::from(u32::MAX))?;
        in_range("messages", self.messages, 1..=1_000_000)?;
        threads(self.threads(), "rooms or users")
    }
}

/// What came out.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Report {
    /// How large it was.
    #[serde(flatten)]
    pub settings: Settings,
    /// Threads that took part.
    pub threads: u64,
    /// Messages that arrived, which are all that should.
    pub delivered: u64,
    /// Throughput: messages delivered a second (2001, Figures 2 to 4).
    pub messages_per_second: f64,
    /// How it went.
    #[serde(flatten)]
    pub performance: Performance,
}

/// Chats until all messages have arrived. Threads and sockets live for that
/// long.
///
/// # Errors
/// Settings beyond the limits, before anything is started; what the system
/// refuses; messages that are lost.
pub fn run(settings: &Settings, watch: &mut dyn Watch) -> Result<Report, LoadError> {
    settings.check()?;
    let users = settings.rooms * settings.users;
    // One more to listen on.
    make_room_for_files(users * FILES + 1, "rooms or users")?;
    let refused = |error| LoadError::Channel("sockets", error);
    let mut pairs = Pairs::new(settings.transport).map_err(refused)?;
    let rooms: Vec<Room> = (0..settings.rooms as usize)
        .map(|number| {
            let pairs = repeat_with(|| pairs.make()).take(settings.users as usize);
            Ok(Room::new(number, pairs.collect::<Result<_, _>>()?))
        })
        .collect::<Result<_, _>>()
        .map_err(refused)?;
    drop(pairs);
    let chat = Chat {
        rooms,
        total: settings.deliveries(),
    };
    let jobs: Vec<Job<'_, ()>> = chat
        .rooms
        .iter()
        .flat_map(|room| room.jobs(settings.messages))
        .collect();
    let finished = crew::run(&chat, jobs, watch)?;
    let delivered = chat.done();
    if delivered != chat.total {
        return Err(LoadError::Lost {
            what: "messages",
            lost: chat.total - delivered,
            of: chat.total,
        });
    }
    let elapsed_ns = finished.performance.elapsed_ns.max(1);
    Ok(Report {
        settings: *settings,
        threads: settings.threads(),
        delivered,
        messages_per_second: delivered as f64 * 1e9 / elapsed_ns as f64,
        performance: finished.performance,
    })
}

struct Chat {
    rooms: Vec<Room>,
    total: u64,
}

impl Running for Chat {
    fn done(&self) -> u64 {
        self.rooms.iter().map(Room::delivered).sum()
    }

    fn total(&self) -> u64 {
        self.total
    }

    fn stop(&self) {
        self.rooms.iter().for_each(Room::close);
    }
}
