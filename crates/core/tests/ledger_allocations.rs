//! Blocking, waking and reading values allocate nothing: every allocation of
//! this thread is counted.

mod operations;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use prorata_core::ids::{ClientId, CurrencyId};
use prorata_core::ledger::{Ledger, Limits, Target};

use operations::{create_client, create_currency, execute, issue};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed on unchanged to the system's allocator, which
// keeps the contract; counting touches no memory of the heap, since the
// counter is initialised at compile time and needs no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps to the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `System.alloc` with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations_in<R>(call: impl FnOnce() -> R) -> (u64, R) {
    let before = ALLOCATIONS.get();
    let result = call();
    (ALLOCATIONS.get() - before, result)
}

fn currency(ledger: &mut Ledger, name: String, backers: &[CurrencyId]) -> CurrencyId {
    let currency = operations::currency(execute(ledger, create_currency(name)));
    for &backer in backers {
        execute(ledger, issue(backer, 7, Target::Currency(currency)));
    }
    currency
}

fn client(ledger: &mut Ledger, name: String, funder: CurrencyId) -> ClientId {
    let client = operations::client(execute(ledger, create_client(Some(name))));
    execute(ledger, issue(funder, 3, Target::Client(client)));
    client
}

/// Ten users, each with two tasks that share a currency below them both; three
/// clients in each of these.
fn world() -> (Ledger, Vec<ClientId>) {
    let mut ledger = Ledger::new(Limits::default());
    let base = ledger.base();
    let mut clients = Vec::new();
    for number in 0..10 {
        let user = currency(&mut ledger, format!("user {number}"), &[base]);
        let tasks = ["left", "right"]
            .map(|side| currency(&mut ledger, format!("{side} {number}"), &[user]));
        let pool = currency(&mut ledger, format!("pool {number}"), &tasks);
        clients
            .extend((0..3).map(|thread| client(&mut ledger, format!("{number}.{thread}"), pool)));
    }
    (ledger, clients)
}

#[test]
fn blocking_waking_and_reading_values_allocate_nothing() {
    let (mut ledger, clients) = world();
    let (allocations, sum) = allocations_in(|| {
        let mut sum = 0;
        for round in 0..100 {
            for (place, client) in clients.iter().enumerate() {
                match (place * 7 + round) % 3 {
                    0 => ledger.deactivate(*client),
                    _ => ledger.activate(*client),
                }
                sum += clients
                    .iter()
                    .map(|client| ledger.value(*client).0)
                    .sum::<u128>();
            }
        }
        sum
    });
    assert!(sum > 0);
    assert_eq!(allocations, 0);

    // The counter does count: creating a client allocates at least its name.
    let base = ledger.base();
    let (allocations, _) = allocations_in(|| client(&mut ledger, "one more".to_string(), base));
    assert!(allocations > 0);
}
