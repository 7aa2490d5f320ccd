//! Chat: rooms whose users send each other messages (2001, 5.2).

use prorata_scenario::Scenario;
use prorata_scenario::file::{Distribution, Pipe, Step, Time, Varying};
use prorata_smp::SmpSimulation;
use serde::Deserialize;

use super::{add_process, empty, repeat};

/// Users of a room.
const USERS: u32 = 20;
/// Receivers of each message.
const OTHERS: u32 = USERS - 1;

/// The benchmark, but for rooms and messages, as in its published source (`chat_s.c`
/// and `chat_c.c`, version 1.0.1). A user is four threads:
///
/// ```text
///   client send --socket--> server receive --semaphore--> server send
///                                                             |  into each socket
///                                                             v  of the 19 others
///                                                      client receive
/// ```
///
/// A socket takes so many messages before a writer waits. Room in the socket wakes all
/// waiting writers. All threads are there, and wait, before the first message is sent.
/// Then each thread of the client lets the next one begin, as System V semaphores of
/// Linux 2.4 do.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Chat {
    /// Messages that a socket takes before a writer waits.
    pub socket: u32,
    /// CPU time to write a message to a socket, on average; exponential.
    pub write: Time,
    /// CPU time to read a message from a socket, on average; exponential.
    pub read: Time,
}

/// Time for all threads to come to wait for the beginning.
const STARTS_AFTER: Time = Time::from_secs(1);

/// The pipe that lets a thread of the client begin.
const BEGIN: &str = "begin";

impl Chat {
    /// So many rooms whose users send so many messages each.
    pub fn scenario(&self, rooms: u32, messages: u32) -> Scenario {
        let mut scenario = empty(&format!("Chat ({rooms},{messages})"));
        let users: Vec<(u32, u32)> = (0..rooms)
            .flat_map(|room| (0..USERS).map(move |user| (room, user)))
            .collect();
        let mut pipe = |name: String, capacity| scenario.pipes.insert(name, Pipe { capacity });
        pipe(BEGIN.to_owned(), 1);
        for (room, user) in &users {
            pipe(format!("up {room}.{user}"), self.socket);
            pipe(format!("semaphore {room}.{user}"), messages);
            pipe(format!("down {room}.{user}"), self.socket);
        }
        let threads = |roles: [(&str, Role); 2]| {
            let of_user = |&(room, user): &(u32, u32)| {
                roles.map(|(role, steps)| {
                    let name = format!("{role} {room}.{user}");
                    (name, steps(self, room, user, messages))
                })
            };
            users.iter().flat_map(of_user).collect()
        };
        let server: [(&str, Role); 2] = [
            ("server-receive", Chat::server_receive),
            ("server-send", Chat::server_send),
        ];
        let client: [(&str, Role); 2] = [
            ("client-send", Chat::client_send),
            ("client-receive", Chat::client_receive),
        ];
        add_process(&mut scenario, "server", threads(server));
        let begin = vec![
            Step::Sleep(Distribution::Fixed(STARTS_AFTER)),
            Step::Send(BEGIN.to_owned()),
        ];
        add_process(&mut scenario, "client", threads(client));
        let client = scenario.programs.entry("client".to_owned());
        client.and_modify(|client| client.steps.extend(begin));
        scenario
    }

    /// Whether the clock of the benchmark runs. Before, its threads are made and
    /// wait.
    pub fn has_begun(simulation: &SmpSimulation) -> bool {
        simulation.counts().sends > 0
    }

    /// Messages that arrive, at all users together.
    pub fn deliveries(rooms: u32, messages: u32) -> u64 {
        u64::from(rooms * USERS * OTHERS) * u64::from(messages)
    }

    fn client_send(&self, room: u32, user: u32, messages: u32) -> Vec<Step> {
        let steps = vec![compute(self.write), Step::Send(format!("up {room}.{user}"))];
        begins(repeat(Some(messages), steps))
    }

    fn server_receive(&self, room: u32, user: u32, messages: u32) -> Vec<Step> {
        let steps = vec![
            Step::Receive(format!("up {room}.{user}")),
            compute(self.read),
            Step::Send(format!("semaphore {room}.{user}")),
        ];
        vec![repeat(Some(messages), steps)]
    }

    fn server_send(&self, room: u32, user: u32, messages: u32) -> Vec<Step> {
        let mut steps = vec![Step::Receive(format!("semaphore {room}.{user}"))];
        for other in (0..USERS).filter(|other| *other != user) {
            steps.push(compute(self.write));
            steps.push(Step::Send(format!("down {room}.{other}")));
        }
        vec![repeat(Some(messages), steps)]
    }

    fn client_receive(&self, room: u32, user: u32, messages: u32) -> Vec<Step> {
        let steps = vec![
            Step::Receive(format!("down {room}.{user}")),
            compute(self.read),
        ];
        begins(repeat(Some(OTHERS * messages), steps))
    }
}

/// The steps of a user's thread, by room, user and messages.
type Role = fn(&Chat, u32, u32, u32) -> Vec<Step>;

fn compute(mean: Time) -> Step {
    Step::Compute(Distribution::Varying(Varying::Exponential(mean)))
}

/// Steps that begin once the thread may, and let the next thread begin.
fn begins(then: Step) -> Vec<Step> {
    let begin = || BEGIN.to_owned();
    vec![Step::Receive(begin()), Step::Send(begin()), then]
}
