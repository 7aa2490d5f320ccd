//! Chat (2001, 5.2): rooms of users that send messages to one another.
//!
//! A user has four threads, two at either end of its connection, as in the published
//! program (chat 1.0.1):
//!
//! ```text
//!   client_send --socket--> server_receive --relay--> server_send
//!                                                          |
//!   client_receive of all others <--------sockets----------+
//! ```
//!
//! Each message has 100 bytes. Threads read and write messages one by one, and
//! block. The number of rooms determines the number of threads, the number of
//! messages how often they sleep and wake.
//!
//! The account: the end travels the way of the messages. A `client_send` that has
//! sent all closes its side. Its `server_receive` sees that and closes the relay.
//! The last `server_send` of a room to empty its relay closes all connections. By
//! then each `client_receive` must have all messages of all other users, in the
//! order of each sender.

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

/// Descriptors of a user: the ends of its connection, and a file for each thread
/// to read its statistics from.
const FILES: u64 = 2 + THREADS;

/// The sockets of a chat.
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
pub struct ChatSettings {
    /// Rooms, 1 or more.
    pub rooms: u64,
    /// Users of a room, 2 or more.
    pub users: u64,
    /// Messages that each user sends to all others of its room, 1 to a
    /// million.
    pub messages: u64,
    /// The sockets.
    pub transport: Transport,
}

impl ChatSettings {
    fn threads(&self) -> u64 {
        self.rooms
            .saturating_mul(self.users)
            .saturating_mul(THREADS)
    }

    /// Messages that arrive: each at all other users of the room.
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

/// The result of a chat.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ChatReport {
    /// The size of the chat.
    #[serde(flatten)]
    pub settings: ChatSettings,
    /// Threads that took part.
    pub threads: u64,
    /// Messages that arrived. None is missing.
    pub delivered: u64,
    /// Throughput: messages delivered a second (2001, Figures 2 to 4).
    pub messages_per_second: f64,
    /// What the kernel counted.
    #[serde(flatten)]
    pub performance: Performance,
}

/// Chats until all messages have arrived.
///
/// # Errors
/// Settings beyond the limits, before any thread starts; a refusal of the system;
/// lost messages.
pub fn run(settings: &ChatSettings, watch: &mut dyn Watch) -> Result<ChatReport, LoadError> {
    settings.check()?;
    let users = settings.rooms * settings.users;
    // One more socket listens.
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
    Ok(ChatReport {
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
