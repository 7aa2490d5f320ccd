//! The baseline EEVDF: what its authors prove, and what Linux keeps when
//! clients come and go.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use prorata_core::policy::baseline::Eevdf;
use prorata_core::policy::{ClientIndex, MAX_CLIENTS, Policy, PolicyError};

const A: ClientIndex = ClientIndex(0);
const B: ClientIndex = ClientIndex(1);

fn with_clients(tickets: &[u32]) -> Eevdf {
    let mut policy = Eevdf::new();
    for (index, &tickets) in tickets.iter().enumerate() {
        policy.join(ClientIndex(index as u32), tickets).unwrap();
    }
    policy
}

fn run_turn(policy: &mut Eevdf) -> usize {
    let winner = policy.pick().unwrap();
    policy.charge(winner, 1, 1).unwrap();
    winner.0 as usize
}

fn wins(policy: &mut Eevdf, clients: usize, turns: u32) -> Vec<u32> {
    let mut wins = vec![0; clients];
    (0..turns).for_each(|_| wins[run_turn(policy)] += 1);
    wins
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 80,
        rng_seed: RngSeed::Fixed(66),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// No lag reaches a quantum, so nor does the absolute error of any client,
    /// which stride scheduling cannot promise.
    #[test]
    fn absolute_errors_stay_below_a_quantum(
        tickets in prop::collection::vec(
            prop_oneof![1..10u32, 1..1000u32, 1..=u32::MAX, Just(1), Just(u32::MAX)],
            2..12,
        ),
    ) {
        let mut policy = with_clients(&tickets);
        let total: i128 = tickets.iter().map(|&tickets| i128::from(tickets)).sum();
        let mut received = vec![0i128; tickets.len()];
        for turn in 1..2000i128 {
            received[run_turn(&mut policy)] += 1;
            for (&own, received) in tickets.iter().zip(&received) {
                let error = received * total - turn * i128::from(own);
                prop_assert!(error.abs() < total, "turn {}: {:?}", turn, tickets);
            }
        }
    }

    /// However clients come, go and change, a client that can run does, and in the
    /// end they share as their tickets say.
    #[test]
    fn any_history_ends_in_fair_shares(
        history in prop::collection::vec((0..6u32, 0..5u32, 0..40u32), 1..120),
    ) {
        let mut policy = Eevdf::new();
        let mut tickets = [None::<u32>; 6];
        for (client, what, amount) in history {
            let (index, client) = (client as usize, ClientIndex(client));
            match (what, tickets[index]) {
                (0, None) => {
                    policy.join(client, amount).unwrap();
                    tickets[index] = Some(amount);
                }
                (0 | 1, Some(_)) => {
                    policy.leave(client).unwrap();
                    tickets[index] = None;
                }
                (2, Some(_)) => {
                    policy.set_tickets(client, amount).unwrap();
                    tickets[index] = Some(amount);
                }
                (3, Some(_)) => policy.charge(client, amount.into(), 20).unwrap(),
                _ => if let Some(winner) = policy.pick() {
                    prop_assert!(tickets[winner.0 as usize] > Some(0));
                    policy.charge(winner, amount.into(), 20).unwrap();
                }
            }
        }
        let total: u32 = tickets.iter().flatten().sum();
        prop_assert_eq!(policy.total_tickets(), u64::from(total));
        prop_assert_eq!(policy.len(), tickets.iter().flatten().count());
        prop_assume!(total > 0);
        // A client charged without a turn waits until all others have had
        // as much, at most two quanta for each event of the history.
        wins(&mut policy, 6, 250 * total);
        // From then on no lag reaches a quantum, neither at the beginning of
        // a time nor at its end.
        let wins = wins(&mut policy, 6, 20 * total);
        for (won, tickets) in wins.iter().zip(tickets) {
            let due = 20 * tickets.unwrap_or(0);
            prop_assert!(won.abs_diff(due) < 2, "{} of {}", won, due);
        }
    }
}

#[test]
fn three_to_two_to_one() {
    assert_eq!(wins(&mut with_clients(&[3, 2, 1]), 3, 600), [300, 200, 100]);
}

#[test]
fn a_client_that_leaves_keeps_its_lag_and_gains_nothing() {
    let mut policy = with_clients(&[1, 1]);
    // A is half a quantum ahead, and sleeps for long.
    assert_eq!(run_turn(&mut policy), 0);
    policy.leave(A).unwrap();
    wins(&mut policy, 2, 1000);
    policy.join(A, 1).unwrap();
    // B's lag was shared out to itself, so both owe each other nothing but
    // A's half quantum.
    assert_eq!(run_turn(&mut policy), 1);
    let wins = wins(&mut policy, 2, 1000);
    assert!(wins[0].abs_diff(wins[1]) <= 1, "{wins:?}");
}

#[test]
fn a_client_without_tickets_does_not_run() {
    let mut policy = with_clients(&[0, 0]);
    assert_eq!((policy.pick(), policy.len()), (None, 2));
    policy.set_tickets(B, 1).unwrap();
    assert_eq!(policy.pick(), Some(B));
    policy.take(B).unwrap();
    assert_eq!(policy.pick(), None);
    policy.charge(B, 1, 1).unwrap();
    assert_eq!(policy.pick(), Some(B));
}

#[test]
fn a_tenth_of_a_quantum_counts_for_a_tenth() {
    let mut policy = with_clients(&[1, 1]);
    let mut used = [0u64; 2];
    for _ in 0..11_000 {
        let winner = policy.pick().unwrap();
        let part = if winner == B { 1 } else { 10 };
        policy.charge(winner, part, 10).unwrap();
        used[winner.0 as usize] += part;
    }
    assert!(used[0].abs_diff(used[1]) <= 10, "{used:?}");
}

#[test]
fn wrong_calls_are_refused() {
    let mut policy = with_clients(&[1]);
    assert_eq!(policy.join(A, 1), Err(PolicyError::AlreadyJoined(A)));
    assert_eq!(policy.leave(B), Err(PolicyError::NotJoined(B)));
    assert_eq!(policy.charge(A, 1, 0), Err(PolicyError::ZeroQuantum(A)));
    let past = ClientIndex(MAX_CLIENTS);
    assert_eq!(policy.join(past, 1), Err(PolicyError::TooManyClients(past)));
    policy.forget(A);
    assert!(policy.is_empty() && policy.pick().is_none());
}

/// Counts begin afresh after 2^24 quanta; nothing is lost by it.
#[test]
fn a_new_epoch_changes_nothing() {
    let mut policy = with_clients(&[7, 3]);
    // The most that a charge counts for is 2^16 quanta.
    for _ in 0..1000 {
        let winner = policy.pick().unwrap();
        policy.charge(winner, 1 << 16, 1).unwrap();
    }
    assert_eq!(wins(&mut policy, 2, 10), [7, 3]);
}
