//! Chat: rooms whose users send each other messages (2001, 5.2).

use prorata_sim::scenario::{Distribution, Pipe, Scenario, Step, Time};
use serde::Deserialize;

use super::{add_process, empty, repeat};

/// Users of a room.
const USERS: u32 = 20;
/// Who receives each message.
const OTHERS: u32 = USERS - 1;

/// How the benchmark is run, but for rooms and messages. A user is four
/// threads:
///
/// ```text
///   client send --socket--> server receive --list--> server send of the others
///                                                        |socket
///                                                        v
///                                                    client receive
/// ```
///
/// A socket takes so many messages before who writes to it waits; a list inside
/// the server takes as many as there are.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Chat {
    /// Messages that a socket takes before who writes to it waits.
    pub socket: u32,
    /// CPU time to write a message to a socket.
    pub write: Time,
    /// CPU time to read a message from a socket.
    pub read: Time,
    /// CPU time to put a message into a list inside the server, or to take it
    /// from there: a mutex, the list, and a semaphore that counts messages.
    pub queue: Time,
}

impl Chat {
    /// So many rooms whose users send so many messages each.
    pub fn scenario(&self, rooms: u32, messages: u32) -> Scenario {
        let mut scenario = empty(&format!("Chat ({rooms},{messages})"));
        let users: Vec<(u32, u32)> = (0..rooms)
            .flat_map(|room| (0..USERS).map(move |user| (room, user)))
            .collect();
        for (room, user) in &users {
            let pipe = |name: &str, capacity| (format!("{name} {room}.{user}"), Pipe { capacity });
            scenario.pipes.extend([
                pipe("up", self.socket),
                pipe("list", messages * OTHERS),
                pipe("down", self.socket),
            ]);
        }
        let threads = |roles: [(&str, Role); 2]| {
            let mut threads = Vec::new();
            for (role, steps) in roles {
                let of_role = users.iter().map(|&(room, user)| {
                    let name = format!("{role} {room}.{user}");
                    (name, steps(self, room, user, messages))
                });
                threads.extend(of_role);
            }
            threads
        };
        // Those who receive are there before anybody sends.
        let server: [(&str, Role); 2] = [
            ("server-send", Chat::server_send),
            ("server-receive", Chat::server_receive),
        ];
        let client: [(&str, Role); 2] = [
            ("client-receive", Chat::client_receive),
            ("client-send", Chat::client_send),
        ];
        add_process(&mut scenario, "server", threads(server));
        add_process(&mut scenario, "client", threads(client));
        scenario
    }

    /// Messages that arrive in all, and were sent once for all.
    pub fn deliveries(rooms: u32, messages: u32) -> u64 {
        u64::from(rooms * USERS * OTHERS) * u64::from(messages)
    }

    fn client_send(&self, room: u32, user: u32, messages: u32) -> Vec<Step> {
        let steps = vec![compute(self.write), Step::Send(format!("up {room}.{user}"))];
        vec![repeat(Some(messages), steps)]
    }

    fn server_receive(&self, room: u32, user: u32, messages: u32) -> Vec<Step> {
        let mut steps = vec![
            Step::Receive(format!("up {room}.{user}")),
            compute(self.read),
        ];
        for other in (0..USERS).filter(|other| *other != user) {
            steps.push(compute(self.queue));
            steps.push(Step::Send(format!("list {room}.{other}")));
        }
        vec![repeat(Some(messages), steps)]
    }

    fn server_send(&self, room: u32, user: u32, messages: u32) -> Vec<Step> {
        let steps = vec![
            Step::Receive(format!("list {room}.{user}")),
            compute(Time(self.queue.0 + self.write.0)),
            Step::Send(format!("down {room}.{user}")),
        ];
        vec![repeat(Some(OTHERS * messages), steps)]
    }

    fn client_receive(&self, room: u32, user: u32, messages: u32) -> Vec<Step> {
        let steps = vec![
            Step::Receive(format!("down {room}.{user}")),
            compute(self.read),
        ];
        vec![repeat(Some(OTHERS * messages), steps)]
    }
}

/// What a thread of a user does, given room, user and messages.
type Role = fn(&Chat, u32, u32, u32) -> Vec<Step>;

fn compute(time: Time) -> Step {
    Step::Compute(Distribution::Fixed(time))
}
