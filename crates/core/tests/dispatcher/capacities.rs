//! Clients on CPUs that other programs use, too: the winner that is behind gets the freest CPU, and
//! errors stay within few quanta.

use prorata_core::capacity::WHOLE_CPU;
use prorata_core::ids::ClientId;
use prorata_core::matching::Matching;
use prorata_core::placement::{Lag, LaggingWinner, place_by_lag};
use prorata_core::policy::PolicyName;
use prorata_core::rng::{SeedableRng, Xoshiro256PlusPlus, below};

use super::{Bench, QUANTUM_NS};

/// Errors up to so many quanta are worked off by the placement.
const REMEMBERED_QUANTA: i64 = 50;

/// A machine whose CPUs give clients a part of their time.
struct Machine {
    bench: Bench,
    capacities: Vec<u32>,
    matching: Matching,
    lags: Vec<Lag>,
}

impl Machine {
    fn new(policy: PolicyName, capacities: &[u32]) -> Self {
        let cpus = capacities.len() as u32;
        let mut bench = Bench::new(cpus, policy);
        bench.dispatcher.set_capacities(Some(capacities));
        Self {
            bench,
            capacities: capacities.to_vec(),
            matching: Matching::new(0..cpus),
            lags: Vec::new(),
        }
    }

    fn client(&mut self, tickets: u32, threads: u32) -> ClientId {
        let client = self.bench.base_client(tickets);
        self.bench.dispatcher.set_runnable(client, threads);
        self.lags.push(Lag::default());
        client
    }

    /// What a CPU gives in a quantum.
    fn given_ns(&self, cpu: u32) -> u64 {
        QUANTUM_NS * u64::from(self.capacities[cpu as usize]) / u64::from(WHOLE_CPU)
    }

    fn run(&mut self, quanta: u32) {
        for _ in 0..quanta {
            self.bench.dispatcher.decide(0, &mut self.bench.winners);
            self.place();
            for winner in &self.bench.winners {
                let cpus = self.matching.cpus_of(winner.client.index());
                let used_ns = cpus.map(|cpu| self.given_ns(cpu)).sum();
                self.bench.dispatcher.charge(winner.client, used_ns);
            }
        }
    }

    fn place(&mut self) {
        let winners = &self.bench.winners;
        // Each keeps its CPUs, if it won as many as before.
        let before = self.matching.clone();
        self.matching.set_cpus(before.cpus());
        for winner in winners {
            let client = winner.client.index();
            before
                .cpus_of(client)
                .take(winner.cpus as usize)
                .for_each(|cpu| {
                    self.matching.seat_at(client, cpu);
                });
        }
        for winner in winners {
            let client = winner.client.index();
            let kept = self.matching.cpus_of(client).count() as u32;
            (kept..winner.cpus).for_each(|_| assert!(self.matching.seat(client)));
        }
        let lagging: Vec<LaggingWinner> = winners
            .iter()
            .map(|winner| {
                let usage = self.bench.dispatcher.usage(winner.client);
                let lag = &mut self.lags[winner.client.index() as usize];
                let most_ns = REMEMBERED_QUANTA * QUANTUM_NS as i64;
                LaggingWinner {
                    client: winner.client.index(),
                    lag_ns: lag.of(usage.specified_ns, usage.received_ns, most_ns),
                }
            })
            .collect();
        place_by_lag(
            &mut self.matching,
            &lagging,
            &self.capacities,
            QUANTUM_NS / 2,
        );
    }

    /// Received less specified, in quanta.
    fn error(&self, client: ClientId) -> f64 {
        let usage = self.bench.dispatcher.usage(client);
        (usage.received_ns as f64 - usage.specified_ns as f64) / QUANTUM_NS as f64
    }
}

#[test]
fn a_client_on_a_busy_cpu_gets_its_share() {
    // Four programs of the same weight use CPU 0, too.
    for policy in PolicyName::BY_TICKETS {
        let mut machine = Machine::new(policy, &[WHOLE_CPU / 5, WHOLE_CPU]);
        // A lottery winner with two threads would take both CPUs.
        let threads = 1 + u32::from(policy == PolicyName::Stride);
        let clients = [machine.client(1, threads), machine.client(1, 1)];
        machine.run(2000);
        for client in clients {
            let received = machine.bench.received(client);
            assert!(
                (received - 1200.0).abs() < 5.0,
                "{policy}: {received} of 1200"
            );
        }
    }
}

#[test]
fn a_thread_is_due_no_more_than_the_freest_cpu_gives() {
    let mut machine = Machine::new(PolicyName::Stride, &[WHOLE_CPU / 5, WHOLE_CPU]);
    let (rich, poor) = (machine.client(900, 1), machine.client(100, 1));
    machine.run(2000);
    assert!(machine.error(rich).abs() < 2.0, "{}", machine.error(rich));
    assert!((machine.bench.received(rich) - 2000.0).abs() < 5.0);
    assert!((machine.bench.received(poor) - 400.0).abs() < 5.0);
    let share = |client| machine.bench.dispatcher.usage(client).share;
    assert!((share(rich) - 0.5).abs() < 1e-3 && (share(poor) - 0.1).abs() < 1e-3);
}

#[test]
fn capacities_without_a_loss_change_nothing() {
    let shares = |capacities: Option<&[u32]>| {
        let mut bench = Bench::new(2, PolicyName::Stride);
        let clients = [7, 2, 1].map(|tickets| bench.base_client(tickets));
        bench
            .dispatcher
            .set_capacities(Some(&[WHOLE_CPU / 3, WHOLE_CPU]));
        bench.run(10);
        bench.dispatcher.set_capacities(capacities);
        bench.run(10);
        clients.map(|client| bench.dispatcher.usage(client).share)
    };
    assert_eq!(shares(Some(&[WHOLE_CPU; 2])), shares(None));
}

/// With stride scheduling, whatever the capacities, tickets and threads are.
#[test]
fn errors_stay_within_five_quanta() {
    let mut worst: f64 = 0.0;
    for seed in 0..200 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let cpus = 2 + below(&mut random, 3);
        let capacities: Vec<u32> = (0..cpus)
            .map(|_| WHOLE_CPU / 16 * (1 + below(&mut random, 16) as u32))
            .collect();
        let mut machine = Machine::new(PolicyName::Stride, &capacities);
        let clients: Vec<ClientId> = (0..2 + below(&mut random, 5))
            .map(|_| {
                let tickets = 1 + below(&mut random, 20) as u32;
                machine.client(tickets, 1 + below(&mut random, 3) as u32)
            })
            .collect();
        machine.run(2000);
        for &client in &clients {
            let error = machine.error(client);
            worst = worst.max(error.abs());
            assert!(
                error.abs() < 5.0,
                "seed {seed}: {error} with {capacities:?}"
            );
        }
    }
    assert!(worst > 0.1, "capacities matter");
}
