//! What the decision thread waits for: commands, the end of the guardian, and the end of
//! clients' processes.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use crate::bell::Bell;
use crate::client::Client;
use crate::decision::DecisionThread;
use crate::guardian::Guardian;
use crate::time::{SECOND_NS, monotonic_ns};

/// What an epoll entry stands for.
mod token {
    pub(super) const BELL: u64 = 0;
    pub(super) const GUARDIAN: u64 = 1;
    /// A watched process of the client whose index is added.
    pub(super) const CLIENT: u64 = 2;
}

const EVENTS_AT_ONCE: usize = 16;

/// Something that ended a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// A command arrived, or the ledger changed.
    Bell,
    GuardianEnded,
    /// The watched process of the client at this index ended.
    ProcessEnded(usize),
}

/// What a caller asks of the decision thread, which calls it with the time on the monotonic
/// clock. If the engine fails, commands are dropped, and callers find the way of their answer
/// closed.
pub(crate) type Command = Box<dyn FnOnce(&mut DecisionThread, u64) + Send>;

/// Sends commands to the decision thread and wakes it.
#[derive(Clone)]
pub(crate) struct CommandSender {
    commands: Sender<Command>,
    bell: Arc<Bell>,
}

impl CommandSender {
    /// Fails once the decision thread has ended.
    pub(crate) fn send(
        &self,
        command: impl FnOnce(&mut DecisionThread, u64) + Send + 'static,
    ) -> Result<(), Ended> {
        self.commands.send(Box::new(command)).map_err(|_| Ended)?;
        self.wake();
        Ok(())
    }

    pub(crate) fn wake(&self) {
        self.bell.ring();
    }
}

/// The decision thread has ended.
#[derive(Debug)]
pub(crate) struct Ended;

/// The decision thread's side.
pub(crate) struct Events {
    epoll: OwnedFd,
    commands: Receiver<Command>,
    /// Rung after each command is sent.
    bell: Arc<Bell>,
}

impl Events {
    pub(crate) fn new() -> std::io::Result<(CommandSender, Events)> {
        let bell = Arc::new(Bell::new()?);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let data = epoll::EventData::new_u64(token::BELL);
        epoll::add(&epoll, &*bell, data, epoll::EventFlags::IN)?;
        let (sender, commands) = channel();
        let sender = CommandSender {
            commands: sender,
            bell: bell.clone(),
        };
        let events = Events {
            epoll,
            commands,
            bell,
        };
        Ok((sender, events))
    }

    /// Waits for events until this time on the monotonic clock; `u64::MAX` is for ever.
    pub(crate) fn wait_until(&self, wake_ns: u64) -> impl ExactSizeIterator<Item = Event> + use<> {
        let mut events = [epoll::Event {
            flags: epoll::EventFlags::empty(),
            data: epoll::EventData::new_u64(0),
        }; EVENTS_AT_ONCE];
        let left_ns = wake_ns.saturating_sub(monotonic_ns());
        let timeout = (wake_ns < u64::MAX).then_some(Timespec {
            tv_sec: (left_ns / SECOND_NS) as i64,
            tv_nsec: (left_ns % SECOND_NS) as i64,
        });
        // A signal ends the wait without an event.
        let count = epoll::wait(&self.epoll, &mut events, timeout.as_ref()).unwrap_or(0);
        let events = events.into_iter().take(count);
        events.map(|event| match event.data.u64() {
            token::BELL => Event::Bell,
            token::GUARDIAN => Event::GuardianEnded,
            client => Event::ProcessEnded((client - token::CLIENT) as usize),
        })
    }

    /// To be called after [`Event::Bell`] and before the first [`Self::next_command`].
    pub(crate) fn hush(&self) {
        self.bell.hush();
    }

    pub(crate) fn next_command(&self) -> Option<Command> {
        self.commands.try_recv().ok()
    }

    pub(crate) fn watch_guardian(&self, guardian: &Guardian) -> Result<(), Errno> {
        let data = epoll::EventData::new_u64(token::GUARDIAN);
        epoll::add(&self.epoll, guardian.end(), data, epoll::EventFlags::IN)
    }

    pub(crate) fn unwatch_guardian(&self, guardian: &Guardian) {
        let _ = epoll::delete(&self.epoll, guardian.end());
    }

    /// Waits for the end of one living process of a client with a kept handle, so that the
    /// client's own end is not missed. Samples and looks find out the end of a client without any.
    pub(crate) fn watch(&self, client: &mut Client) {
        let is_listed = |watched| client.processes.iter().any(|p| p.id == watched);
        if client.watched.is_some_and(is_listed) {
            return;
        }
        let mut alive = client.processes.iter().filter(|process| process.is_alive());
        let Some((process, pidfd)) =
            alive.find_map(|process| Some((process, process.handle.kept()?)))
        else {
            return;
        };
        let data = epoll::EventData::new_u64(token::CLIENT + u64::from(client.id.index()));
        let flags = epoll::EventFlags::IN;
        if epoll::add(&self.epoll, pidfd, data, flags).is_ok() {
            client.watched = Some(process.id);
        }
    }

    /// Ends the watch after the watched process ended.
    pub(crate) fn unwatch(&self, client: &mut Client) {
        let watched = client.watched.take();
        let process = client.processes.iter().find(|p| Some(p.id) == watched);
        if let Some(pidfd) = process.and_then(|process| process.handle.kept()) {
            let _ = epoll::delete(&self.epoll, pidfd);
        }
    }
}
