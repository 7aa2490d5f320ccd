//! The competition: which clients won, and until when their turns last.
//!
//! A turn lasts for the quantum of all clients, or for the client's own. A turn that is over
//! ends by itself while others go on. All turns end when something happens that changes which
//! client is to run.

use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use prorata_core::dispatcher::{Dispatcher, Winner};
use prorata_core::hybrid::Mechanisms;
use rustix::thread::CpuSet;

use crate::chronicle::{Chronicle, ClientEvent};
use crate::client::Client;
use crate::limits::note_limits;
use crate::outside::Outside;
use crate::placement::match_winners;
use crate::service_clock::ServiceClock;
use crate::time::{MILLISECOND_NS, SECOND_NS};
use crate::tree::Tree;

/// Shortest and longest quantum that the engine keeps to, whatever the dispatcher says.
pub(crate) const QUANTUM_NS: RangeInclusive<u64> = MILLISECOND_NS..=SECOND_NS;

/// How many quanta behind its due or ahead of it a client may be for placement.
const REMEMBERED_QUANTA: u64 = 50;

/// Which turns end with a decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turns {
    All,
    /// Those that have lasted for their quantum, and those of winners that blocked.
    Over,
    /// Those of winners that blocked: others take over until the quantum of all ends.
    Blocked,
}

/// The dispatcher, and what it decided last.
pub(crate) struct Competition {
    dispatcher: Arc<Mutex<Dispatcher>>,
    /// Together they won at most as many CPUs as there are.
    winners: Vec<Winner>,
    /// As of the last decision, within [`QUANTUM_NS`].
    quantum_ns: u64,
    decisions: u64,
    /// When the first pause of a limited client ends, as of the last decision.
    resumption_ns: Option<u64>,
    /// Something happened since the last decision: all turns end with the next one.
    all_turns_end: bool,
    outside: Outside,
    chronicle: Chronicle,
    /// By which leads drain.
    clock: ServiceClock,
    /// Of hybrid lottery scheduling, at the last decision.
    mechanisms: Mechanisms,
    /// The period of a timetable that the dispatcher is not told of yet.
    new_period_ns: Option<u64>,
}

impl Competition {
    /// `cpus` are shared out.
    pub(crate) fn new(dispatcher: Arc<Mutex<Dispatcher>>, cpus: &CpuSet) -> Self {
        Self {
            dispatcher,
            winners: Vec::new(),
            quantum_ns: *QUANTUM_NS.start(),
            decisions: 0,
            resumption_ns: None,
            all_turns_end: true,
            outside: Outside::new(cpus),
            chronicle: Chronicle::default(),
            clock: ServiceClock::default(),
            mechanisms: Mechanisms::NONE,
            new_period_ns: None,
        }
    }

    /// Clients may run in slots of a table with this period from now on.
    pub(crate) fn open_slots(&mut self, period_ns: u64) {
        self.new_period_ns = Some(period_ns);
    }

    /// What programs without a client leave of the CPUs.
    pub(crate) fn outside(&self) -> &Outside {
        &self.outside
    }

    pub(crate) fn winners(&self) -> &[Winner] {
        &self.winners
    }

    /// Events since the last call, of which a decision begins.
    pub(crate) fn take_events(&mut self) -> impl Iterator<Item = ClientEvent> {
        self.chronicle.begin_decision();
        self.chronicle.drain()
    }

    pub(crate) fn quantum_ns(&self) -> u64 {
        self.quantum_ns
    }

    pub(crate) fn decisions(&self) -> u64 {
        self.decisions
    }

    /// When the first pause of a limited client ends, as of the last decision.
    pub(crate) fn next_resumption_ns(&self) -> Option<u64> {
        self.resumption_ns
    }

    /// Ends all turns with the next decision, unless that only fills in for winners that blocked.
    pub(crate) fn end_all_turns(&mut self) {
        self.all_turns_end = true;
    }

    /// Which turns end with the next decision.
    pub(crate) fn turns_that_end(&self) -> Turns {
        match self.all_turns_end {
            true => Turns::All,
            false => Turns::Over,
        }
    }

    /// Notes that they have ended.
    pub(crate) fn turns_ended(&mut self) {
        self.all_turns_end = false;
    }

    /// Tells the dispatcher what was observed, ends turns, and has winners picked for the free
    /// CPUs, whose turns begin at `begin_ns`. If another thread holds the dispatcher's lock,
    /// changes nothing and returns false.
    pub(crate) fn pick(
        &mut self,
        tree: &mut Tree,
        now_ns: u64,
        begin_ns: u64,
        turns: Turns,
    ) -> bool {
        self.outside.look(now_ns);
        let Some(mut dispatcher) = lock_patiently(&self.dispatcher) else {
            return false;
        };
        if let Some(period_ns) = self.new_period_ns.take() {
            dispatcher.open_slots(period_ns);
        }
        if dispatcher.mechanisms().judges_wakes() {
            let served_ns = tree.uncharged_ns();
            let used_all = tree.uses_all_cpus();
            let cpus = tree.cpu_count();
            let due_ns = self.clock.advance(now_ns, served_ns, cpus, used_all);
            dispatcher.advance(due_ns);
        }
        let notes = (&mut self.outside, &mut self.chronicle);
        report_all(tree, &mut dispatcher, notes, now_ns);
        if self.outside.conclude() {
            dispatcher.set_capacities(self.outside.capacities());
        }
        match turns {
            Turns::All => {
                let clients = tree.lively_mut();
                clients.for_each(|client| client.turn_ends_ns = 0);
                dispatcher.decide(begin_ns, &mut self.winners);
            }
            Turns::Over => {
                for winner in &self.winners {
                    let client = tree.client(winner.client);
                    if client.is_none_or(|client| client.turn_ends_ns <= now_ns) {
                        dispatcher.end_turn(winner.client);
                    }
                }
                dispatcher.fill(begin_ns, &mut self.winners);
            }
            Turns::Blocked => dispatcher.fill(begin_ns, &mut self.winners),
        }
        self.quantum_ns = clamp_quantum(dispatcher.quantum_ns());
        self.decisions += 1;
        self.resumption_ns = note_limits(tree, &dispatcher);
        let mechanisms = dispatcher.mechanisms();
        let others = std::mem::replace(&mut self.mechanisms, mechanisms) != mechanisms;
        let clients = tree.lively_mut();
        for client in clients.filter(|client| others || !client.outlook_holds) {
            let was_early = client.is_early();
            client.find_outlook(&dispatcher);
            self.chronicle.note_outlook(now_ns, client, was_early);
        }
        self.chronicle.note_early_wakes(now_ns, tree);
        if self.outside.capacities().is_some() {
            self.note_lags(tree, &dispatcher);
        }
        drop(dispatcher);
        self.give_rest_away(tree, begin_ns);
        true
    }

    /// Notes how far each winner is behind.
    fn note_lags(&self, tree: &mut Tree, dispatcher: &Dispatcher) {
        let most_ns = (REMEMBERED_QUANTA * self.quantum_ns) as i64;
        for winner in &self.winners {
            let usage = dispatcher.usage(winner.client);
            if let Some(client) = tree.client_mut(winner.client) {
                let specified_ns = usage.specified_ns;
                let received_ns = usage.received_ns - usage.uncharged_ns;
                client.lag_ns = client.lag.of(specified_ns, received_ns, most_ns);
            }
        }
    }

    /// Gives the CPUs that no client with tickets in force can use to those without, in turn.
    fn give_rest_away(&mut self, tree: &Tree, begin_ns: u64) {
        let given: u32 = self.winners.iter().map(|winner| winner.cpus).sum();
        let mut left = tree.cpu_count().saturating_sub(given);
        let has_won = |id| self.winners.iter().any(|winner| winner.client == id);
        let may_run = |client: &&Client| client.runnable > 0 && !client.is_paused();
        let worthless = |client: &&Client| may_run(client) && !has_won(client.id);
        let clients: Vec<&Client> = match left {
            0 => return,
            _ => tree.lively().filter(worthless).collect(),
        };
        if clients.is_empty() {
            return;
        }
        let first = (begin_ns / self.quantum_ns) as usize % clients.len();
        let mut matching = match_winners(tree, &self.winners);
        for client in clients[first..].iter().chain(&clients[..first]) {
            let wanted = 0..left.min(client.runnable);
            let seated = wanted.take_while(|_| matching.seat(client.id.index()));
            let cpus = seated.count() as u32;
            left -= cpus;
            if cpus > 0 {
                self.winners.push(Winner {
                    client: client.id,
                    cpus,
                    until_ns: begin_ns + self.quantum_ns,
                });
            }
        }
    }

    /// Notes in each client what it won, and when its turn ends. Where new turns only use what
    /// is left of others' time, those without a quantum of their own end at `rest_ends_ns`.
    pub(crate) fn note_winners(
        &mut self,
        tree: &mut Tree,
        now_ns: u64,
        begin_ns: u64,
        rest_ends_ns: Option<u64>,
    ) {
        let end_ns = |winner: &Winner| {
            let (shortest_ns, longest_ns) = QUANTUM_NS.into_inner();
            winner
                .until_ns
                .clamp(begin_ns + shortest_ns, begin_ns + longest_ns)
        };
        for client in tree.lively_mut() {
            client.won_before = client.is_winner();
            let goes_on = |client: &Client| {
                client.turn_ends_ns > now_ns && self.winners.iter().any(|w| w.client == client.id)
            };
            if client.won_before && !goes_on(client) {
                self.chronicle.note_turn_end(now_ns, client);
            }
            client.cpus = 0;
        }
        for winner in &self.winners {
            if let Some(client) = tree.client_mut(winner.client) {
                client.cpus = winner.cpus;
                if !client.won_before {
                    client.advance_ns = 0;
                    client.answering_ns = 0;
                }
                if !client.won_before || client.turn_ends_ns <= now_ns {
                    client.turn_began_ns = begin_ns;
                    client.turn_ends_ns = match client.quantum_ns {
                        // However late the decision is, a turn lasts for half of its quantum.
                        Some(own_ns) => end_ns(winner).max(now_ns + own_ns / 2),
                        None => rest_ends_ns.unwrap_or(end_ns(winner)),
                    };
                }
                client.shorten_turn(winner.until_ns, now_ns);
            }
        }
    }

    /// When the first of the winners' turns ends.
    pub(crate) fn first_end_ns(&self, tree: &Tree) -> u64 {
        let clients = self.clients_that_won(tree);
        let ends_ns = clients.map(|client| client.turn_ends_ns);
        ends_ns.min().unwrap_or(u64::MAX)
    }

    /// The winners that the engine manages.
    pub(crate) fn clients_that_won<'a>(
        &'a self,
        tree: &'a Tree,
    ) -> impl Iterator<Item = &'a Client> {
        let winners = self.winners.iter();
        winners.filter_map(|winner| tree.client(winner.client))
    }
}

/// Tells the dispatcher what was observed. All clients are charged before any wakes or blocks: what
/// they used is due to the clients that competed meanwhile (1995, 2.2).
fn report_all(
    tree: &mut Tree,
    dispatcher: &mut Dispatcher,
    (outside, chronicle): (&mut Outside, &mut Chronicle),
    now_ns: u64,
) {
    for client in &mut tree.farewells {
        let used_ns = client.charge(dispatcher);
        outside.charge(client, used_ns);
    }
    for client in tree.lively_mut() {
        let used_ns = client.charge(dispatcher);
        outside.charge(client, used_ns);
    }
    for mut client in tree.farewells.drain(..) {
        let used_ns = client.report(dispatcher, chronicle, now_ns);
        outside.charge(&client, used_ns);
    }
    for client in tree.lively_mut() {
        let used_ns = client.report(dispatcher, chronicle, now_ns);
        outside.charge(client, used_ns);
    }
}

/// The quantum that the engine keeps to where this one is wanted.
pub(crate) fn clamp_quantum(wanted_ns: u64) -> u64 {
    wanted_ns.clamp(*QUANTUM_NS.start(), *QUANTUM_NS.end())
}

/// Takes the lock, and waits for it for a millisecond or two at most. A panic of another holder
/// does not matter: the dispatcher checks its inputs.
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
