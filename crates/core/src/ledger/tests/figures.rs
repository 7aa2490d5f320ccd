//! The drawings of the 1994 paper.

use super::*;

/// 1994, Figure 3.
struct Figure3 {
    fixture: Fixture,
    alice: CurrencyId,
    bob: CurrencyId,
    task1: CurrencyId,
    task2: CurrencyId,
    task3: CurrencyId,
    thread1: ClientId,
    threads: [ClientId; 3],
}

impl Figure3 {
    /// Threads 2, 3 and 4 run; task1's thread does not.
    fn new() -> Self {
        let mut fixture = Fixture::new();
        let base = fixture.ledger.base();
        let alice = fixture.backed("alice", base, 1000);
        let bob = fixture.backed("bob", base, 2000);
        let task1 = fixture.backed("task1", alice, 100);
        let task2 = fixture.backed("task2", alice, 200);
        let task3 = fixture.backed("task3", bob, 100);
        let thread1 = fixture.funded("thread1", task1, 100);
        let threads = [
            fixture.funded("thread2", task2, 200),
            fixture.funded("thread3", task2, 300),
            fixture.funded("thread4", task3, 100),
        ];
        fixture.activate(&threads);
        Self {
            fixture,
            alice,
            bob,
            task1,
            task2,
            task3,
            thread1,
            threads,
        }
    }

    /// Issued and active amounts of alice, bob, task1, task2 and task3.
    fn amounts(&self) -> Vec<(u64, u64)> {
        let currencies = [self.alice, self.bob, self.task1, self.task2, self.task3];
        let views = currencies.map(|currency| self.fixture.ledger.currency(currency).unwrap());
        views
            .iter()
            .map(|view| (view.issued_amount, view.active_amount))
            .collect()
    }
}

#[test]
fn figure_3_currency_graph() {
    let figure = Figure3::new();
    let ledger = &figure.fixture.ledger;
    assert_eq!(figure.fixture.values(&figure.threads), [400, 600, 2000]);
    assert_eq!(figure.fixture.values(&[figure.thread1]), [0]);
    assert_eq!(
        figure.amounts(),
        [(300, 200), (100, 100), (100, 0), (500, 500), (100, 100)]
    );
    assert_eq!(ledger.active_base_amount(), 3000);
    let worth = |currency| ledger.currency(currency).unwrap().value.0 >> 32;
    assert_eq!(
        [figure.alice, figure.bob, figure.task1, figure.task2].map(worth),
        [1000, 2000, 0, 1000]
    );
}

#[test]
fn figure_3_when_task1_wakes_alice_shares_and_bob_keeps_his() {
    let mut figure = Figure3::new();
    figure.fixture.activate(&[figure.thread1]);
    assert_eq!(figure.amounts()[0], (300, 300));
    let Value(task1) = figure.fixture.ledger.value(figure.thread1);
    assert_eq!(task1, (1000u128 << 32) / 3);
    assert_eq!(figure.fixture.values(&figure.threads[2..]), [2000]);
    figure.fixture.ledger.deactivate(figure.thread1);
    assert_eq!(figure.fixture.values(&figure.threads), [400, 600, 2000]);
}

#[test]
fn figure_3_deactivation_travels_on_a_zero_edge_only() {
    let mut figure = Figure3::new();
    figure.fixture.ledger.deactivate(figure.threads[0]);
    assert_eq!(figure.amounts()[0], (300, 200), "task2 has thread3 left");
    assert_eq!(figure.fixture.values(&figure.threads), [0, 1000, 2000]);
    figure.fixture.ledger.deactivate(figure.threads[1]);
    assert_eq!(figure.amounts()[0], (300, 0));
    assert_eq!(figure.fixture.ledger.active_base_amount(), 2000);
    assert_eq!(figure.fixture.values(&figure.threads), [0, 0, 2000]);
}

/// 1994, Figure 10: t3, t7 and t8 wait for a lock and have transferred their
/// funding to the lock's currency; t2 holds the lock, and with it the lock's
/// inheritance ticket.
#[test]
fn figure_10_lock_funding() {
    let mut fixture = Fixture::new();
    let base = fixture.ledger.base();
    let t2 = fixture.funded("t2", base, 10);
    let waiters = ["t3", "t7", "t8"].map(|name| fixture.funded(name, base, 100));
    let [t3, t7, t8] = waiters;
    fixture.activate(&[t2, t3, t7, t8]);
    let lock = fixture.currency("lock");
    let inheritance = fixture.issue(lock, 1, Target::Client(t2));
    let transfers = waiters.map(|waiter| {
        let transfer = fixture.transfer(waiter, Portion::Whole([Target::Currency(lock)].into()));
        fixture.ledger.deactivate(waiter);
        transfer
    });
    assert_eq!(fixture.values(&[t2, t3, t7, t8]), [310, 0, 0, 0]);

    // t2 releases the lock and t7 gets it: its own funding returns, the others' follows the ticket.
    fixture.end(transfers[1]);
    fixture.ledger.activate(t7);
    fixture.run(fund(inheritance, Target::Client(t7)));
    assert_eq!(fixture.values(&[t2, t3, t7, t8]), [10, 0, 300, 0]);
    fixture.end(transfers[0]);
    fixture.end(transfers[2]);
    fixture.activate(&waiters);
    assert_eq!(fixture.values(&[t2, t3, t7, t8]), [10, 100, 100, 100]);
}
