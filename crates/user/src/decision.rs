//! The decision thread: observes, decides and enforces every quantum.
//!
//! ```text
//!   births -> observe (CPU clocks, states) -> charge, decide -> enforce
//!      ^                                                          |
//!      +---- sleep until the quantum ends, somebody ends, --------+
//!            or somebody asks for something
//! ```
//!
//! It waits for nobody: neither for the dispatcher's lock, whose holder may
//! be without a CPU because of our own decisions, nor for the directory's.

use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use prorata_core::dispatcher::{Dispatcher, Winner};
use prorata_core::ids::ClientId;
use rustix::event::{Timespec, epoll};
use rustix::thread::CpuSet;

use crate::bell::Bell;
use crate::client::Client;
use crate::command::Command;
use crate::config::Mechanism;
use crate::directory::Directory;
use crate::error::EngineError;
use crate::guardian::Guardian;
use crate::process::Treatment;
use crate::scheduler;
use crate::table::Table;
use crate::time::{MILLISECOND_NS, SECOND_NS, monotonic_ns};
use crate::tree::Tree;
use crate::turns::Turns;

/// Shortest and longest quantum that is kept to, whatever the dispatcher says.
pub(crate) const QUANTUM_NS: std::ops::RangeInclusive<u64> = MILLISECOND_NS..=SECOND_NS;

/// How often those who escaped from their trees are looked for.
pub(crate) const SURVEY_INTERVAL_NS: u64 = SECOND_NS;

/// How soon a winner that blocks is noticed while others are stopped.
const POLL_INTERVAL_NS: u64 = MILLISECOND_NS;

/// The same for one that never blocked lately.
const LAZY_POLL_INTERVAL_NS: u64 = 10 * MILLISECOND_NS;

/// Turns without a block after which a winner is polled lazily.
pub(crate) const BUSY_TURNS: u32 = 8;

/// How often a decision is taken again because its winners were asleep.
const MAX_CONFIRMATIONS: u32 = 8;

/// The guardian steps in when we are later than promised by this and by five
/// quanta.
const STALL_NS: u64 = SECOND_NS;
const STALL_QUANTA: u64 = 5;

/// What an event means.
mod token {
    pub(super) const BELL: u64 = 0;
    pub(super) const GUARDIAN: u64 = 1;
    /// A watched process of the client whose index is added.
    pub(super) const CLIENT: u64 = 2;
}

/// State of the decision thread.
pub(crate) struct DecisionThread {
    pub(crate) tree: Tree,
    pub(crate) directory: Arc<Mutex<Directory>>,
    dispatcher: Arc<Mutex<Dispatcher>>,
    commands: Receiver<Command>,
    /// For those who start a new guardian.
    pub(crate) to_self: Sender<Command>,
    /// Rung with every command and nudge.
    pub(crate) bell: Arc<Bell>,
    pub(crate) exits: Arc<Bell>,
    pub(crate) epoll: std::os::fd::OwnedFd,
    pub(crate) table: Arc<Table>,
    pub(crate) guardian: Option<Guardian>,
    pub(crate) preferred: Mechanism,
    pub(crate) mechanism: Mechanism,
    /// CPUs that are shared out.
    pub(crate) cpus: CpuSet,
    pub(crate) quantum_ns: u64,
    pub(crate) winners: Vec<Winner>,
    /// Clients that have ended but whose last CPU time is not charged yet.
    pub(crate) farewells: Vec<Client>,
    /// Losers that are stopped, and losers that stand by in `SCHED_IDLE`. Where
    /// nobody stands by, a CPU falls idle when a winner blocks.
    pub(crate) stopped: u32,
    pub(crate) idle: u32,
    pub(crate) decisions: u64,
    /// Work space of [`Self::observe`], kept to spare the allocation.
    pub(crate) ids: Vec<ClientId>,
    pub(crate) next_decision_ns: u64,
    /// When a decision became due that is not taken yet.
    pub(crate) due_ns: u64,
    /// Something happened since the last decision: all turns end with the next one.
    all_turns_end: bool,
    next_poll_ns: u64,
    next_survey_ns: u64,
    /// Releases by the guardian that we know of.
    releases_seen: u64,
    ended: bool,
}

/// What a decision thread is made of.
pub(crate) struct Parts {
    pub(crate) tree: Tree,
    pub(crate) directory: Arc<Mutex<Directory>>,
    pub(crate) dispatcher: Arc<Mutex<Dispatcher>>,
    pub(crate) commands: Receiver<Command>,
    pub(crate) to_self: Sender<Command>,
    pub(crate) bell: Arc<Bell>,
    pub(crate) exits: Arc<Bell>,
    pub(crate) table: Arc<Table>,
    pub(crate) guardian: Guardian,
    pub(crate) preferred: Mechanism,
    pub(crate) cpus: CpuSet,
}

impl DecisionThread {
    pub(crate) fn new(parts: Parts) -> Result<Self, EngineError> {
        let system =
            |error: rustix::io::Errno| EngineError::System("wait for events", error.into());
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(system)?;
        let data = epoll::EventData::new_u64(token::BELL);
        epoll::add(&epoll, &*parts.bell, data, epoll::EventFlags::IN).map_err(system)?;
        let mut thread = Self {
            tree: parts.tree,
            directory: parts.directory,
            dispatcher: parts.dispatcher,
            commands: parts.commands,
            to_self: parts.to_self,
            bell: parts.bell,
            exits: parts.exits,
            epoll,
            releases_seen: parts.table.releases(),
            table: parts.table,
            guardian: None,
            preferred: parts.preferred,
            mechanism: parts.preferred,
            cpus: parts.cpus,
            quantum_ns: *QUANTUM_NS.start(),
            winners: Vec::new(),
            farewells: Vec::new(),
            stopped: 0,
            idle: 0,
            decisions: 0,
            ids: Vec::new(),
            next_decision_ns: u64::MAX,
            due_ns: u64::MAX,
            all_turns_end: true,
            next_poll_ns: u64::MAX,
            next_survey_ns: 0,
            ended: false,
        };
        thread.employ(parts.guardian).map_err(system)?;
        Ok(thread)
    }

    /// Runs until it is told to end.
    pub(crate) fn run(&mut self) {
        scheduler::wake_promptly();
        let mut events = [epoll::Event {
            flags: epoll::EventFlags::empty(),
            data: epoll::EventData::new_u64(0),
        }; 16];
        while !self.ended {
            let wake_ns = self.next_decision_ns.min(self.next_poll_ns);
            let count = self.sleep_until(wake_ns, &mut events);
            let now_ns = monotonic_ns();
            // Whatever is done now must not take longer, even if nothing was
            // due before.
            self.table.promise(now_ns.saturating_add(self.grace_ns()));
            self.release_after_stall(now_ns);
            for event in &events[..count] {
                self.handle(event.data.u64(), now_ns);
            }
            self.all_turns_end |= count > 0;
            if count > 0 || now_ns >= self.next_decision_ns {
                self.turn(now_ns);
            } else if now_ns >= self.next_poll_ns {
                self.poll_winners(now_ns);
            }
        }
        self.tree.let_all_go(monotonic_ns());
    }

    fn sleep_until(&self, wake_ns: u64, events: &mut [epoll::Event]) -> usize {
        let left_ns = wake_ns.saturating_sub(monotonic_ns());
        let timeout = (wake_ns < u64::MAX).then_some(Timespec {
            tv_sec: (left_ns / SECOND_NS) as i64,
            tv_nsec: (left_ns % SECOND_NS) as i64,
        });
        // Interrupted by a signal: nothing has happened.
        epoll::wait(&self.epoll, events, timeout.as_ref()).unwrap_or(0)
    }

    fn handle(&mut self, event: u64, now_ns: u64) {
        match event {
            token::BELL => {
                self.bell.hush();
                while let Ok(command) = self.commands.try_recv() {
                    self.obey(command, now_ns);
                }
            }
            token::GUARDIAN => self.replace_guardian(),
            client => self.unwatch((client - token::CLIENT) as usize),
        }
    }

    /// One turn of the wheel.
    fn turn(&mut self, now_ns: u64) {
        self.tree.notice_births(now_ns);
        if now_ns >= self.next_survey_ns {
            self.next_survey_ns = now_ns + SURVEY_INTERVAL_NS;
            self.tree.survey(now_ns);
        }
        self.observe(now_ns);
        if now_ns > self.due_ns.saturating_add(self.grace_ns()) {
            self.forgive();
        }
        let turns = match self.all_turns_end {
            true => Turns::All,
            false => Turns::Over,
        };
        let decided = self.decide(now_ns, turns);
        self.all_turns_end &= !decided;
        self.plan(now_ns, decided);
    }

    /// Whether winners still run, while others are stopped who could.
    fn poll_winners(&mut self, now_ns: u64) {
        let mut any_blocked = false;
        for index in 0..self.winners.len() {
            let id = self.winners[index].client;
            self.tree.sample(id, now_ns);
            let cpus = self.cpus.count();
            let Some((client, journal)) = self.tree.with_journal(id) else {
                continue;
            };
            let (used_ns, window_ns) = client.usage_ns;
            // Whoever ran for half of the time is most likely still running.
            if used_ns < window_ns / 2 {
                let look = client.look(now_ns, cpus, journal);
                client.judge(look, used_ns, self.quantum_ns);
                if !look.awake {
                    client.busy_turns = 0;
                }
                any_blocked |= client.runnable == 0;
            }
        }
        if any_blocked {
            self.next_decision_ns = match self.decide(now_ns, Turns::Blocked) {
                true => self.next_decision_ns.min(self.first_end_ns()),
                false => now_ns + MILLISECOND_NS,
            };
        }
        self.plan_poll(now_ns);
    }

    /// Reports what was observed, ends turns, has winners picked, and enforces
    /// that. Returns false if the dispatcher could not be had; everything
    /// stays as it is then.
    fn decide(&mut self, now_ns: u64, mut turns: Turns) -> bool {
        let (asked, begin_ns) = (turns, self.begin_of_turns(now_ns, turns));
        for _ in 0..MAX_CONFIRMATIONS {
            let dispatcher = self.dispatcher.clone();
            let Some(mut dispatcher) = lock_patiently(&dispatcher) else {
                return false;
            };
            self.report(&mut dispatcher);
            self.pick(&mut dispatcher, now_ns, turns);
            self.quantum_ns = dispatcher
                .machine()
                .quantum_ns
                .clamp(*QUANTUM_NS.start(), *QUANTUM_NS.end());
            drop(dispatcher);
            self.decisions += 1;
            self.crown(now_ns, begin_ns, asked);
            if !self.confirm_winners(now_ns) {
                break;
            }
            // Give away what those found asleep do not use.
            turns = Turns::Blocked;
        }
        self.enforce(now_ns);
        self.publish();
        true
    }

    fn report(&mut self, dispatcher: &mut Dispatcher) {
        for mut client in self.farewells.drain(..) {
            client.report(dispatcher);
        }
        for client in self.tree.clients_mut() {
            client.report(dispatcher);
        }
    }

    pub(crate) fn plan_poll(&mut self, now_ns: u64) {
        let all_busy = || {
            self.winners.iter().all(|winner| {
                let client = self.tree.client(winner.client);
                client.is_none_or(|client| client.busy_turns >= BUSY_TURNS)
            })
        };
        let interval_ns = if self.stopped == 0 || self.idle > 0 {
            u64::MAX
        } else if all_busy() {
            LAZY_POLL_INTERVAL_NS
        } else {
            POLL_INTERVAL_NS
        };
        self.next_poll_ns = now_ns.saturating_add(interval_ns);
    }

    pub(crate) fn promise(&self, now_ns: u64) {
        let wake_ns = self.next_decision_ns.min(self.next_poll_ns).max(now_ns);
        self.table.promise(wake_ns.saturating_add(self.grace_ns()));
    }

    fn grace_ns(&self) -> u64 {
        STALL_NS.max(STALL_QUANTA * self.quantum_ns)
    }

    /// Forgives what clients used since the last decision: it was long ago,
    /// so they had no choice, and making up for it would keep the lucky from
    /// running for many times longer.
    fn forgive(&mut self) {
        for client in self.tree.clients_mut() {
            client.uncharged_ns = 0;
            client.advance_ns = 0;
        }
    }

    /// If we did not run for so long that the guardian has put everything
    /// right, does that again, because we may have been between writing down
    /// a deed and doing it.
    fn release_after_stall(&mut self, now_ns: u64) {
        let releases = self.table.releases();
        if releases == self.releases_seen {
            return;
        }
        tracing::warn!("the engine stalled and its guardian released everything");
        self.releases_seen = releases;
        self.tree.let_all_go(monotonic_ns());
        self.next_decision_ns = now_ns;
    }

    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    /// Waits for the end of one living process of a client, so that the
    /// client's own end is not missed.
    pub(crate) fn watch(&mut self, id: ClientId) {
        let Some(client) = self.tree.client_mut(id) else {
            return;
        };
        let is_listed = |watched| client.processes.iter().any(|p| p.id == watched);
        if client.watched.is_some_and(is_listed) {
            return;
        }
        let Some(process) = client.processes.iter().find(|process| process.is_alive()) else {
            return;
        };
        let data = epoll::EventData::new_u64(token::CLIENT + u64::from(id.index()));
        let flags = epoll::EventFlags::IN;
        if epoll::add(&self.epoll, &process.handle.0, data, flags).is_ok() {
            client.watched = Some(process.id);
        }
    }

    /// The watched process of the client at this index has ended.
    fn unwatch(&mut self, index: usize) {
        let epoll = &self.epoll;
        let Some(client) = self.tree.client_at(index) else {
            return;
        };
        let watched = client.watched.take();
        if let Some(process) = client.processes.iter().find(|p| Some(p.id) == watched) {
            let _ = epoll::delete(epoll, &process.handle.0);
        }
    }

    /// Relies on this guardian from now on.
    pub(crate) fn employ(&mut self, guardian: Guardian) -> rustix::io::Result<()> {
        let data = epoll::EventData::new_u64(token::GUARDIAN);
        epoll::add(&self.epoll, guardian.end(), data, epoll::EventFlags::IN)?;
        self.tree.set_guardian(guardian.pid());
        self.guardian = Some(guardian);
        Ok(())
    }

    /// The guardian is gone: has another one started, by a thread of its own,
    /// because that takes a while.
    fn replace_guardian(&mut self) {
        let Some(guardian) = self.guardian.take() else {
            return;
        };
        tracing::warn!("guardian {} is gone; starting another", guardian.pid());
        let _ = epoll::delete(&self.epoll, guardian.end());
        drop(guardian);
        self.start_guardian(Duration::ZERO);
    }

    pub(crate) fn start_guardian(&self, delay: Duration) {
        let (table, to_self, bell) = (self.table.clone(), self.to_self.clone(), self.bell.clone());
        let socket = self.tree.socket.clone();
        let start = move || {
            std::thread::sleep(delay);
            // If the engine has ended meanwhile, so has the need.
            let _ = to_self.send(Command::Guardian(Guardian::spawn(&table, &socket)));
            bell.ring();
        };
        let spawned = std::thread::Builder::new()
            .name("guardian-start".into())
            .spawn(start);
        if let Err(error) = spawned {
            tracing::error!("no guardian and no thread to start one: {error}");
        }
    }

    /// Undoes everything done to a client and takes note of its state.
    pub(crate) fn set_suspended(&mut self, id: ClientId, suspended: bool) -> bool {
        let Some((client, journal)) = self.tree.with_journal(id) else {
            return false;
        };
        let was_stopped = client.is_stopped_by_us();
        client.treat(Treatment::Normal, journal);
        client.suspended = suspended;
        client.runnable = 0;
        was_stopped
    }
}

/// Takes the lock, waiting a millisecond or two at most. A panic of another
/// holder is its own affair: the dispatcher checks what it is told.
fn lock_patiently(mutex: &Mutex<Dispatcher>) -> Option<MutexGuard<'_, Dispatcher>> {
    for _ in 0..20 {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            // Its holder needs a CPU to let go of it.
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_micros(50)),
        }
    }
    None
}
