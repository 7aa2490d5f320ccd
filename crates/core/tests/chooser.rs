//! A chooser by itself: random histories keep its invariants, under every policy.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use prorata_core::choice::{Chooser, Reason};
use prorata_core::ids::ClientIndex;
use prorata_core::policy::PolicyName;

/// Random histories come from this seed.
const SEED: u64 = 2005;
const QUANTUM_NS: u64 = 10_000_000;
const CLIENTS: u32 = 6;
/// The chooser owns CPUs from this one on.
const FIRST_CPU: u32 = 3;

/// A client as the test knows it.
#[derive(Clone, Copy, Default, Debug)]
struct Known {
    /// Runnable threads; zero while it does not compete.
    threads: u32,
    tickets: u32,
    cpus: u32,
    until_ns: u64,
    quantum_ns: Option<u64>,
}

#[derive(Clone, Debug)]
enum Event {
    Threads(u32, u32),
    Tickets(u32, u32),
    Charge(u32, u64),
    EndTurn(u32),
    Quantum(u32, Option<u64>),
    Next,
    Fill,
    Policy(usize),
    Cpus(u32),
}

fn event() -> impl Strategy<Value = Event> {
    let client = || 0..CLIENTS;
    prop_oneof![
        6 => (client(), 0u32..4).prop_map(|(client, threads)| Event::Threads(client, threads)),
        2 => (client(), 0u32..1000).prop_map(|(client, tickets)| Event::Tickets(client, tickets)),
        3 => (client(), 1..3 * QUANTUM_NS).prop_map(|(client, ns)| Event::Charge(client, ns)),
        3 => client().prop_map(Event::EndTurn),
        1 => (client(), proptest::option::of(1..QUANTUM_NS))
            .prop_map(|(client, ns)| Event::Quantum(client, ns)),
        4 => Just(Event::Next),
        4 => Just(Event::Fill),
        1 => (0..PolicyName::BY_TICKETS.len()).prop_map(Event::Policy),
        1 => (1u32..6).prop_map(Event::Cpus),
    ]
}

struct World {
    chooser: Chooser,
    clients: [Known; CLIENTS as usize],
    now_ns: u64,
}

impl World {
    fn new(policy: PolicyName, cpus: u32) -> Self {
        let own = FIRST_CPU..FIRST_CPU + cpus;
        Self {
            chooser: Chooser::new(policy.policy(SEED), own, QUANTUM_NS),
            clients: [Known::default(); CLIENTS as usize],
            now_ns: 0,
        }
    }

    fn happen(&mut self, event: &Event) -> Result<(), TestCaseError> {
        self.now_ns += 1_000;
        let known = |client: u32| self.clients[client as usize];
        match *event {
            Event::Threads(client, threads) => self.set_threads(client, threads),
            Event::Tickets(client, tickets) => {
                if known(client).threads > 0 {
                    self.chooser.set_tickets(ClientIndex(client), tickets);
                }
                self.clients[client as usize].tickets = tickets;
            }
            Event::Charge(client, used_ns) if known(client).threads > 0 => {
                self.chooser.charge(ClientIndex(client), used_ns);
            }
            Event::EndTurn(client) => {
                self.chooser.end_turn(ClientIndex(client));
                self.clients[client as usize].cpus = 0;
            }
            Event::Quantum(client, quantum_ns) => {
                self.chooser
                    .set_client_quantum(ClientIndex(client), quantum_ns);
                self.clients[client as usize].quantum_ns = quantum_ns;
            }
            Event::Next => {
                self.next()?;
            }
            Event::Fill => while self.next()? {},
            Event::Policy(policy) => {
                let clients = self.clients.iter().zip(0..);
                let competing = clients.filter(|(known, _)| known.threads > 0);
                let competing =
                    competing.map(|(known, client)| (ClientIndex(client), known.tickets));
                self.chooser
                    .set_policy(PolicyName::BY_TICKETS[policy].policy(SEED), competing);
                self.clients.iter_mut().for_each(|known| known.cpus = 0);
            }
            Event::Cpus(cpus) => {
                self.chooser.set_cpus(FIRST_CPU..FIRST_CPU + cpus);
                self.clients.iter_mut().for_each(|known| known.cpus = 0);
            }
            Event::Charge(..) => {}
        }
        self.check()
    }

    fn set_threads(&mut self, client: u32, threads: u32) {
        let known = &mut self.clients[client as usize];
        let index = ClientIndex(client);
        match (known.threads, threads) {
            (0, 0) => {}
            (0, _) => self.chooser.join(index, threads, known.tickets),
            (_, 0) => self.chooser.leave(index),
            _ => self.chooser.set_threads(index, threads),
        }
        known.threads = threads;
        known.cpus = known.cpus.min(threads);
    }

    /// Asks for one CPU. Returns whether a client could use it.
    fn next(&mut self) -> Result<bool, TestCaseError> {
        let cpus = self.chooser.cpus();
        prop_assert_eq!(self.chooser.next(cpus.end, self.now_ns), None);
        prop_assert_eq!(self.chooser.next(FIRST_CPU - 1, self.now_ns), None);
        let given: u32 = self.clients.iter().map(|known| known.cpus).sum();
        let has_further = self.chooser.has_further();
        let choice = self.chooser.next(FIRST_CPU, self.now_ns);
        let waits = |known: &Known| known.threads > known.cpus;
        let Some(choice) = choice else {
            // No CPU idles while a client with tickets has a thread that waits.
            let could_run = |known: &Known| waits(known) && (known.tickets > 0 || known.cpus > 0);
            prop_assert!(given == cpus.len() as u32 || !self.clients.iter().any(could_run));
            return Ok(false);
        };
        let in_turn = self.clients.map(|known| known.cpus > 0);
        let known = &mut self.clients[choice.client.0 as usize];
        prop_assert!(waits(known));
        if known.cpus == 0 {
            let quantum_ns = known.quantum_ns.unwrap_or(QUANTUM_NS);
            known.until_ns = self.now_ns + quantum_ns;
            prop_assert_eq!(choice.why, Reason::Policy);
            prop_assert!(known.tickets > 0 && !has_further);
        } else {
            prop_assert!(has_further || choice.why == Reason::Spare);
        }
        prop_assert_eq!(choice.until_ns, known.until_ns);
        known.cpus += 1;
        if choice.why == Reason::Spare && !has_further {
            let mut others = self.clients.iter().zip(in_turn);
            prop_assert!(
                others.all(|(known, in_turn)| in_turn || known.threads == 0 || known.tickets == 0)
            );
        }
        Ok(true)
    }

    /// The chooser's turns are those that the test knows.
    fn check(&self) -> Result<(), TestCaseError> {
        let mut in_turn = 0;
        for (known, client) in self.clients.iter().zip(0..) {
            prop_assert_eq!(self.chooser.runs(ClientIndex(client)), known.cpus > 0);
            in_turn += usize::from(known.cpus > 0);
        }
        prop_assert_eq!(self.chooser.turns().len(), in_turn);
        let mut given = 0;
        for turn in self.chooser.turns() {
            let known = &self.clients[turn.client.0 as usize];
            prop_assert_eq!((turn.cpus, turn.until_ns), (known.cpus, known.until_ns));
            prop_assert!(turn.cpus <= known.threads);
            given += turn.cpus;
        }
        let owned = self.chooser.cpus().len() as u32;
        prop_assert!(given <= owned);
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(SEED),
        ..ProptestConfig::default()
    })]

    #[test]
    fn turns_fit_cpus_and_threads_in_any_history(
        policy in 0..PolicyName::BY_TICKETS.len(),
        cpus in 1u32..6,
        events in prop::collection::vec(event(), 1..200),
    ) {
        let mut world = World::new(PolicyName::BY_TICKETS[policy], cpus);
        for event in &events {
            world.happen(event)?;
        }
    }
}

#[test]
fn a_client_gets_further_cpus_before_another_is_picked() {
    let mut chooser = Chooser::new(PolicyName::Stride.policy(SEED), 0..4, QUANTUM_NS);
    let [wide, narrow] = [ClientIndex(0), ClientIndex(1)];
    chooser.join(wide, 3, 100);
    chooser.join(narrow, 1, 1);
    let clients: Vec<_> = (0..4)
        .filter_map(|cpu| chooser.next(cpu, 0))
        .map(|choice| (choice.client, choice.why))
        .collect();
    let policy = Reason::Policy;
    assert_eq!(
        clients,
        [
            (wide, policy),
            (wide, policy),
            (wide, policy),
            (narrow, policy)
        ]
    );
}

#[test]
fn a_cpu_without_another_client_goes_to_a_client_that_runs() {
    let mut chooser = Chooser::new(PolicyName::Stride.policy(SEED), 0..4, QUANTUM_NS);
    let client = ClientIndex(0);
    chooser.join(client, 1, 100);
    let first = chooser.next(0, 5).expect("it waits");
    assert_eq!(
        (first.until_ns, first.why),
        (5 + QUANTUM_NS, Reason::Policy)
    );
    chooser.set_threads(client, 3);
    for cpu in 1..3 {
        let spare = chooser.next(cpu, 9).expect("threads wait");
        // The turn's end does not move.
        assert_eq!((spare.until_ns, spare.why), (5 + QUANTUM_NS, Reason::Spare));
    }
    assert_eq!(chooser.next(3, 9), None);
}
