//! The decay-usage scheduler of 4.4BSD, by the formulas of its book (1996, 4.4).

use prorata_core::hybrid::Nice;
use prorata_core::policy::baseline::DecayUsage;
use prorata_core::policy::{ClientIndex, Policy, PolicyError};

const QUANTUM_MS: u64 = 100;
const A: ClientIndex = ClientIndex(0);
const B: ClientIndex = ClientIndex(1);
const C: ClientIndex = ClientIndex(2);

fn scheduler(clients: u32) -> DecayUsage {
    let mut scheduler = DecayUsage::new();
    for client in 0..clients {
        scheduler.join(ClientIndex(client), 1).unwrap();
    }
    scheduler
}

/// Runs quanta from `from_ms` on, and counts those of each client.
fn run(scheduler: &mut DecayUsage, from_ms: u64, quanta: u64) -> [u64; 3] {
    let mut counts = [0; 3];
    for quantum in 0..quanta {
        scheduler.advance((from_ms + quantum * QUANTUM_MS) * 1_000_000);
        let winner = scheduler.pick().unwrap();
        scheduler.take(winner).unwrap();
        scheduler.charge(winner, QUANTUM_MS, QUANTUM_MS).unwrap();
        counts[winner.0 as usize] += 1;
    }
    counts
}

fn precedes(scheduler: &DecayUsage, one: (ClientIndex, u64), other: (ClientIndex, u64)) -> bool {
    scheduler.precedes(one, other, 0, QUANTUM_MS)
}

#[test]
fn equal_processes_run_round_robin() {
    let mut scheduler = scheduler(3);
    assert_eq!(run(&mut scheduler, 0, 3), [1, 1, 1]);
    // Ten quanta a second are no multiple of three, and each second decays the estimates of
    // processes that have just run and of others alike: one may gain a third of a quantum.
    for count in run(&mut scheduler, 300, 297) {
        assert!(count.abs_diff(99) <= 10, "{count}");
    }
}

#[test]
fn four_ticks_are_one_priority_and_a_step_of_nice_two() {
    let mut scheduler = scheduler(2);
    // 50 + 39 ms / 10 ms / 4 is still 50; with 40 ms it is 51.
    assert!(!precedes(&scheduler, (A, 0), (B, 39)));
    assert!(precedes(&scheduler, (A, 0), (B, 40)));
    // 52 against 52 and against 53.
    scheduler.set_nice(A, Nice::new(1).unwrap());
    assert!(!precedes(&scheduler, (A, 0), (B, 80)));
    assert!(precedes(&scheduler, (A, 0), (B, 120)));
    scheduler.set_nice(A, Nice::MIN);
    assert!(precedes(&scheduler, (A, 250), (B, 0)));
}

#[test]
fn the_estimate_and_the_priority_end_at_their_limits() {
    let mut scheduler = scheduler(2);
    // 255 ticks are 63 priorities.
    scheduler.charge(A, 2_550, QUANTUM_MS).unwrap();
    assert!(!precedes(&scheduler, (A, 100_000), (A, 0)));
    assert!(!precedes(&scheduler, (A, 0), (A, 100_000)));
    // 50 + 63 + 40 is held at 127, and 50 + 40 + 37 is that, too.
    scheduler.set_nice(A, Nice::MAX);
    scheduler.set_nice(B, Nice::MAX);
    assert!(!precedes(&scheduler, (B, 1_480), (A, 0)));
    assert!(precedes(&scheduler, (B, 1_479), (A, 0)));
}

#[test]
fn the_estimate_decays_by_the_load() {
    // After a minute and more of two runnable processes the load is near two: an estimate of
    // 200 ticks decays to 200 * 4 / 5 in a second.
    let mut scheduler = scheduler(2);
    scheduler.advance(600_000_000_000);
    scheduler.charge(A, 2_000, QUANTUM_MS).unwrap();
    scheduler.advance(601_000_000_000);
    assert!(precedes(&scheduler, (B, 1_559), (A, 0)));
    assert!(!precedes(&scheduler, (B, 1_601), (A, 0)));
}

#[test]
fn a_nice_process_gets_less_and_does_not_starve() {
    let mut scheduler = scheduler(2);
    scheduler.set_nice(B, Nice::new(10).unwrap());
    let [plain, niced, _] = run(&mut scheduler, 0, 1_200);
    assert!(niced > 60 && niced * 2 < plain, "{plain} {niced}");
}

#[test]
fn a_process_that_slept_runs_first() {
    let mut scheduler = scheduler(2);
    scheduler.leave(B).unwrap();
    run(&mut scheduler, 0, 100);
    scheduler.join(B, 1).unwrap();
    assert!(precedes(&scheduler, (B, 0), (A, 0)));
    assert_eq!(scheduler.pick(), Some(B));
}

#[test]
fn a_nice_value_set_before_the_first_join_counts_and_a_forgotten_client_has_none() {
    let mut scheduler = scheduler(2);
    scheduler.set_nice(C, Nice::MAX);
    scheduler.join(C, 1).unwrap();
    assert!(precedes(&scheduler, (A, 0), (C, 0)));
    scheduler.forget(C);
    scheduler.join(C, 1).unwrap();
    assert!(!precedes(&scheduler, (A, 0), (C, 0)));
}

#[test]
fn clients_without_tickets_and_taken_ones_are_not_picked() {
    let mut scheduler = scheduler(2);
    scheduler.set_tickets(A, 0).unwrap();
    assert_eq!(scheduler.pick(), Some(B));
    scheduler.take(B).unwrap();
    assert_eq!(scheduler.pick(), None);
    scheduler.untake(B).unwrap();
    assert_eq!(scheduler.pick(), Some(B));
    assert_eq!((scheduler.total_tickets(), scheduler.len()), (1, 2));
}

#[test]
fn what_is_refused_changes_nothing() {
    let mut scheduler = scheduler(1);
    assert_eq!(scheduler.join(A, 1), Err(PolicyError::AlreadyJoined(A)));
    assert_eq!(scheduler.leave(B), Err(PolicyError::NotJoined(B)));
    assert_eq!(scheduler.charge(A, 1, 0), Err(PolicyError::ZeroQuantum(A)));
    let last = ClientIndex(prorata_core::policy::MAX_CLIENTS);
    assert_eq!(
        scheduler.join(last, 1),
        Err(PolicyError::TooManyClients(last))
    );
    scheduler.set_nice(last, Nice::MAX);
    assert_eq!(scheduler.len(), 1);
}
