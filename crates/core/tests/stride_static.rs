//! Stride scheduling of sets of clients that stay the same (1995, 2.1, 2.4):
//! errors, exactness, wrap-around and limits.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use prorata_core::policy::credit::KEPT_CREDIT_QUANTA;
use prorata_core::policy::{
    ClientIndex, MAX_CLIENTS, MAX_SERVICE, Policy, PolicyError, STRIDE1, Stride,
};

/// Quanta that one charge counts for at most.
const MAX_QUANTA: u64 = MAX_SERVICE / STRIDE1;

fn join_all(policy: &mut Stride, tickets: &[u32]) {
    for (index, &tickets) in tickets.iter().enumerate() {
        policy.join(ClientIndex(index as u32), tickets).unwrap();
    }
}

/// Runs so many turns of `quanta` each and asserts after each that the
/// relative error (1995, 2) of all pairs with the winner is below a turn:
/// `|n_i - (n_i + n_j) t_i / (t_i + t_j)| < 1`.
fn assert_relative_errors(policy: &mut Stride, tickets: &[u32], turns: u32, quanta: u64) {
    let mut received = vec![0i128; tickets.len()];
    for turn in 0..turns {
        let winner = policy.pick().unwrap();
        policy.charge(winner, quanta, 1).unwrap();
        let winner = winner.0 as usize;
        received[winner] += 1;
        let own = i128::from(tickets[winner]);
        for other in (0..tickets.len()).filter(|&other| other != winner) {
            let others = i128::from(tickets[other]);
            let error = received[winner] * others - received[other] * own;
            assert!(
                error.abs() < own + others,
                "turn {turn}: {winner} and {other} of {tickets:?} have {received:?}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 60,
        rng_seed: RngSeed::Fixed(21),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn relative_errors_stay_below_a_quantum(
        tickets in prop::collection::vec(
            prop_oneof![1..10u32, 1..1000u32, 1..=u32::MAX, Just(1), Just(u32::MAX)],
            2..10,
        ),
        start in prop_oneof![Just(0), Just(u64::MAX), any::<u64>()],
    ) {
        let mut policy = Stride::starting_at(start);
        join_all(&mut policy, &tickets);
        assert_relative_errors(&mut policy, &tickets, 3000, 1);
    }
}

#[test]
fn nothing_drifts_in_the_long_run() {
    // Strides that are no whole numbers; see Figure 9 for the first.
    for tickets in [vec![7, 3], vec![19, 1], vec![3, 7, 11, 13, 4_294_967_295]] {
        let mut policy = Stride::new();
        join_all(&mut policy, &tickets);
        assert_relative_errors(&mut policy, &tickets, 300_000, 1);
    }
}

#[test]
fn figure_9_errors_are_zero_at_the_end_of_each_period() {
    let mut policy = Stride::new();
    join_all(&mut policy, &[7, 3]);
    for period in 1..=10_000 {
        let mut wins = 0;
        for _ in 0..10 {
            let winner = policy.pick().unwrap();
            policy.charge(winner, 5, 5).unwrap();
            wins += u32::from(winner == ClientIndex(0));
        }
        assert_eq!(wins, 7, "period {period}");
    }
}

#[test]
fn passes_wrap_around_again_and_again() {
    // A turn of 1000 quanta moves a single ticket by 2^54 passes, so that 2^10
    // such turns go once around.
    let tickets = [1, 1];
    let mut policy = Stride::starting_at(u64::MAX - 5 * STRIDE1);
    join_all(&mut policy, &tickets);
    assert_relative_errors(&mut policy, &tickets, 20_000, 1000);
}

#[test]
fn uneven_parts_of_quanta_add_up_exactly() {
    // Half the quanta in three uneven parts each, and no error at the end.
    let quantum = 7;
    let mut policy = Stride::new();
    join_all(&mut policy, &[1, 1]);
    for round in 0..1000 {
        for used in [1, 2, 4] {
            policy.charge(ClientIndex(0), used, quantum).unwrap();
        }
        // Equal passes again: the lower index is first until it is charged.
        policy.charge(ClientIndex(1), 9, 9).unwrap();
        assert_eq!(policy.pick(), Some(ClientIndex(0)), "round {round}");
        policy.charge(ClientIndex(0), 1, 1 << 40).unwrap();
        assert_eq!(policy.pick(), Some(ClientIndex(1)), "round {round}");
        policy
            .charge(ClientIndex(0), (1 << 40) - 1, 1 << 40)
            .unwrap();
        policy.charge(ClientIndex(1), 1, 1).unwrap();
    }
}

#[test]
fn a_client_that_uses_part_of_a_quantum_gets_turns_more_often() {
    // 1995, 2.4: a fifth of each quantum, five times as many turns.
    let mut policy = Stride::new();
    join_all(&mut policy, &[1, 1]);
    let mut turns = [0, 0];
    for _ in 0..6000 {
        let winner = policy.pick().unwrap();
        let used = if winner == ClientIndex(0) { 4 } else { 20 };
        policy.charge(winner, used, 20).unwrap();
        turns[winner.0 as usize] += 1;
    }
    assert_eq!(turns, [5000, 1000]);
}

#[test]
fn a_client_may_have_a_quantum_of_its_own() {
    // 1995, 2.4: the same tickets and twice the quantum: half the turns.
    let mut policy = Stride::new();
    join_all(&mut policy, &[1, 1]);
    let mut turns = [0, 0];
    for _ in 0..3000 {
        let winner = policy.pick().unwrap();
        let used = [20, 10][winner.0 as usize];
        policy.charge(winner, used, 10).unwrap();
        turns[winner.0 as usize] += 1;
    }
    assert_eq!(turns, [1000, 2000]);
}

/// Turns of `quanta` each that client 1 gets until client 0 is picked.
fn turns_before_client_0(policy: &mut Stride, quanta: u64) -> u64 {
    let mut turns = 0;
    while policy.pick() == Some(ClientIndex(1)) {
        policy.charge(ClientIndex(1), quanta, 1).unwrap();
        turns += 1;
    }
    assert_eq!(policy.pick(), Some(ClientIndex(0)));
    turns
}

#[test]
fn a_thousand_quanta_at_a_single_ticket_are_accounted_for() {
    let mut policy = Stride::new();
    join_all(&mut policy, &[1, 1000]);
    policy.charge(ClientIndex(0), 1000, 1).unwrap();
    // Client 1 runs at passes 0.001, 1.001 ... 1000.001, and client 0 at 1001.
    assert_eq!(turns_before_client_0(&mut policy, 1000), 1001);
}

#[test]
fn a_client_far_ahead_is_held_at_the_longest_wait() {
    for (charges, held) in [(1, false), (3, false), (4, true), (5, true)] {
        let mut policy = Stride::new();
        join_all(&mut policy, &[1, 1]);
        for _ in 0..charges {
            policy.charge(ClientIndex(0), MAX_QUANTA, 1).unwrap();
        }
        // It is a stride ahead at first. The global pass moves by half of what
        // is charged, so the fourth charge takes it a stride too far.
        let charged = charges * MAX_QUANTA;
        let pass = if held {
            charged / 2 + KEPT_CREDIT_QUANTA
        } else {
            1 + charged
        };
        let behind = pass - 1;
        assert_eq!(turns_before_client_0(&mut policy, 64), behind.div_ceil(64));
    }
}

#[test]
fn a_client_far_behind_is_held_at_the_longest_wait() {
    for (charges, held) in [(1, false), (2, false), (3, true), (40, true)] {
        let mut policy = Stride::new();
        join_all(&mut policy, &[0, 1]);
        // Time passes for client 1, and it is not charged.
        let free = ClientIndex(9);
        policy.join(free, 0).unwrap();
        for _ in 0..charges {
            policy.charge(free, MAX_QUANTA, 1).unwrap();
        }
        // From now on client 0 is on time, a stride ahead of the global pass.
        policy.set_tickets(ClientIndex(0), 1).unwrap();
        let credit = if held {
            KEPT_CREDIT_QUANTA
        } else {
            charges * MAX_QUANTA - 1
        };
        assert_eq!(
            turns_before_client_0(&mut policy, 64),
            (credit + 1).div_ceil(64),
            "{charges}"
        );
    }
}

#[test]
fn a_charge_of_more_than_it_can_count_is_cut() {
    let mut policy = Stride::new();
    join_all(&mut policy, &[1, 1]);
    policy.charge(ClientIndex(0), u64::MAX, 1).unwrap();
    assert_eq!(turns_before_client_0(&mut policy, 64), MAX_QUANTA / 64);
}

#[test]
fn the_highest_index_is_as_good_as_any() {
    let last = ClientIndex(MAX_CLIENTS - 1);
    let mut policy = Stride::new();
    policy.join(last, 1).unwrap();
    assert_eq!(policy.pick(), Some(last));
    policy.charge(last, 1, 1).unwrap();
    assert_eq!(policy.pick(), Some(last));
    let past = ClientIndex(MAX_CLIENTS);
    assert_eq!(policy.join(past, 1), Err(PolicyError::TooManyClients(past)));
}
