//! A room: its users, and the four threads of each.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::connection::Connection;
use super::relay::Relay;
use crate::LoadError;
use crate::crew::Job;

/// Bytes of a message (2001, 5.2).
const LENGTH: usize = 100;

/// The sender, the number of the message among the sender's, and filling.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message([u8; LENGTH]);

impl Message {
    /// The message `number` of `sender`.
    pub fn new(sender: u32, number: u32) -> Self {
        let mut bytes = [b'.'; LENGTH];
        bytes[..4].copy_from_slice(&sender.to_le_bytes());
        bytes[4..8].copy_from_slice(&number.to_le_bytes());
        Self(bytes)
    }

    fn read(connection: &Connection) -> std::io::Result<Option<Self>> {
        let mut message = Self([0; LENGTH]);
        let is_there = connection.read(&mut message.0)?;
        Ok(is_there.then_some(message))
    }

    fn sender(&self) -> u32 {
        let [a, b, c, d, ..] = self.0;
        u32::from_le_bytes([a, b, c, d])
    }
}

/// Users that hear one another.
pub struct Room {
    number: usize,
    users: Vec<User>,
    /// Users whose messages have not all been sent on by the server.
    speaking: AtomicUsize,
}

struct User {
    client: Connection,
    /// Held while a message is written, so that messages of several senders do not
    /// mix.
    server_writes: Mutex<()>,
    server: Connection,
    relay: Relay,
    /// Messages received. Only the user's `client_receive` writes this.
    arrived: AtomicU64,
}

impl Room {
    /// A room with a user for each connection: the client's end and the server's.
    pub fn new(number: usize, connections: Vec<(Connection, Connection)>) -> Self {
        let users = connections.into_iter().map(|(client, server)| User {
            client,
            server,
            server_writes: Mutex::new(()),
            relay: Relay::new(),
            arrived: AtomicU64::new(0),
        });
        let users: Vec<User> = users.collect();
        Self {
            number,
            speaking: AtomicUsize::new(users.len()),
            users,
        }
    }

    /// The work of the room's threads, where each user sends so many messages.
    pub fn jobs(&self, messages: u64) -> impl Iterator<Item = Job<'_, ()>> {
        (0..self.users.len()).flat_map(move |user| -> [Job<'_, ()>; 4] {
            [
                Box::new(move || self.client_receive(user, messages)),
                Box::new(move || self.server_send(user)),
                Box::new(move || self.server_receive(user)),
                Box::new(move || self.client_send(user, messages)),
            ]
        })
    }

    /// Messages that have arrived so far.
    pub fn delivered(&self) -> u64 {
        let arrived = |user: &User| user.arrived.load(Ordering::Relaxed);
        self.users.iter().map(arrived).sum()
    }

    /// Ends all connections, so that all threads end.
    pub fn close(&self) {
        for user in &self.users {
            user.client.close();
            user.server.close();
        }
    }

    fn client_send(&self, user: usize, messages: u64) -> Result<(), LoadError> {
        let client = &self.users[user].client;
        let failed = |error| LoadError::Broken("a client's sending", error);
        for number in 0..messages {
            let message = Message::new(user as u32, number as u32);
            client.write(&message.0).map_err(failed)?;
        }
        client.finish().map_err(failed)
    }

    fn server_receive(&self, user: usize) -> Result<(), LoadError> {
        let User { server, relay, .. } = &self.users[user];
        let receive = || -> std::io::Result<()> {
            while let Some(message) = Message::read(server)? {
                relay.push(message);
            }
            Ok(())
        };
        let received = receive();
        relay.close();
        received.map_err(|error| LoadError::Broken("the server's receiving", error))
    }

    fn server_send(&self, user: usize) -> Result<(), LoadError> {
        let relay = &self.users[user].relay;
        let send = || -> std::io::Result<()> {
            while let Some(message) = relay.pop() {
                self.send_to_others(user, &message)?;
            }
            // The last sender of a room has all messages behind it.
            if self.speaking.fetch_sub(1, Ordering::AcqRel) == 1 {
                let mut users = self.users.iter();
                users.try_for_each(|user| user.server.finish())?;
            }
            Ok(())
        };
        send().map_err(|error| {
            // No thread is to wait for space in the relay.
            relay.abandon();
            LoadError::Broken("the server's sending", error)
        })
    }

    fn send_to_others(&self, user: usize, message: &Message) -> std::io::Result<()> {
        let mut others = self.users.iter().enumerate();
        others.try_for_each(|(other, to)| {
            if other == user {
                return Ok(());
            }
            let _alone = to
                .server_writes
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            to.server.write(&message.0)
        })
    }

    fn client_receive(&self, user: usize, messages: u64) -> Result<(), LoadError> {
        let User {
            client, arrived, ..
        } = &self.users[user];
        let garbled = || LoadError::Garbled {
            room: self.number,
            receiver: user,
        };
        // Messages received from each user.
        let mut heard = vec![0_u32; self.users.len()];
        let failed = |error| LoadError::Broken("a client's receiving", error);
        while let Some(message) = Message::read(client).map_err(failed)? {
            let sender = message.sender();
            let number = heard.get_mut(sender as usize).ok_or_else(garbled)?;
            let is_next = message == Message::new(sender, *number);
            if !is_next || u64::from(*number) == messages || sender as usize == user {
                return Err(garbled());
            }
            *number += 1;
            arrived.store(arrived.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
        let due = messages * (self.users.len() as u64 - 1);
        let lost = due - arrived.load(Ordering::Relaxed);
        if lost > 0 {
            return Err(LoadError::Lost {
                what: "messages to a user",
                lost,
                of: due,
            });
        }
        Ok(())
    }
}
