//! The run's processes and their threads.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use prorata_scenario::plan::{Group, client_name};
use prorata_scenario::world::Objects;
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::cast::Cast;
use crate::error::StageError;
use crate::message::{Report, pair};
use crate::process::Process;
use crate::worker::{NAME, Script};

/// How long a process may take to get ready on a busy machine.
const TIME_TO_GET_READY: Duration = Duration::from_secs(30);

/// Descriptors of other kinds that a run needs, and more.
const DESCRIPTORS_BESIDES: u64 = 1024;

/// Most threads that are heard at once.
const AT_ONCE: usize = 256;

#[derive(Debug)]
pub(super) struct Thread {
    pub(super) client: u32,
    pub(super) socket: OwnedFd,
    /// The instruction that it asked for last.
    pub(super) instruction: u32,
    /// Since when it waits, on the monotonic clock; nothing while it does not.
    pub(super) since_ns: Option<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Client {
    pub(super) name: String,
    pub(super) program: u32,
    /// The CPUs that it may use.
    cpus: Vec<u32>,
    /// Threads that have begun and not exited.
    pub(super) threads: u32,
    /// The process, and its first thread's socket until that begins.
    pub(super) process: Option<(Process, Option<OwnedFd>)>,
    /// Received by processes before that.
    past_ns: u64,
}

/// All processes and threads of a run.
#[derive(Debug)]
pub(super) struct Crew {
    pub(super) clients: Vec<Client>,
    /// By number; numbers are used again.
    pub(super) threads: Vec<Option<Thread>>,
    /// Numbers of threads that exited.
    free: BinaryHeap<Reverse<u32>>,
    /// Watches the threads' sockets, by their numbers.
    ears: OwnedFd,
    pub(super) objects: Objects,
    /// Processes about to end: client, whether we end it, process.
    ending: Vec<(u32, bool, Process)>,
    script: File,
    cast: Option<Cast>,
}

impl Crew {
    /// A crew without processes.
    pub(super) fn new(
        groups: &[Group],
        objects: Objects,
        script: &Script,
        cast: Option<Cast>,
        cpus: &[u32],
    ) -> io::Result<Crew> {
        let file = File::from(memfd_create(NAME, MemfdFlags::CLOEXEC)?);
        script.write(&file)?;
        let mut clients = Vec::new();
        for group in groups {
            clients.extend(group.clients.clone().map(|client| Client {
                name: client_name(groups, client).into_owned(),
                program: group.program,
                cpus: usable(group, cpus),
                ..Client::default()
            }));
        }
        Ok(Crew {
            clients,
            threads: Vec::new(),
            free: BinaryHeap::new(),
            ears: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            objects,
            ending: Vec::new(),
            script: file,
            cast,
        })
    }

    /// Starts a client's process, which gets ready and then waits.
    pub(super) fn spawn(&mut self, client: u32) -> io::Result<()> {
        let (socket, theirs) = pair()?;
        let script = self.script.try_clone()?;
        let cast = self.cast.as_ref();
        let output = cast.map(|cast| cast.output(client)).transpose()?;
        let state = &mut self.clients[client as usize];
        let process = Process::start(NAME, &state.cpus, |command| {
            command
                .arg(state.program.to_string())
                .stdin(Stdio::from(theirs))
                .stdout(script);
            if let (Some(cast), Some(output)) = (cast, output) {
                command.args(cast.words()).stderr(output);
            }
        })?;
        state.process = Some((process, Some(socket)));
        Ok(())
    }

    /// Waits until a process that was spawned is ready.
    pub(super) fn await_ready(&mut self, client: u32) -> io::Result<&Process> {
        let deadline = Instant::now() + TIME_TO_GET_READY;
        let Some((process, Some(socket))) = &mut self.clients[client as usize].process else {
            return Err(io::ErrorKind::NotFound.into());
        };
        while Report::receive(&*socket)?.is_none() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(late(process));
            }
            let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
            let mut descriptors = [PollFd::new(&*socket, PollFlags::IN)];
            let _ = poll(&mut descriptors, Some(&timeout));
        }
        process.is_ready();
        Ok(process)
    }

    /// A new thread, at the lowest number that is free.
    pub(super) fn add(&mut self, client: u32, socket: OwnedFd) -> io::Result<u32> {
        let free = self.free.pop().map(|Reverse(number)| number);
        let number = free.unwrap_or(self.threads.len() as u32);
        let number_for_us = epoll::EventData::new_u64(number.into());
        epoll::add(&self.ears, &socket, number_for_us, epoll::EventFlags::IN)?;
        let thread = Some(Thread {
            client,
            socket,
            instruction: 0,
            since_ns: None,
        });
        self.clients[client as usize].threads += 1;
        match free {
            Some(number) => self.threads[number as usize] = thread,
            None => self.threads.push(thread),
        }
        Ok(number)
    }

    /// Threads that have begun and not exited.
    pub(super) fn thread_count(&self) -> u32 {
        (self.threads.len() - self.free.len()) as u32
    }

    /// Waits for a message, at most for the timeout. Returns threads that sent one or
    /// exited, some of them if there are many.
    pub(super) fn listen(&self, timeout: Duration) -> Vec<u32> {
        let mut events = Vec::with_capacity(AT_ONCE);
        let timeout = Timespec::try_from(timeout).unwrap_or_default();
        // Interrupted by a signal: no message came.
        let _ = epoll::wait(&self.ears, spare_capacity(&mut events), Some(&timeout));
        let events = events.iter();
        events.map(|event| event.data.u64() as u32).collect()
    }

    /// A thread that has begun and not exited.
    pub(super) fn thread(&self, thread: u32) -> &Thread {
        let thread = self.threads.get(thread as usize).and_then(Option::as_ref);
        thread.expect("only threads that live are named")
    }

    /// The same, to be changed.
    pub(super) fn thread_mut(&mut self, thread: u32) -> &mut Thread {
        let thread = self.threads.get_mut(thread as usize);
        thread
            .and_then(Option::as_mut)
            .expect("only threads that live are named")
    }

    /// Numbers of a client's threads.
    pub(super) fn numbers(&self, client: u32) -> Vec<u32> {
        let threads = (0..).zip(&self.threads);
        let its = threads.filter(|(_, thread)| thread.as_ref().is_some_and(|t| t.client == client));
        its.map(|(number, _)| number).collect()
    }

    /// A thread exited; the process ends with its last thread.
    pub(super) fn remove(&mut self, thread: u32) {
        if let Some(gone) = self.threads[thread as usize].take() {
            self.free.push(Reverse(thread));
            let state = &mut self.clients[gone.client as usize];
            state.threads -= 1;
            if state.threads == 0 {
                self.let_end(gone.client, false);
            }
        }
    }

    /// A client's process ends: by itself, or by us.
    pub(super) fn let_end(&mut self, client: u32, by_us: bool) {
        if let Some((mut process, _)) = self.clients[client as usize].process.take() {
            if by_us {
                process.kill();
            }
            self.ending.push((client, by_us, process));
        }
    }

    /// Buries processes that have ended.
    ///
    /// # Errors
    ///
    /// If one ended otherwise than it should.
    pub(super) fn bury(&mut self) -> Result<(), StageError> {
        let mut lost = None;
        let clients = &mut self.clients;
        self.ending.retain_mut(|(client, by_us, process)| {
            if !process.has_ended() {
                return true;
            }
            let state = &mut clients[*client as usize];
            state.past_ns += process.received_ns();
            if let Some(status) = process.reap()
                && !is_proper(status, *by_us)
            {
                lost.get_or_insert((state.name.clone(), status));
            }
            false
        });
        match lost {
            None => Ok(()),
            Some((client, status)) => Err(StageError::ProcessLost { client, status }),
        }
    }

    /// Ends all processes; they are not buried yet, so that they can still be
    /// asked what they used.
    pub(super) fn end(&mut self) {
        self.threads.clear();
        self.free.clear();
        for client in 0..self.clients.len() as u32 {
            self.let_end(client, true);
        }
        for (_, by_us, process) in &mut self.ending {
            *by_us = true;
            process.kill();
        }
    }

    /// CPU time that each client has received.
    pub(super) fn received_ns(&self) -> Vec<u64> {
        let received = self.clients.iter().map(|client| {
            let process = client.process.as_ref();
            client.past_ns + process.map_or(0, |(process, _)| process.received_ns())
        });
        let mut received: Vec<u64> = received.collect();
        for (client, _, process) in &self.ending {
            received[*client as usize] += process.received_ns();
        }
        received
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        // All at once: one that is about to end waits for a CPU as long as
        // others compute.
        self.end();
    }
}

/// Those of the run's CPUs that the clients of a group may use.
fn usable(group: &Group, cpus: &[u32]) -> Vec<u32> {
    let affinity = group.affinity.as_ref();
    let may_use = |number| affinity.is_none_or(|affinity| affinity.contains(number));
    let usable = (0..).zip(cpus).filter(|(number, _)| may_use(*number));
    usable.map(|(_, &cpu)| cpu).collect()
}

/// Makes room for a socket a thread, here and in the processes to come. Where that
/// is not permitted there is room for as many as there is.
pub(super) fn permit_sockets(threads: u32) {
    let limits = getrlimit(Resource::Nofile);
    let wanted = u64::from(threads) + DESCRIPTORS_BESIDES;
    if limits.current.is_none_or(|current| current >= wanted) {
        return;
    }
    let raised = |maximum: Option<u64>| Rlimit {
        current: Some(maximum.map_or(wanted, |maximum| maximum.min(wanted))),
        maximum,
    };
    let highest = limits.maximum.map(|maximum| maximum.max(wanted));
    // Only root may raise the maximum.
    if setrlimit(Resource::Nofile, raised(highest)).is_err() {
        let _ = setrlimit(Resource::Nofile, raised(limits.maximum));
    }
}

/// Whether a process ended as it should.
fn is_proper(status: ExitStatus, by_us: bool) -> bool {
    status.success() || (by_us && status.signal().is_some())
}

/// A process is not ready in time.
fn late(process: &Process) -> io::Error {
    let message = format!(
        "the process is not ready after {} s: {}; if the machine is busy with other programs, try again later",
        TIME_TO_GET_READY.as_secs(),
        process.describe()
    );
    io::Error::new(io::ErrorKind::TimedOut, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_may_use_the_runs_cpus_that_its_file_names() {
        let mut group = Group {
            name: "bound".to_owned(),
            clients: 0..1,
            copies: false,
            program: 0,
            start_ns: 0,
            affinity: Some([0, 2].into_iter().collect()),
            nice: prorata_core::hybrid::Nice::default(),
            user: 0,
            rule: None,
            ruled: Vec::new(),
        };
        assert_eq!(usable(&group, &[4, 7, 9]), [4, 9]);
        group.affinity = None;
        assert_eq!(usable(&group, &[4, 7, 9]), [4, 7, 9]);
    }
}
