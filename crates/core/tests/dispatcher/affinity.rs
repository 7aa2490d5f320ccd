//! Clients that may not use all CPUs: shares are weighted max-min fair, winners can be placed, and
//! no CPU idles that a client could use.

use prorata_core::affinity::Affinity;
use prorata_core::dispatcher::Winner;
use prorata_core::ids::ClientId;
use prorata_core::ledger::Operation;
use prorata_core::matching::Matching;
use prorata_core::max_min::MAX_CLASSES;
use prorata_core::policy::PolicyName;
use prorata_core::rng::{SeedableRng, Xoshiro256PlusPlus, below};

use super::fair_rates::{Claimant, rates};
use super::{Bench, QUANTUM_NS};

/// Policies that keep exact accounts. Lotteries on several CPUs favour clients with few tickets,
/// as a client cannot win twice at a time.
const EXACT: [PolicyName; 3] = [
    PolicyName::Stride,
    PolicyName::HierarchicalStride,
    PolicyName::Eevdf,
];

fn set(bits: u32) -> Affinity {
    (0..u32::BITS).filter(|cpu| bits >> cpu & 1 == 1).collect()
}

impl Bench {
    /// A client with tickets of the base currency and one thread, for the CPUs with a bit.
    fn bound_client(&mut self, tickets: u32, bits: u32) -> ClientId {
        let client = self.blocked_client(self.dispatcher.ledger().base(), tickets);
        self.dispatcher.set_affinity(client, Some(&set(bits)));
        self.dispatcher.set_runnable(client, 1);
        client
    }

    fn share(&self, client: ClientId) -> f64 {
        self.dispatcher.usage(client).share
    }
}

/// Of a lottery after so many draws, in quanta: five standard deviations (1994, 2.2).
fn lottery_error(policy: PolicyName, draws: f64) -> f64 {
    match EXACT.contains(&policy) {
        true => 0.0,
        false => 2.5 * draws.sqrt(),
    }
}

fn assert_near(is: f64, due: f64, error: f64, what: &str) {
    assert!((is - due).abs() <= error, "{what}: {is} of {due}");
}

#[test]
fn two_clients_of_one_cpu_share_it_by_tickets() {
    for policy in PolicyName::BY_TICKETS {
        let mut bench = Bench::new(2, policy);
        let (rich, poor) = (bench.bound_client(900, 0b01), bench.bound_client(100, 0b01));
        bench.run(4000);
        assert_eq!(bench.winners.len(), 1, "the other CPU has no client");
        let error = lottery_error(policy, 4000.0) + 1.0;
        assert_near(bench.received(rich), 3600.0, error, "900 tickets");
        assert_near(bench.received(poor), 400.0, error, "100 tickets");
        // Parts of the machine.
        assert_near(bench.share(rich), 0.45, 1e-6, "900 tickets");
        assert_near(bench.share(poor), 0.05, 1e-6, "100 tickets");
    }
}

#[test]
fn a_client_beside_them_has_the_other_cpu_to_itself() {
    for policy in PolicyName::BY_TICKETS {
        let mut bench = Bench::new(2, policy);
        let (rich, poor) = (bench.bound_client(900, 0b01), bench.bound_client(100, 0b01));
        let free = bench.base_client(1);
        bench.run(4000);
        let error = lottery_error(policy, 4000.0) + 2.0;
        assert_near(bench.received(rich), 3600.0, error, "900 tickets");
        assert_near(bench.received(poor), 400.0, error, "100 tickets");
        assert_near(bench.received(free), 4000.0, 1.0, "the free one");
        assert_near(bench.share(free), 0.5, 1e-6, "the free one");
    }
}

#[test]
fn a_client_without_its_affinity_competes_for_all_cpus_again() {
    let mut bench = Bench::new(2, PolicyName::Stride);
    let clients = [900, 100].map(|tickets| bench.bound_client(tickets, 0b01));
    bench.run(100);
    bench.dispatcher.set_affinity(clients[0], None);
    bench.run(100);
    assert_eq!(bench.winners.len(), 2);
    assert_near(bench.share(clients[0]), 0.5, 1e-6, "the free one");
    bench.dispatcher.set_affinity(clients[1], None);
    bench.run(100);
    assert_eq!(bench.winners.len(), 2);
}

#[test]
fn a_client_with_many_threads_wins_no_more_cpus_than_it_may_use() {
    let mut bench = Bench::new(4, PolicyName::Stride);
    let bound = bench.bound_client(900, 0b0011);
    bench.dispatcher.set_runnable(bound, 4);
    let free = bench.base_client(100);
    bench.dispatcher.set_runnable(free, 4);
    bench.run(1000);
    let mut cpus: Vec<_> = bench.winners.iter().map(|w| (w.client, w.cpus)).collect();
    cpus.sort_by_key(|(client, _)| client.index());
    assert_eq!(cpus, [(bound, 2), (free, 2)]);
    assert_near(bench.share(bound), 0.5, 1e-6, "the bound one");
    // A thread less leaves a CPU to the other client without a new decision.
    bench.dispatcher.set_runnable(bound, 1);
    bench.dispatcher.fill(0, &mut bench.winners);
    assert_eq!(bench.winners.iter().map(|w| w.cpus).sum::<u32>(), 4);
}

#[test]
fn a_destroyed_client_leaves_no_affinity_behind() {
    let mut bench = Bench::new(2, PolicyName::Stride);
    let other = bench.bound_client(100, 0b01);
    for _ in 0..3 * MAX_CLASSES {
        let bound = bench.bound_client(100, 0b01);
        bench.run(1);
        bench.apply(Operation::DestroyClient { client: bound });
    }
    let next = bench.base_client(100);
    bench.run(100);
    assert_eq!(bench.winners.len(), 2);
    assert_near(bench.share(next), 0.5, 1e-6, "the next one");
    assert_near(bench.share(other), 0.5, 1e-6, "the other one");
}

#[test]
fn one_affinity_too_many_counts_as_all_cpus() {
    // Each affinity has two clients, 3:1, on a CPU of its own.
    let pairs = MAX_CLASSES as u32;
    let mut bench = Bench::new(pairs, PolicyName::Stride);
    let mut pair = |cpu: u32| {
        [300, 100].map(|tickets| {
            let client = bench.blocked_client(bench.dispatcher.ledger().base(), tickets);
            let affinity = [cpu].into_iter().collect();
            bench.dispatcher.set_affinity(client, Some(&affinity));
            bench.dispatcher.set_runnable(client, 1);
            client
        })
    };
    let clients: Vec<_> = (0..pairs).map(&mut pair).collect();
    bench.run(400);
    let (told_apart, one_more) = clients.split_at(MAX_CLASSES - 1);
    for [rich, poor] in told_apart {
        assert_near(bench.received(*rich), 300.0, 1.0, "300 tickets");
        assert_near(bench.received(*poor), 100.0, 1.0, "100 tickets");
    }
    // Both are entitled to more than they can get, and get it all the same where they can.
    let together = one_more[0].map(|client| bench.received(client));
    assert_near(together.iter().sum(), 400.0, 0.0, "the last CPU");
}

/// A random client: tickets, threads, affinity.
fn random_client(random: &mut Xoshiro256PlusPlus, cpus: u32) -> (u32, u32, u32) {
    let all = (1 << cpus) - 1;
    let affinity = match below(random, 3) {
        0 => all,
        _ => 1 + below(random, u64::from(all)) as u32,
    };
    let tickets = 1 + below(random, 10) as u32;
    (tickets, 1 + below(random, 3) as u32, affinity)
}

#[test]
fn random_clients_get_their_max_min_fair_rates() {
    const QUANTA: u32 = 2000;
    for seed in 0..120 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let cpus = 2 + below(&mut random, 3) as u32;
        let count = 1 + below(&mut random, 6);
        let drawn: Vec<_> = (0..count)
            .map(|_| random_client(&mut random, cpus))
            .collect();
        let claimants = drawn.iter().map(|&(weight, threads, affinity)| Claimant {
            weight: f64::from(weight),
            most: f64::from(threads),
            affinity,
        });
        let expected = rates(&claimants.collect::<Vec<_>>());
        // Hierarchical stride scheduling is not exact for clients that win several CPUs at a time,
        // with affinities or without.
        for policy in [PolicyName::Stride, PolicyName::Eevdf] {
            let mut bench = Bench::new(cpus, policy);
            let clients = drawn.iter().map(|&(tickets, threads, affinity)| {
                let client = bench.bound_client(tickets, affinity);
                bench.dispatcher.set_runnable(client, threads);
                client
            });
            let clients: Vec<_> = clients.collect();
            for _ in 0..QUANTA {
                bench.dispatcher.decide(0, &mut bench.winners);
                assert_placed(&bench.winners, &clients, &drawn, cpus);
                for &Winner { client, cpus, .. } in &bench.winners {
                    bench
                        .dispatcher
                        .charge(client, QUANTUM_NS * u64::from(cpus));
                }
            }
            let error = 3.0 * count as f64;
            for (&client, rate) in clients.iter().zip(&expected) {
                let due = rate * f64::from(QUANTA);
                let what = format!("seed {seed}, {policy}: {drawn:?}");
                assert_near(bench.received(client), due, error, &what);
                let share = rate / f64::from(cpus);
                assert_near(bench.share(client), share, 1e-5, &what);
            }
        }
    }
}

/// The winners can be placed together, and no client could have one more CPU beside them.
fn assert_placed(winners: &[Winner], clients: &[ClientId], drawn: &[(u32, u32, u32)], cpus: u32) {
    let mut matching = Matching::new(0..cpus);
    for (client, drawn) in clients.iter().zip(drawn) {
        matching.set_affinity(client.index(), Some(&set(drawn.2)));
    }
    for winner in winners {
        for _ in 0..winner.cpus {
            assert!(
                matching.seat(winner.client.index()),
                "{winners:?} of {drawn:?}"
            );
        }
    }
    for (client, &(_, threads, _)) in clients.iter().zip(drawn) {
        let won = winners.iter().find(|winner| winner.client == *client);
        let waits = won.map_or(0, |winner| winner.cpus) < threads;
        let could_run = waits && matching.has_room_for(client.index());
        assert!(!could_run, "{client} waits beside {winners:?} of {drawn:?}");
    }
}
