//! The decision thread: observes, decides and enforces every quantum.
//!
//! ```text
//!   births -> observe (CPU clocks, states) -> charge, decide -> enforce
//!      ^                                                          |
//!      +---- sleep until the quantum ends, a process ends, -------+
//!            or a command arrives
//! ```
//!
//! It never blocks on the dispatcher's lock or the directory's: the holder may be without a CPU
//! because of the engine's own decisions.

use crate::client::Client;
use crate::competition::{Competition, Turns};
use crate::directory::{Change, EngineFacts, SharedDirectory};
use crate::enforcement::Enforcement;
use crate::events::{Event, Events};
use crate::priority;
use crate::signals::SignalWatch;
use crate::slots::Director;
use crate::slumber::Sampling;
use crate::supervision::Supervision;
use crate::time::{MILLISECOND_NS, SECOND_NS, monotonic_ns};
use crate::tree::Tree;
use crate::wake_times::{SURVEY_INTERVAL_NS, WakeTimes};

/// How soon a winner that blocks is noticed while others are stopped.
const POLL_INTERVAL_NS: u64 = MILLISECOND_NS;

/// The same for one that never blocked lately.
const LAZY_POLL_INTERVAL_NS: u64 = 10 * MILLISECOND_NS;

/// Turns without a block after which a winner is polled lazily.
pub(crate) const BUSY_TURNS: u32 = 8;

/// How often a decision is taken again because its winners were asleep.
const MAX_CONFIRMATIONS: u32 = 8;

/// How often a client without rivals is looked at, at most.
const LOOK_ALONE_NS: u64 = 100 * MILLISECOND_NS;

/// The guardian steps in when the engine is later than promised by this or by five quanta,
/// whichever is longer.
const STALL_NS: u64 = SECOND_NS;
const STALL_QUANTA: u64 = 5;

/// State of the decision thread.
pub(crate) struct DecisionThread {
    pub(crate) tree: Tree,
    pub(crate) competition: Competition,
    pub(crate) enforcement: Enforcement,
    pub(crate) wake_times: WakeTimes,
    pub(crate) signals: SignalWatch,
    pub(crate) events: Events,
    pub(crate) supervision: Supervision,
    pub(crate) director: Director,
    pub(crate) directory: SharedDirectory,
    /// Work space of [`Self::observe`], kept to spare the allocation.
    pub(crate) sampled: Vec<usize>,
    /// A command told it to end.
    pub(crate) ended: bool,
}

impl DecisionThread {
    /// Runs until it is told to end.
    pub(crate) fn run(&mut self) {
        priority::wake_promptly(priority::ENGINE);
        while !self.ended {
            let events = self.events.wait_until(self.wake_times.first_ns());
            let now_ns = monotonic_ns();
            // Even if nothing was due before: the guardian steps in if the following takes too long.
            self.supervision
                .promise(now_ns.saturating_add(self.grace_ns()));
            self.release_after_stall(now_ns);
            let woken = events.len() > 0;
            for event in events {
                self.handle(event, now_ns);
            }
            if woken {
                self.competition.end_all_turns();
            }
            if woken || self.wake_times.decision_is_due(now_ns) {
                self.turn(now_ns);
            } else if self.wake_times.poll_is_due(now_ns) {
                self.poll_winners(now_ns);
            }
            if self.wake_times.signals_are_due(now_ns) {
                self.look_for_signals(now_ns);
            }
            if self.wake_times.stops_are_due(now_ns) {
                let (clients, journal) = self.tree.lively_with_journal();
                clients.for_each(|client| client.go_on_stopping(journal));
            }
            self.plan_signals(now_ns);
            self.plan_stops(now_ns);
            self.recast();
        }
        self.tree.let_all_go(monotonic_ns());
    }

    fn handle(&mut self, event: Event, now_ns: u64) {
        match event {
            Event::Bell => {
                self.events.hush();
                while let Some(command) = self.events.next_command() {
                    command(self, now_ns);
                }
            }
            Event::GuardianEnded => self.supervision.replace_guardian(&self.events),
            Event::ProcessEnded(client) => {
                if let Some(client) = self.tree.clients.at_mut(client) {
                    self.events.unwatch(client);
                }
            }
        }
    }

    /// Notices births, observes, decides, and plans when to do so again.
    fn turn(&mut self, now_ns: u64) {
        self.tree.notice_births(now_ns);
        self.tree.review_some(now_ns);
        if self.wake_times.take_survey(now_ns) {
            self.tree.survey(now_ns);
            self.enforcement.tidy(&mut self.tree);
            self.supervision.replace_hung_guardian(&self.events, now_ns);
        }
        self.observe(now_ns);
        self.make_way(now_ns);
        if self.wake_times.is_later_than(self.grace_ns(), now_ns) {
            self.tree.forgive();
        }
        let decided = self.decide(now_ns, self.competition.turns_that_end());
        if decided {
            self.competition.turns_ended();
        }
        self.plan(now_ns, decided);
    }

    /// Finds out whether winners still run while rivals are stopped.
    fn poll_winners(&mut self, now_ns: u64) {
        let mut any_blocked = false;
        let quantum_ns = self.competition.quantum_ns();
        for winner in self.competition.winners() {
            let id = winner.client;
            self.tree.sample(id, Sampling::Due, now_ns);
            let usage_ns = self.tree.client(id).map(|client| client.usage_ns);
            // A winner that ran for half of the time most likely still runs.
            if let Some((used_ns, window_ns)) = usage_ns
                && used_ns < window_ns / 2
                && let Some(look) = self.tree.look(id, now_ns)
                && let Some(client) = self.tree.client_mut(id)
            {
                client.judge(look, used_ns, quantum_ns);
                if !look.awake {
                    client.busy_turns = 0;
                }
                any_blocked |= client.runnable == 0;
            }
        }
        if any_blocked {
            match self.decide(now_ns, Turns::Blocked) {
                true => {
                    let first_end_ns = self.competition.first_end_ns(&self.tree);
                    self.wake_times.decide_by(first_end_ns);
                    self.plan_limits();
                }
                false => self.wake_times.decide_at(now_ns + MILLISECOND_NS),
            }
        }
        self.plan_poll(now_ns);
    }

    /// Lets processes run for which a signal waits, and holds them down again once they have it.
    fn look_for_signals(&mut self, now_ns: u64) {
        let for_new = self.wake_times.take_new_signals(now_ns);
        let quantum_ns = self.competition.quantum_ns();
        if self
            .signals
            .look(&mut self.tree, for_new, now_ns, quantum_ns)
        {
            self.enforcement
                .enforce(&mut self.tree, &self.competition, now_ns);
        }
    }

    fn plan_signals(&mut self, now_ns: u64) {
        let awaits_delivery = self.tree.lively().any(Client::awaits_delivery);
        let holds_down = self.enforcement.holds_down();
        self.wake_times
            .plan_signals(now_ns, holds_down, awaits_delivery);
    }

    fn plan_stops(&mut self, now_ns: u64) {
        let mut clients = self.tree.lively();
        let any_waits = clients.any(|client| client.stopping_since_ns.is_some());
        self.wake_times.plan_stops(now_ns, any_waits);
    }

    /// Has winners picked and enforces that. Returns false if another thread holds the
    /// dispatcher's lock; the clients go on as before then.
    fn decide(&mut self, now_ns: u64, asked: Turns) -> bool {
        let begin_ns = match asked {
            Turns::Blocked => now_ns,
            Turns::All | Turns::Over => {
                let quantum_ns = self.competition.quantum_ns();
                self.wake_times.begin_of_turns(now_ns, quantum_ns)
            }
        };
        let mut turns = asked;
        for _ in 0..MAX_CONFIRMATIONS {
            if !self
                .competition
                .pick(&mut self.tree, now_ns, begin_ns, turns)
            {
                return false;
            }
            let rest_ends_ns = match asked {
                // Others use what is left of the winners' time.
                Turns::Blocked => Some(self.wake_times.decision_ns()),
                Turns::All | Turns::Over => None,
            };
            self.competition
                .note_winners(&mut self.tree, now_ns, begin_ns, rest_ends_ns);
            if !self.confirm_winners(now_ns) {
                break;
            }
            // Give away what winners found asleep do not use.
            turns = Turns::Blocked;
        }
        self.enforcement
            .enforce(&mut self.tree, &self.competition, now_ns);
        self.tree.note_activities();
        let events = self.competition.take_events();
        self.tree.changes.extend(events.map(Change::Happened));
        let in_groups = self.enforcement.mechanism().uses_groups();
        self.tree.clients.rest(now_ns, in_groups);
        let facts = self.facts();
        self.directory.try_publish(&mut self.tree.changes, facts);
        true
    }

    /// Plans when to decide next.
    fn plan(&mut self, now_ns: u64, decided: bool) {
        let active = self.tree.clients().filter(|client| !client.suspended);
        let rivals = active.take(2).count();
        let quantum_ns = self.competition.quantum_ns();
        let interval_ns = match rivals {
            _ if !decided => MILLISECOND_NS,
            0 if self.tree.owes_release() => SURVEY_INTERVAL_NS,
            0 => u64::MAX,
            // Without a rival, only its account has to be kept.
            1 => quantum_ns.max(LOOK_ALONE_NS),
            _ => quantum_ns,
        };
        self.wake_times.plan_decision(now_ns, interval_ns);
        if decided {
            if rivals > 1 {
                self.wake_times
                    .decide_by(self.competition.first_end_ns(&self.tree));
            }
            self.plan_limits();
            self.wake_times.decided();
        }
        self.plan_poll(now_ns);
        let wake_ns = self.wake_times.first_ns().max(now_ns);
        self.supervision
            .promise(wake_ns.saturating_add(self.grace_ns()));
    }

    fn plan_poll(&mut self, now_ns: u64) {
        let all_busy = || {
            let mut winners = self.competition.clients_that_won(&self.tree);
            winners.all(|client| client.busy_turns >= BUSY_TURNS)
        };
        let interval_ns = if !self.enforcement.leaves_cpus_idle() {
            u64::MAX
        } else if all_busy() {
            LAZY_POLL_INTERVAL_NS
        } else {
            POLL_INTERVAL_NS
        };
        self.wake_times.plan_poll(now_ns, interval_ns);
    }

    fn grace_ns(&self) -> u64 {
        STALL_NS.max(STALL_QUANTA * self.competition.quantum_ns())
    }

    /// Releases all once more if the guardian did while the engine stalled: the engine may
    /// have been between writing down a deed and doing it.
    fn release_after_stall(&mut self, now_ns: u64) {
        if self.supervision.take_releases() {
            tracing::warn!("the engine stalled and its guardian released everything");
            self.tree.let_all_go(monotonic_ns());
            self.wake_times.decide_at(now_ns);
        }
    }

    pub(crate) fn facts(&self) -> EngineFacts {
        EngineFacts {
            mechanism: self.enforcement.mechanism(),
            missing_right: self.enforcement.missing_right(),
            decisions: self.competition.decisions(),
            guardian: self.supervision.guardian_pid(),
            outside: self.competition.outside().loads(),
        }
    }
}
