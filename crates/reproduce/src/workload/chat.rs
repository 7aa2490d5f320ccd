//! Chat: rooms whose users send each other messages (2001, 5.2).

use std::num::NonZeroU32;

use prorata_scenario::Scenario;
use prorata_scenario::file::{Distribution, Pipe, Program, Step, Time, Varying};
use prorata_smp::SmpSimulation;
use serde::Deserialize;

use super::{add_main_thread, empty, repeat};

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
/// Clients send as fast as their sockets take messages. Room in a socket wakes all waiting
/// writers. All threads are there, and wait, before the first message is sent. Then each
/// thread of the client lets the next one begin, as System V semaphores of Linux 2.4 do.
/// Where a thread came to wait is where it prefers to run, so how threads are made matters.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Chat {
    /// What a socket takes before a writer waits.
    pub socket: Socket,
    /// CPU time to write a message to a socket, on average; exponential.
    pub write: Time,
    /// CPU time to read a message from a socket, on average; exponential.
    pub read: Time,
    /// What the main threads do until all others wait.
    #[serde(default)]
    pub preparation: Preparation,
}

/// What the main threads of the server and the client do before the clock runs.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Preparation {
    /// Each makes all its threads at once. Then the client's sleeps.
    #[default]
    Sleeps,
    /// As in the source: for each user, the client's connects and makes two threads, and the
    /// server's accepts the connection and makes two. Then the server tells the client to
    /// begin. Meanwhile time slices end, so the counters of all sleeping threads grow.
    Connects,
}

/// What a socket takes before a writer waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(
    untagged,
    expecting = "write a number of messages, or { message-bytes = 1024 } for a buffer of bytes"
)]
pub enum Socket {
    /// So many messages.
    Messages(u32),
    /// So many bytes.
    Buffer(SocketBuffer),
}

/// A socket with a buffer of bytes. As in `tcp_sendmsg()` of Linux 2.4, a writer waits
/// once the buffer is full, so the last message may go beyond it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SocketBuffer {
    /// Bytes that a message takes in the buffer, with all that the kernel keeps for it.
    pub message_bytes: NonZeroU32,
    /// Bytes of the buffer.
    #[serde(default = "SocketBuffer::default_bytes")]
    pub buffer_bytes: u32,
}

impl SocketBuffer {
    /// The default of Linux 2.4 for sockets in general (`SK_WMEM_MAX`). TCP has its own.
    pub const DEFAULT_BYTES: u32 = 65_535;

    fn default_bytes() -> u32 {
        SocketBuffer::DEFAULT_BYTES
    }
}

impl Socket {
    /// Messages in a socket that is full.
    fn messages(self) -> u32 {
        match self {
            Socket::Messages(messages) => messages,
            Socket::Buffer(socket) => socket.buffer_bytes.div_ceil(socket.message_bytes.get()),
        }
    }
}

/// Time for all threads to come to wait for the beginning, if they are made at once.
const STARTS_AFTER: Time = Time::from_secs(1);

/// CPU time to connect or to accept, and to make two threads, on average; exponential. It
/// stands for the halving by `fork()`, too, which the machine does not have: in a time slice
/// of 60 ms some 30 users come.
const CONNECT: Time = Time::from_ms(2);

/// What the client connects to.
const LISTENS: &str = "listens";

/// The control socket, by which the server tells the client to begin.
const START: &str = "start";

/// Connections that wait to be accepted: `listen(s1, 4096)`.
const BACKLOG: u32 = 4_096;

/// The signal that lets a thread of the client begin.
const BEGIN: &str = "begin";

impl Chat {
    /// So many rooms whose users send so many messages each.
    pub fn scenario(&self, rooms: u32, messages: u32) -> Scenario {
        let mut scenario = empty(&format!("Chat ({rooms},{messages})"));
        let users: Vec<(u32, u32)> = (0..rooms)
            .flat_map(|room| (0..USERS).map(move |user| (room, user)))
            .collect();
        let mut pipe = |name: String, capacity| scenario.pipes.insert(name, Pipe { capacity });
        pipe(LISTENS.to_owned(), BACKLOG);
        pipe(START.to_owned(), 1);
        for (room, user) in &users {
            pipe(format!("up {room}.{user}"), self.socket.messages());
            pipe(format!("down {room}.{user}"), self.socket.messages());
        }
        let start = || START.to_owned();
        let (told, begin) = match self.preparation {
            Preparation::Sleeps => (vec![], Step::Sleep(Distribution::Fixed(STARTS_AFTER))),
            Preparation::Connects => (vec![Step::Send(start())], Step::Receive(start())),
        };
        let server = Process {
            name: "server",
            connection: Step::Receive(LISTENS.to_owned()),
            threads: [
                ("server-receive", Chat::server_receive),
                ("server-send", Chat::server_send),
            ],
            end: told,
        };
        let client = Process {
            name: "client",
            connection: Step::Send(LISTENS.to_owned()),
            threads: [
                ("client-send", Chat::client_send),
                ("client-receive", Chat::client_receive),
            ],
            end: vec![begin, Step::Signal(BEGIN.to_owned())],
        };
        for process in [server, client] {
            self.add_process(&mut scenario, &users, messages, process);
        }
        scenario
    }

    fn add_process(
        &self,
        scenario: &mut Scenario,
        users: &[(u32, u32)],
        messages: u32,
        process: Process,
    ) {
        let mut steps = Vec::new();
        for &(room, user) in users {
            if self.preparation == Preparation::Connects {
                steps.extend([compute(CONNECT), process.connection.clone()]);
            }
            for (role, thread) in process.threads {
                let name = format!("{role} {room}.{user}");
                steps.push(Step::Fork(name.clone()));
                let steps = thread(self, room, user, messages);
                scenario.programs.insert(name, Program { steps });
            }
        }
        steps.extend(process.end);
        add_main_thread(scenario, process.name, steps);
    }

    /// Whether the clock of the benchmark runs. Before, its threads are made and
    /// wait.
    pub fn has_begun(&self, rooms: u32, simulation: &SmpSimulation) -> bool {
        let before = match self.preparation {
            Preparation::Sleeps => 0,
            Preparation::Connects => rooms * USERS + 1,
        };
        simulation.counts().sends > u64::from(before)
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
            Step::Signal(format!("semaphore {room}.{user}")),
        ];
        vec![repeat(Some(messages), steps)]
    }

    fn server_send(&self, room: u32, user: u32, messages: u32) -> Vec<Step> {
        let mut steps = vec![Step::Wait(format!("semaphore {room}.{user}"))];
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

/// A process, whose main thread makes two threads for each user.
struct Process {
    name: &'static str,
    /// The main thread's part in the connection of a user.
    connection: Step,
    threads: [(&'static str, Role); 2],
    /// What the main thread does at last.
    end: Vec<Step>,
}

/// The steps of a user's thread, by room, user and messages.
type Role = fn(&Chat, u32, u32, u32) -> Vec<Step>;

fn compute(mean: Time) -> Step {
    Step::Compute(Distribution::Varying(Varying::Exponential(mean)))
}

/// Steps that begin once the thread may, and let the next thread begin.
fn begins(then: Step) -> Vec<Step> {
    let begin = || BEGIN.to_owned();
    vec![Step::Wait(begin()), Step::Signal(begin()), then]
}

#[cfg(test)]
mod tests {
    use super::*;
    use prorata_smp::{LayoutName, MachineModel, SchedulerCosts, WritersWake};

    fn socket(text: &str) -> Socket {
        #[derive(Deserialize)]
        struct Holder {
            socket: Socket,
        }
        let holder: Holder = toml::from_str(text).expect("a socket");
        holder.socket
    }

    #[test]
    fn a_socket_takes_messages_until_its_bytes_are_full() {
        assert_eq!(socket("socket = 3").messages(), 3);
        assert_eq!(socket("socket = { message-bytes = 1024 }").messages(), 64);
        let text = "socket = { message-bytes = 100, buffer-bytes = 250 }";
        assert_eq!(socket(text).messages(), 3);
        assert_eq!(socket("socket = { message-bytes = 65536 }").messages(), 1);
    }

    /// One room of ten messages a user, on one CPU.
    fn run(socket: Socket, costs: SchedulerCosts) -> SmpSimulation {
        let us = |us: u64| Time(us * 1000);
        let chat = Chat {
            socket,
            write: us(2),
            read: us(1),
            preparation: Preparation::Connects,
        };
        let machine = MachineModel {
            cpus: 1,
            layout: LayoutName::GlobalList,
            costs,
            topology: None,
            writers: WritersWake::AThirdFree,
        };
        let mut simulation = SmpSimulation::new(&chat.scenario(1, 10), &machine, 1)
            .unwrap_or_else(|error| panic!("{error}"));
        simulation.run().expect("it can go on");
        assert_eq!(simulation.alive(), 0);
        simulation
    }

    #[test]
    fn the_clock_begins_once_all_threads_are_made_and_wait() {
        for preparation in [Preparation::Sleeps, Preparation::Connects] {
            let chat = Chat {
                socket: Socket::Messages(10),
                write: Time(2_000),
                read: Time(1_000),
                preparation,
            };
            let machine = MachineModel {
                cpus: 4,
                layout: LayoutName::MultiQueue,
                costs: SchedulerCosts::default(),
                topology: None,
                writers: WritersWake::AnyRoom,
            };
            let mut simulation = SmpSimulation::new(&chat.scenario(2, 1), &machine, 1)
                .unwrap_or_else(|error| panic!("{error}"));
            let mut waiting = false;
            while !chat.has_begun(2, &simulation) {
                // Four threads a user, and the two main threads.
                let made = simulation.made() == 4 * 40 + 2;
                waiting = made && simulation.queue_lengths().iter().sum::<u32>() <= 1;
                simulation
                    .run_to(simulation.now_ns() + 10_000)
                    .expect("it can go on");
            }
            assert!(waiting, "{preparation:?}: only a main thread was left");
        }
    }

    /// Clients do not wait for their messages to arrive. So the more a socket takes, the
    /// fewer decisions a message costs.
    #[test]
    fn clients_send_until_their_sockets_are_full() {
        let run = |messages| run(Socket::Messages(messages), SchedulerCosts::default());
        let decisions = |messages| run(messages).counts().schedules;
        let (one, ten) = (decisions(1), decisions(10));
        assert!(2 * ten < one, "{ten} against {one}");
    }

    /// Each message is read in a segment, and no thread is left behind a lock.
    #[test]
    fn all_messages_arrive_through_locked_sockets_in_segments() {
        let costs = SchedulerCosts {
            segment: Time(20_000),
            socket_locks: true,
            ..SchedulerCosts::default()
        };
        let counts = run(Socket::Messages(100), costs).counts();
        let (up, down) = (u64::from(USERS) * 10, Chat::deliveries(1, 10));
        // Each message up is a signal, too. So is the beginning of each thread.
        let begin = u64::from(2 * USERS) + 1;
        // Connections, and what tells the client to begin.
        let prepare = u64::from(USERS) + 1;
        assert_eq!(counts.sends, 2 * up + down + begin + prepare);
        assert!(counts.segments >= u64::from(2 * USERS), "{counts:?}");
        assert!(counts.segments < up + down, "{counts:?}");
    }
}
