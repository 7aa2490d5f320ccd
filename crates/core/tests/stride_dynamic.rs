//! Stride scheduling while clients come, go and change (1995, 2.2, 2.3, 3.1).

use prorata_core::policy::{ClientIndex, Policy, Stride};

const A: ClientIndex = ClientIndex(0);
const B: ClientIndex = ClientIndex(1);

fn stride(tickets: &[u32]) -> Stride {
    let mut policy = Stride::new();
    for (index, &tickets) in tickets.iter().enumerate() {
        policy.join(ClientIndex(index as u32), tickets).unwrap();
    }
    policy
}

/// The winners of so many quanta, as letters.
fn run(policy: &mut Stride, quanta: usize) -> String {
    let turn = |_| {
        let winner = policy.pick().unwrap();
        policy.charge(winner, 10, 10).unwrap();
        ['A', 'B', 'C', 'D'][winner.0 as usize]
    };
    (0..quanta).map(turn).collect()
}

#[test]
fn a_client_that_leaves_in_debt_comes_back_in_debt() {
    let mut policy = stride(&[1, 1]);
    assert_eq!(run(&mut policy, 1), "A");
    // A is half a quantum ahead of its share, so one and a half strides remain.
    policy.leave(A).unwrap();
    assert_eq!(run(&mut policy, 10), "BBBBBBBBBB");
    // The global pass is 10.5 strides, so A is at 12 and B at 11.
    policy.join(A, 1).unwrap();
    assert_eq!(run(&mut policy, 4), "BABA");
}

#[test]
fn a_client_that_leaves_with_credit_comes_back_with_it() {
    let mut policy = stride(&[1, 1]);
    assert_eq!(run(&mut policy, 1), "A");
    // B is half a quantum behind its share: half a stride remains.
    policy.leave(B).unwrap();
    assert_eq!(run(&mut policy, 10), "AAAAAAAAAA");
    // The global pass is 10.5 strides, so B is at 11 and A at 12.
    policy.join(B, 1).unwrap();
    assert_eq!(run(&mut policy, 4), "BABA");
}

#[test]
fn to_leave_and_come_back_at_once_changes_nothing() {
    let tickets = [5, 3, 2];
    let mut still = stride(&tickets);
    let mut restless = stride(&tickets);
    for quantum in 0..1000 {
        let client = ClientIndex(quantum % 3);
        restless.leave(client).unwrap();
        restless.join(client, tickets[client.0 as usize]).unwrap();
        assert_eq!(
            run(&mut restless, 1),
            run(&mut still, 1),
            "quantum {quantum}"
        );
    }
}

#[test]
fn sleeping_gains_nothing() {
    // A sleeps whenever it has had a turn, and wakes a quantum later. It gets
    // no more than B, which has the same tickets and stays.
    let mut policy = stride(&[1, 1, 2]);
    let mut received = [0; 3];
    for _ in 0..3000 {
        let winner = policy.pick().unwrap();
        policy.charge(winner, 1, 1).unwrap();
        received[winner.0 as usize] += 1;
        if winner == A {
            policy.leave(A).unwrap();
        } else if policy.len() == 2 {
            policy.join(A, 1).unwrap();
        }
    }
    assert!(received[0] <= received[1], "{received:?}");
    assert!(received[0] > 500, "{received:?}");
}

#[test]
fn figure_4_a_change_scales_what_remains() {
    // A: stride 1, B: stride 1. After A's quantum 1.5 strides of A remain.
    // With three times the tickets the stride is a third, so 0.5 remain.
    let mut policy = stride(&[1, 1]);
    assert_eq!(run(&mut policy, 1), "A");
    policy.set_tickets(A, 3).unwrap();
    // The global pass is 0.5: A at 1 and then every third; B at 1, 2, ...
    assert_eq!(run(&mut policy, 8), "ABAAABAA");
    assert_eq!(policy.total_tickets(), 4);
    // Now at 2.5, half a pass before A's next turn: one and a half of its
    // strides, which become three times as long. A at 4, B at 3.
    policy.set_tickets(A, 1).unwrap();
    assert_eq!(run(&mut policy, 4), "BABA");
}

#[test]
fn complete_transfer_leaves_the_place_remembered() {
    // 1995, 3.1: A lends all its tickets to B, and gets them back.
    let mut policy = stride(&[2, 1, 1]);
    assert_eq!(run(&mut policy, 1), "A");
    let mut lent = policy.clone();
    lent.set_tickets(A, 0).unwrap();
    lent.set_tickets(B, 3).unwrap();
    assert_eq!((lent.total_tickets(), lent.len()), (4, 3));
    assert!(!run(&mut lent, 12).contains('A'));
    lent.set_tickets(B, 1).unwrap();
    lent.set_tickets(A, 2).unwrap();
    // A has the same part of its stride to wait as when it lent, and the
    // others have run for whole periods of theirs.
    assert_eq!(run(&mut lent, 12), run(&mut policy, 12));
}

#[test]
fn a_client_without_tickets_is_not_picked() {
    let mut policy = stride(&[0, 0]);
    assert_eq!(policy.pick(), None);
    assert_eq!((policy.total_tickets(), policy.len()), (0, 2));
    // What A uses meanwhile, it has to wait for later.
    policy.charge(A, 5, 1).unwrap();
    policy.set_tickets(A, 1).unwrap();
    policy.set_tickets(B, 1).unwrap();
    assert_eq!(run(&mut policy, 8), "BBBBBABA");
    policy.leave(A).unwrap();
    policy.set_tickets(B, 0).unwrap();
    assert_eq!(policy.pick(), None);
    // An absent client's tickets are those that it comes back with.
    policy.join(A, 0).unwrap();
    assert_eq!(policy.pick(), None);
    policy.set_tickets(A, 3).unwrap();
    assert_eq!(run(&mut policy, 2), "AA");
}
