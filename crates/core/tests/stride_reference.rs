//! Stride scheduling against a naive reference: the same picks, whatever
//! happens, and wherever the pass starts.

mod naive;

use naive::NaiveStride;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use prorata_core::policy::{ClientIndex, Policy, Stride};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

#[derive(Clone, Debug)]
enum Operation {
    Join(u32, u32),
    Leave(u32),
    Forget(u32),
    SetTickets(u32, u32),
    /// Pick and charge.
    Turn(u64, u64),
    /// Pick and take, as for one of several CPUs.
    Take,
    TakeAnyone(u32),
    Charge(u32, u64, u64),
    ChargeAndLeave(u32, u64, u64),
    PassTime(u64, u64),
}

/// Both do the same and say the same; then both pick.
fn apply(policy: &mut impl Policy, reference: &mut impl Policy, operation: &Operation) {
    let index = ClientIndex;
    match *operation {
        Operation::Join(client, tickets) => assert_eq!(
            policy.join(index(client), tickets),
            reference.join(index(client), tickets)
        ),
        Operation::Leave(client) => {
            assert_eq!(policy.leave(index(client)), reference.leave(index(client)));
        }
        Operation::Forget(client) => {
            policy.forget(index(client));
            reference.forget(index(client));
        }
        Operation::SetTickets(client, tickets) => assert_eq!(
            policy.set_tickets(index(client), tickets),
            reference.set_tickets(index(client), tickets)
        ),
        Operation::Turn(used, quantum) => {
            if let Some(client) = reference.pick() {
                assert_eq!(policy.pick(), Some(client));
                assert_eq!(
                    policy.charge(client, used, quantum),
                    reference.charge(client, used, quantum)
                );
            }
        }
        Operation::Take => {
            if let Some(client) = reference.pick() {
                assert_eq!(policy.pick(), Some(client));
                policy.take(client).unwrap();
                reference.take(client).unwrap();
            }
        }
        Operation::TakeAnyone(client) => {
            assert_eq!(policy.take(index(client)), reference.take(index(client)));
        }
        Operation::Charge(client, used, quantum) => assert_eq!(
            policy.charge(index(client), used, quantum),
            reference.charge(index(client), used, quantum)
        ),
        // The reference does one after the other.
        Operation::ChargeAndLeave(client, used, quantum) => assert_eq!(
            policy.charge_and_leave(index(client), used, quantum),
            reference.charge_and_leave(index(client), used, quantum)
        ),
        Operation::PassTime(uncharged, quantum) => {
            policy.pass_time(uncharged, quantum);
            reference.pass_time(uncharged, quantum);
        }
    }
    assert_eq!(policy.len(), reference.len());
    assert_eq!(policy.total_tickets(), reference.total_tickets());
}

const CLIENTS: u32 = 12;

fn tickets() -> impl Strategy<Value = u32> {
    prop_oneof![1..8u32, 0..2u32, 1..=1000u32, any::<u32>(), Just(u32::MAX)]
}

fn use_of_quantum() -> impl Strategy<Value = (u64, u64)> {
    prop_oneof![
        3 => Just((20_000_000, 20_000_000)),
        2 => (0..=40_000_000u64).prop_map(|used| (used, 20_000_000)),
        1 => (0..=20u64, 0..=7u64),
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    let client = 0..CLIENTS;
    prop_oneof![
        3 => (client.clone(), tickets()).prop_map(|(c, t)| Operation::Join(c, t)),
        2 => client.clone().prop_map(Operation::Leave),
        1 => client.clone().prop_map(Operation::Forget),
        2 => (client.clone(), tickets()).prop_map(|(c, t)| Operation::SetTickets(c, t)),
        8 => use_of_quantum().prop_map(|(used, quantum)| Operation::Turn(used, quantum)),
        2 => Just(Operation::Take),
        1 => client.clone().prop_map(Operation::TakeAnyone),
        2 => (0..=90_000_000u64).prop_map(|used| Operation::PassTime(used, 20_000_000)),
        2 => (client.clone(), use_of_quantum())
            .prop_map(|(c, (used, quantum))| Operation::ChargeAndLeave(c, used, quantum)),
        3 => (client, use_of_quantum()).prop_map(|(c, (used, quantum))| Operation::Charge(c, used, quantum)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        rng_seed: RngSeed::Fixed(1995),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn picks_are_those_of_the_reference(
        start in prop_oneof![Just(0), Just(u64::MAX), any::<u64>()],
        history in prop::collection::vec(operation(), 1..300),
    ) {
        let mut policy = Stride::starting_at(start);
        let mut reference = NaiveStride::default();
        for operation in &history {
            apply(&mut policy, &mut reference, operation);
            prop_assert_eq!(policy.pick(), reference.pick());
        }
    }
}

/// A long history of many clients, so that the queue's every part is used.
/// Picks only at times, so that much goes on between them.
fn long_history(seed: u64, clients: u32, steps: u32, tickets: fn(&mut Xoshiro256PlusPlus) -> u32) {
    println!("seed {seed}");
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut policy = Stride::starting_at(random.next_u64());
    let mut reference = NaiveStride::default();
    for client in 0..clients {
        let tickets = tickets(&mut random);
        apply(
            &mut policy,
            &mut reference,
            &Operation::Join(client, tickets),
        );
    }
    for _ in 0..steps {
        let client = random.next_u32() % clients;
        // Changes come in bursts.
        let burst = random.next_u32() % 400 == 0;
        for _ in 0..if burst { clients / 2 } else { 0 } {
            let client = random.next_u32() % clients;
            let operation = match random.next_u32() % 4 {
                0 => Operation::Leave(client),
                1 => Operation::Join(client, tickets(&mut random)),
                2 => Operation::SetTickets(client, tickets(&mut random)),
                _ => Operation::Charge(client, u64::from(random.next_u32() % 100), 100),
            };
            apply(&mut policy, &mut reference, &operation);
        }
        if random.next_u32().is_multiple_of(8) {
            let uncharged = u64::from(random.next_u32() % 400);
            apply(
                &mut policy,
                &mut reference,
                &Operation::PassTime(uncharged, 100),
            );
        }
        let operation = match random.next_u32() % 16 {
            0 => Operation::Leave(client),
            1 => Operation::Join(client, tickets(&mut random)),
            2 => Operation::SetTickets(client, tickets(&mut random)),
            3 => Operation::Take,
            4 => Operation::Charge(client, u64::from(random.next_u32() % 100), 100),
            6 => Operation::ChargeAndLeave(client, u64::from(random.next_u32() % 200), 100),
            5 => Operation::Turn(u64::from(random.next_u32() % 200), 100),
            _ => Operation::Turn(100, 100),
        };
        apply(&mut policy, &mut reference, &operation);
    }
}

#[test]
fn long_histories_of_a_few_clients() {
    for seed in 0..4 {
        long_history(seed, 5, 4000, |random| random.next_u32() % 10);
        long_history(seed, 70, 4000, |random| 1 + random.next_u32() % 10);
    }
}

#[test]
fn long_histories_of_many_clients() {
    for seed in 10..12 {
        long_history(seed, 700, 4000, |random| 1 + random.next_u32() % 1000);
        long_history(seed, 1500, 4000, |random| 1 + random.next_u32() % 4);
        long_history(seed, 1500, 4000, |_| 1);
    }
}

#[test]
fn long_histories_of_very_unlike_clients() {
    for seed in 20..24 {
        long_history(seed, 400, 4000, |random| {
            random.next_u32() >> (random.next_u32() % 32)
        });
    }
}

/// Clients that wait in turns with their equals, among others that come and go.
#[test]
fn long_histories_of_equals() {
    for seed in 30..34 {
        long_history(seed, 60, 20_000, |random| 1 + random.next_u32() % 3);
        long_history(seed, 1000, 6000, |random| {
            1 + (random.next_u32() % 40) * (random.next_u32() % 40)
        });
        long_history(seed, 3000, 6000, |random| 1 + random.next_u32() % 300);
    }
}

/// No pick empties the queue while everything else goes on.
#[test]
fn charges_without_picks_are_in_order_at_last() {
    let mut policy = Stride::new();
    let mut reference = NaiveStride::default();
    for client in 0..500 {
        apply(
            &mut policy,
            &mut reference,
            &Operation::Join(client, 1 + client % 7),
        );
    }
    policy.pick();
    for round in 0..40 {
        for client in 0..500 {
            let used = u64::from((client * 7 + round) % 11);
            apply(
                &mut policy,
                &mut reference,
                &Operation::Charge(client, used, 10),
            );
        }
    }
    for _ in 0..2000 {
        apply(&mut policy, &mut reference, &Operation::Turn(10, 10));
    }
}
