//! Pools of CPUs: each decides as a dispatcher of its own would.

use proptest::prelude::*;
use prorata_core::dispatcher::{MAX_POOLS, Winner};
use prorata_core::ids::ClientId;
use prorata_core::policy::PolicyName;

use super::{Bench, QUANTUM_NS};

const CLIENTS: usize = 6;

/// Pools under stride scheduling, and blocked clients with these tickets.
fn bench(cpus: &[u32], tickets: &[u32]) -> (Bench, Vec<ClientId>) {
    let mut bench = Bench::pooled(cpus, PolicyName::Stride);
    let base = bench.dispatcher.ledger().base();
    let clients = tickets
        .iter()
        .map(|&tickets| bench.blocked_client(base, tickets));
    let clients = clients.collect();
    (bench, clients)
}

/// What can happen to a client.
#[derive(Clone, Debug)]
enum Change {
    Threads(usize, u32),
    Tickets(usize, u32),
    /// All CPUs decide anew and run for a part of a quantum.
    Run(u64),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (0..CLIENTS, 0u32..4).prop_map(|(client, threads)| Change::Threads(client, threads)),
        (0..CLIENTS, 1u32..100_000).prop_map(|(client, amount)| Change::Tickets(client, amount)),
        (1..=QUANTUM_NS).prop_map(Change::Run),
        (1..=QUANTUM_NS).prop_map(Change::Run),
    ]
}

fn happen(bench: &mut Bench, clients: &[ClientId], change: &Change) -> Vec<Winner> {
    let mut winners = Vec::new();
    match *change {
        Change::Threads(client, threads) => {
            bench.dispatcher.set_runnable(clients[client], threads);
        }
        Change::Tickets(client, amount) => bench.inflate(clients[client], amount),
        Change::Run(used_ns) => {
            bench.dispatcher.decide(0, &mut winners);
            for &Winner { client, cpus, .. } in &winners {
                bench.dispatcher.charge(client, used_ns * u64::from(cpus));
            }
        }
    }
    winners.sort_by_key(|winner| winner.client.index());
    winners
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(2001),
        cases: 200,
        ..ProptestConfig::default()
    })]

    /// Two pools of one dispatcher make the decisions, and keep the accounts,
    /// of two dispatchers that share nothing. Values are base units, so those
    /// of one pool do not depend on the other.
    #[test]
    fn a_pool_decides_as_a_dispatcher_of_its_own(
        tickets in prop::collection::vec(1u32..100_000, CLIENTS),
        homes in prop::collection::vec(0u32..2, CLIENTS),
        cpus in (1u32..4, 1u32..4),
        changes in prop::collection::vec(change(), 1..120),
    ) {
        let cpus = [cpus.0, cpus.1];
        let (mut pooled, clients) = bench(&cpus, &tickets);
        for (client, pool) in clients.iter().zip(&homes) {
            pooled.dispatcher.move_to_pool(*client, *pool);
        }
        let mut alone = cpus.map(|cpus| bench(&[cpus], &tickets).0);
        for change in &changes {
            let winners = happen(&mut pooled, &clients, change);
            let mut apart = Vec::new();
            for (pool, bench) in alone.iter_mut().enumerate() {
                let here = |client: usize| homes[client] == pool as u32;
                let concerns = match *change {
                    Change::Threads(client, _) | Change::Tickets(client, _) => here(client),
                    Change::Run(_) => true,
                };
                if concerns {
                    apart.extend(happen(bench, &clients, change));
                }
            }
            apart.sort_by_key(|winner| winner.client.index());
            prop_assert_eq!(winners, apart);
        }
        for (client, pool) in clients.iter().zip(&homes) {
            let one = pooled.dispatcher.usage(*client);
            let other = alone[*pool as usize].dispatcher.usage(*client);
            prop_assert_eq!(one.received_ns, other.received_ns);
            prop_assert_eq!(one.specified_ns, other.specified_ns);
            let part = f64::from(cpus[*pool as usize]) / f64::from(cpus[0] + cpus[1]);
            prop_assert!((one.share - other.share * part).abs() < 1e-12);
            prop_assert_eq!(pooled.dispatcher.pool_of(*client), *pool);
        }
    }
}

#[test]
fn a_move_ends_the_turn_and_keeps_the_account() {
    let (mut bench, clients) = bench(&[1, 1], &[100, 100, 100]);
    let dispatcher = &mut bench.dispatcher;
    clients
        .iter()
        .for_each(|client| dispatcher.set_runnable(*client, 1));
    let choice = dispatcher
        .next(0, 0)
        .expect("all compete in the first pool");
    assert_eq!(dispatcher.next(0, 0), None);
    assert_eq!(dispatcher.next(1, 0), None);
    let winner = clients[choice.client.0 as usize];
    dispatcher.charge(winner, QUANTUM_NS);
    let before = dispatcher.usage(winner);
    assert_eq!(before.received_ns, QUANTUM_NS);
    dispatcher.move_to_pool(winner, 1);
    assert!(!dispatcher.runs(winner));
    assert_eq!(dispatcher.pool_of(winner), 1);
    let after = dispatcher.usage(winner);
    assert_eq!(
        (before.received_ns, before.specified_ns),
        (after.received_ns, after.specified_ns)
    );
    // Alone in a pool that is half of the machine.
    assert_eq!(after.share.to_bits(), 0.5f64.to_bits());
    // Both CPUs are given away now, each in its pool.
    for cpu in [0, 1] {
        let choice = dispatcher.next(cpu, 0).expect("a client waits");
        let client = clients[choice.client.0 as usize];
        assert_eq!(dispatcher.pool_of(client), cpu);
        assert_eq!(dispatcher.next(cpu, 0), None);
    }
    // To where it is already: nothing happens.
    dispatcher.move_to_pool(winner, 1);
    assert!(dispatcher.runs(winner));
}

#[test]
fn there_are_so_many_pools_and_no_more() {
    let made = |count| bench(&vec![1; count], &[]).0;
    assert_eq!(made(MAX_POOLS).dispatcher.cpus(), MAX_POOLS as u32);
    for count in [0, MAX_POOLS + 1] {
        let refused = std::panic::catch_unwind(|| drop(made(count)));
        assert!(refused.is_err(), "{count}");
    }
}
