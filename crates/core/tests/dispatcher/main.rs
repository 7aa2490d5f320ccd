//! The dispatcher over real ledgers and every policy that engines run.

mod affinity;
mod beside;
mod capacities;
#[path = "../fair_rates/mod.rs"]
mod fair_rates;
mod hybrid;
mod limits;
mod nice;
#[path = "../operations/mod.rs"]
mod operations;
mod passing_time;
mod pools;
mod slots;

use prorata_core::dispatcher::{Dispatcher, Winner};
use prorata_core::ids::{ClientId, CurrencyId};
use prorata_core::ledger::{Ledger, Limits, Operation, Outcome, Principal, Target};
use prorata_core::policy::PolicyName;

use operations::{create_client, create_currency, issue};

const QUANTUM_NS: u64 = 20_000_000;
/// Of lotteries.
const SEED: u64 = 1;

/// A policy, and how many quanta of error it may show after n quanta.
type Contender = (PolicyName, fn(f64) -> f64);

// A lottery's error after n draws has a standard deviation of at most
// sqrt(n)/2 (1994, 2.2); five of them are ample for a fixed seed.
const POLICIES: [Contender; 5] = [
    (PolicyName::Stride, |_| 1.0),
    (PolicyName::HierarchicalStride, |_| 2.0),
    (PolicyName::Eevdf, |_| 1.0),
    (PolicyName::Lottery, |n| 2.5 * n.sqrt()),
    (PolicyName::ClassLottery, |n| 2.5 * n.sqrt()),
];

struct Bench {
    dispatcher: Dispatcher,
    winners: Vec<Winner>,
}

impl Bench {
    fn new(cpus: u32, policy: PolicyName) -> Self {
        Self::pooled(&[cpus], policy)
    }

    /// With pools of so many CPUs, all under one policy.
    fn pooled(cpus: &[u32], policy: PolicyName) -> Self {
        let pools = cpus.iter().map(|&cpus| (cpus, policy.policy(SEED)));
        let ledger = Ledger::new(Limits::default());
        Self {
            dispatcher: Dispatcher::pooled(ledger, pools.collect(), QUANTUM_NS),
            winners: Vec::new(),
        }
    }

    fn apply(&mut self, operation: Operation) -> Outcome {
        let checked = self
            .dispatcher
            .ledger()
            .check(&Principal::ROOT, operation)
            .expect("legal");
        self.dispatcher.apply(checked)
    }

    fn currency(&mut self, name: &str, base_tickets: u32) -> CurrencyId {
        let currency = operations::currency(self.apply(create_currency(name)));
        let base = self.dispatcher.ledger().base();
        self.apply(issue(base, base_tickets, Target::Currency(currency)));
        currency
    }

    /// A client with tickets of `currency` and one runnable thread.
    fn client(&mut self, currency: CurrencyId, tickets: u32) -> ClientId {
        let client = self.blocked_client(currency, tickets);
        self.dispatcher.set_runnable(client, 1);
        client
    }

    fn blocked_client(&mut self, currency: CurrencyId, tickets: u32) -> ClientId {
        let client = operations::client(self.apply(create_client(None)));
        self.apply(issue(currency, tickets, Target::Client(client)));
        client
    }

    fn base_client(&mut self, tickets: u32) -> ClientId {
        self.client(self.dispatcher.ledger().base(), tickets)
    }

    /// Gives the only ticket of a client another amount.
    fn inflate(&mut self, client: ClientId, amount: u32) {
        let mut tickets = self.dispatcher.ledger().funding(client);
        let ticket = tickets.next().expect("it has a ticket");
        drop(tickets);
        self.apply(Operation::SetAmount { ticket, amount });
    }

    fn run(&mut self, quanta: u32) {
        for _ in 0..quanta {
            self.dispatcher.decide(0, &mut self.winners);
            for &Winner { client, cpus, .. } in &self.winners {
                self.dispatcher.charge(client, QUANTUM_NS * u64::from(cpus));
            }
        }
        self.dispatcher.decide(0, &mut self.winners);
    }

    fn received(&self, client: ClientId) -> f64 {
        self.dispatcher.usage(client).received_ns as f64 / QUANTUM_NS as f64
    }
}

#[test]
fn every_policy_shares_one_cpu_3_2_1_and_follows_inflation() {
    for (policy, error) in POLICIES {
        let mut bench = Bench::new(1, policy);
        let clients = [3, 2, 1].map(|tickets| bench.base_client(tickets));
        bench.run(6_000);
        for (client, share) in clients.into_iter().zip([3_000.0, 2_000.0, 1_000.0]) {
            let received = bench.received(client);
            assert!(
                (received - share).abs() <= error(6_000.0),
                "{policy}: {received} of {share}"
            );
        }
        let before = clients.map(|client| bench.received(client));
        bench.inflate(clients[2], 5);
        bench.run(5_000);
        for (i, share) in [1_500.0, 1_000.0, 2_500.0].into_iter().enumerate() {
            let received = bench.received(clients[i]) - before[i];
            let allowed = error(5_000.0) + 1.0;
            assert!(
                (received - share).abs() <= allowed,
                "{policy} inflated: {received} of {share}"
            );
        }
    }
}

#[test]
fn currencies_insulate_loads() {
    // 1994, Figure 9: B3 arrives half-way and takes from B1 and B2 only.
    let mut bench = Bench::new(1, PolicyName::Stride);
    let (a, b) = (bench.currency("A", 1000), bench.currency("B", 1000));
    let (a1, a2) = (bench.client(a, 100), bench.client(a, 200));
    let (b1, b2) = (bench.client(b, 100), bench.client(b, 200));
    bench.run(600);
    for (client, quanta) in [(a1, 100.0), (a2, 200.0), (b1, 100.0), (b2, 200.0)] {
        assert!((bench.received(client) - quanta).abs() <= 1.0);
    }
    let b3 = bench.client(b, 300);
    bench.run(600);
    for (client, quanta) in [
        (a1, 200.0),
        (a2, 400.0),
        (b1, 150.0),
        (b2, 300.0),
        (b3, 150.0),
    ] {
        let received = bench.received(client);
        assert!(
            (received - quanta).abs() <= 2.0,
            "{client}: {received} of {quanta}"
        );
    }
}

#[test]
fn tickets_of_a_blocked_client_go_to_its_siblings() {
    let mut bench = Bench::new(1, PolicyName::Stride);
    let (a, b) = (bench.currency("A", 100), bench.currency("B", 100));
    let (a1, a2, b1) = (bench.client(a, 1), bench.client(a, 1), bench.client(b, 1));
    bench.dispatcher.set_runnable(a1, 0);
    bench.run(100);
    assert_eq!(bench.received(a1), 0.0);
    assert!((bench.received(a2) - 50.0).abs() <= 1.0);
    assert!((bench.received(b1) - 50.0).abs() <= 1.0);
    assert_eq!(bench.dispatcher.usage(a1).share, 0.0);
    bench.dispatcher.set_runnable(a1, 1);
    bench.run(100);
    assert!((bench.received(a1) - 25.0).abs() <= 1.0);
    assert!((bench.received(b1) - 100.0).abs() <= 1.0);
}

#[test]
fn a_client_that_uses_a_fifth_of_its_quanta_gets_its_whole_share() {
    // 1994, 4.5: A uses all of each quantum, B a fifth; equal tickets.
    for (policy, error) in POLICIES {
        let mut bench = Bench::new(1, policy);
        let (a, b) = (bench.base_client(400), bench.base_client(400));
        for _ in 0..60_000 {
            bench.dispatcher.decide(0, &mut bench.winners);
            let winner = bench.winners[0].client;
            let used_ns = if winner == b {
                QUANTUM_NS / 5
            } else {
                QUANTUM_NS
            };
            bench.dispatcher.charge(winner, used_ns);
        }
        let (a, b) = (bench.received(a), bench.received(b));
        assert!(
            (a - b).abs() <= 2.0 * error(60_000.0),
            "{policy}: {a} and {b}"
        );
    }
}

#[test]
fn time_used_outside_a_turn_is_paid_for() {
    for (policy, error) in POLICIES {
        let mut bench = Bench::new(1, policy);
        let (a, b) = (bench.base_client(1), bench.base_client(1));
        for _ in 0..20_000 {
            bench.dispatcher.decide(0, &mut bench.winners);
            let winner = bench.winners[0].client;
            let loser = if winner == a { b } else { a };
            // b steals a tenth of every turn of a's; a never does.
            let stolen_ns = if loser == b { QUANTUM_NS / 10 } else { 0 };
            bench.dispatcher.charge(loser, stolen_ns);
            bench.dispatcher.charge(winner, QUANTUM_NS - stolen_ns);
        }
        let (a, b) = (bench.received(a), bench.received(b));
        assert!(
            (a - b).abs() <= 2.0 * error(20_000.0),
            "{policy}: {a} and {b}"
        );
    }
}

#[test]
fn infeasible_weights_leave_the_rest_in_proportion() {
    let mut bench = Bench::new(2, PolicyName::Stride);
    let clients = [1, 2, 10].map(|tickets| bench.base_client(tickets));
    bench.run(3_000);
    for (client, quanta) in clients.into_iter().zip([1_000.0, 2_000.0, 3_000.0]) {
        let received = bench.received(client);
        assert!(
            (received - quanta).abs() <= 2.0,
            "{client}: {received} of {quanta}"
        );
        let share = bench.dispatcher.usage(client).share;
        assert!((share - quanta / 6_000.0).abs() < 1e-6, "{share}");
    }
    // Deflated, the greedy client owes nothing for the time before.
    bench.inflate(clients[2], 1);
    let before = bench.received(clients[2]);
    bench.run(1_000);
    let received = bench.received(clients[2]) - before;
    assert!(
        (received - 500.0).abs() <= 2.0,
        "1 of 4 tickets on 2 CPUs: {received}"
    );
}

#[test]
fn a_client_with_many_threads_can_use_many_cpus() {
    let mut bench = Bench::new(4, PolicyName::Stride);
    let (wide, narrow) = (bench.base_client(3), bench.base_client(1));
    bench.dispatcher.set_runnable(wide, 8);
    bench.dispatcher.set_runnable(narrow, 8);
    bench.run(1_000);
    assert!(
        (bench.received(wide) - 3_000.0).abs() <= 4.0,
        "{}",
        bench.received(wide)
    );
    assert!((bench.received(narrow) - 1_000.0).abs() <= 4.0);
    assert_eq!(bench.winners.iter().map(|w| w.cpus).sum::<u32>(), 4);
}

#[test]
fn a_free_cpu_is_filled_without_ending_the_other_turns() {
    let mut bench = Bench::new(2, PolicyName::Stride);
    let clients = [1, 1, 1].map(|tickets| bench.base_client(tickets));
    bench.dispatcher.decide(0, &mut bench.winners);
    assert_eq!(
        bench.winners.iter().map(|w| w.client).collect::<Vec<_>>(),
        clients[..2]
    );
    bench.dispatcher.charge(clients[0], QUANTUM_NS / 4);
    bench.dispatcher.charge(clients[1], QUANTUM_NS / 4);
    bench.dispatcher.set_runnable(clients[0], 0);
    bench.dispatcher.fill(0, &mut bench.winners);
    assert_eq!(
        bench.winners.iter().map(|w| w.client).collect::<Vec<_>>(),
        clients[1..]
    );
    assert!(!bench.dispatcher.runs(clients[0]) && bench.dispatcher.runs(clients[2]));
}

#[test]
fn a_destroyed_client_leaves_no_trace_for_the_next_at_its_index() {
    let mut bench = Bench::new(1, PolicyName::Stride);
    let (old, other) = (bench.base_client(1), bench.base_client(1));
    bench.run(10);
    bench.apply(Operation::DestroyClient { client: old });
    let new = bench.base_client(1);
    assert_eq!(new.index(), old.index());
    assert_eq!(bench.dispatcher.usage(new).received_ns, 0);
    bench.dispatcher.charge(old, 5);
    bench.dispatcher.set_runnable(old, 1);
    assert_eq!(bench.dispatcher.usage(old).received_ns, 0);
    let before = bench.received(other);
    bench.run(100);
    assert!((bench.received(new) - 50.0).abs() <= 1.0);
    assert!((bench.received(other) - before - 50.0).abs() <= 1.0);
}

#[test]
fn the_policy_can_be_changed_while_clients_run() {
    let mut bench = Bench::new(1, PolicyName::Stride);
    let (a, b) = (bench.base_client(3), bench.base_client(1));
    bench.run(100);
    bench
        .dispatcher
        .set_policy(PolicyName::HierarchicalStride.policy(SEED));
    bench.run(300);
    assert!(
        (bench.received(a) - 300.0).abs() <= 3.0,
        "{}",
        bench.received(a)
    );
    assert!((bench.received(b) - 100.0).abs() <= 3.0);
}
