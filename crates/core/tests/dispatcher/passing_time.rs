//! Time passes for clients before others wake, block or get other tickets, although turns are
//! charged when they end.

use prorata_core::dispatcher::Dispatcher;
use prorata_core::ids::ClientId;
use prorata_core::policy::PolicyName;
use prorata_core::rng::{Rng as _, SeedableRng as _, Xoshiro256PlusPlus, below};

use super::{Bench, QUANTUM_NS};

const CLIENTS: u64 = 6;
const STEPS: usize = 400;
const POLICIES: [PolicyName; 3] = [
    PolicyName::Stride,
    PolicyName::HierarchicalStride,
    PolicyName::Eevdf,
];

/// When the dispatcher learns what running clients have used.
#[derive(Clone, Copy, PartialEq)]
enum Engine {
    /// It is charged before each change.
    Charges,
    /// It is told the sum before each change, and charged when turns end.
    PassesTime,
    /// It is charged when turns end.
    Late,
}

struct Machine {
    bench: Bench,
    engine: Engine,
    clients: Vec<ClientId>,
    /// What each client used and was not charged for.
    uncharged_ns: Vec<u64>,
    /// Clients, each time that turns are looked at.
    winners: Vec<u32>,
}

impl Machine {
    fn new(policy: PolicyName, cpus: u32, engine: Engine) -> Self {
        let mut bench = Bench::new(cpus, policy);
        let base = bench.dispatcher.ledger().base();
        let family = bench.currency("family", 40);
        let clients = (0..CLIENTS).map(|number| {
            let currency = if number % 3 == 0 { family } else { base };
            bench.blocked_client(currency, 10 + number as u32)
        });
        let clients: Vec<_> = clients.collect();
        Self {
            bench,
            engine,
            uncharged_ns: vec![0; clients.len()],
            clients,
            winners: Vec::new(),
        }
    }

    fn dispatcher(&mut self) -> &mut Dispatcher {
        &mut self.bench.dispatcher
    }

    fn run(&mut self, time_ns: u64) {
        for winner in &self.bench.winners {
            if self.bench.dispatcher.runs(winner.client) {
                let used_ns = time_ns * u64::from(winner.cpus);
                self.uncharged_ns[winner.client.index() as usize] += used_ns;
            }
        }
    }

    fn charge(&mut self, number: usize) {
        let used_ns = std::mem::take(&mut self.uncharged_ns[number]);
        let client = self.clients[number];
        self.dispatcher().charge(client, used_ns);
    }

    /// Something is about to change.
    fn prepare(&mut self) {
        match self.engine {
            Engine::Charges => (0..self.clients.len()).for_each(|number| self.charge(number)),
            Engine::PassesTime => {
                let uncharged_ns = self.uncharged_ns.iter().sum();
                self.dispatcher().pass_time(0, uncharged_ns);
            }
            Engine::Late => {}
        }
    }

    fn set_runnable(&mut self, number: usize, threads: u32) {
        self.prepare();
        self.charge(number);
        let client = self.clients[number];
        self.dispatcher().set_runnable(client, threads);
    }

    fn end_turn(&mut self, number: usize) {
        self.charge(number);
        let client = self.clients[number];
        self.dispatcher().end_turn(client);
    }

    fn fill(&mut self) {
        // Tickets may change.
        self.prepare();
        let Bench {
            dispatcher,
            winners,
        } = &mut self.bench;
        dispatcher.fill(0, winners);
        winners.sort_by_key(|winner| winner.client.index());
        let looked_at = winners.iter().map(|winner| winner.client.index());
        self.winners.extend(looked_at);
    }
}

/// The same history for each machine.
fn play(seed: u64, machines: &mut [Machine]) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    for _ in 0..STEPS {
        let time_ns = random.next_u64() % (QUANTUM_NS / 4);
        let number = below(&mut random, CLIENTS) as usize;
        let threads = below(&mut random, 3) as u32;
        let amount = 1 + below(&mut random, 100) as u32;
        let change = below(&mut random, 4);
        for machine in &mut *machines {
            machine.run(time_ns);
            match change {
                0 => machine.bench.inflate(machine.clients[number], amount),
                1 => machine.end_turn(number),
                _ => machine.set_runnable(number, threads),
            }
            machine.fill();
        }
    }
    for machine in machines {
        (0..machine.clients.len()).for_each(|number| machine.charge(number));
    }
}

/// Histories in which all winners, and all accounts to a microsecond, are those of clients that
/// are charged before each change.
fn agreements(policy: PolicyName, cpus: u32, engine: Engine) -> usize {
    let agrees = |seed: &u64| {
        let engines = [Engine::Charges, engine];
        let mut machines = engines.map(|engine| Machine::new(policy, cpus, engine));
        play(*seed, &mut machines);
        let [one, other] = &machines;
        one.winners == other.winners
            && one.clients.iter().all(|&client| {
                let usage = |machine: &Machine| machine.bench.dispatcher.usage(client);
                let (one, other) = (usage(one), usage(other));
                one.received_ns == other.received_ns
                    && one.specified_ns.abs_diff(other.specified_ns) < 1_000
            })
    };
    (0..100).filter(agrees).count()
}

#[test]
fn an_engine_may_charge_late_if_it_lets_time_pass() {
    // On several CPUs EEVDF also picks by the present time, of which the engines tell at other times.
    for (policy, most_cpus) in POLICIES.into_iter().zip([3, 3, 1]) {
        for cpus in 1..=most_cpus {
            let agree = agreements(policy, cpus, Engine::PassesTime);
            assert_eq!(agree, 100, "{policy}, {cpus} CPUs");
            // Histories of which this is not true would show nothing.
            let late = agreements(policy, cpus, Engine::Late);
            assert!(late < 10, "{policy}, {cpus} CPUs: {late}");
        }
    }
}

#[test]
fn a_client_that_wakes_gets_nothing_of_the_time_before() {
    for policy in POLICIES {
        let mut bench = Bench::new(1, policy);
        let hog = bench.base_client(100);
        let sleeper = bench.base_client(100);
        bench.dispatcher.set_runnable(sleeper, 0);
        for _ in 0..1_000 {
            // It wakes in the middle of a turn, and sleeps again when it has run.
            bench.dispatcher.fill(0, &mut bench.winners);
            bench.dispatcher.pass_time(0, QUANTUM_NS / 2);
            bench.dispatcher.set_runnable(sleeper, 1);
            bench.dispatcher.charge(hog, QUANTUM_NS);
            loop {
                bench.dispatcher.decide(0, &mut bench.winners);
                let winner = bench.winners[0].client;
                bench.dispatcher.charge(winner, QUANTUM_NS);
                if winner == sleeper {
                    break;
                }
            }
            bench.dispatcher.set_runnable(sleeper, 0);
        }
        let usage = bench.dispatcher.usage(sleeper);
        let ahead = usage.received_ns as f64 - usage.specified_ns as f64;
        assert!(
            ahead.abs() <= 2.0 * QUANTUM_NS as f64,
            "{policy}: {usage:?}"
        );
    }
}
