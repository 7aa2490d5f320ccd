//! A client, as the engine knows it beside the kernel.

use prorata_core::hybrid::FACTOR_ONE;
use prorata_kernel::scheduler::{Account, BUCKETS};
use prorata_user::ownership::Users;

use crate::process::ProcessId;

/// A client in the kernel.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) users: Users,
    /// It holds what no caller named: a process leaves it for any client that it is named for.
    pub(super) gives_way: bool,
    /// Orphans of the client become children of these processes.
    pub(super) adopters: Vec<ProcessId>,
    /// Its own quantum, if it has one.
    pub(super) quantum_ns: Option<u64>,
    /// As of the last look.
    pub(super) processes: Vec<ProcessId>,
    /// As of the last look; of this scheduler.
    pub(super) now: Account,
    /// Of schedulers that were unloaded.
    pub(super) earlier: Account,
}

impl Client {
    pub(super) fn new() -> Self {
        Self {
            users: Users::default(),
            gives_way: false,
            adopters: Vec::new(),
            quantum_ns: None,
            processes: Vec::new(),
            now: NOTHING,
            earlier: NOTHING,
        }
    }
}

/// An account of nothing.
pub(super) const NOTHING: Account = Account {
    received_ns: 0,
    specified_ns: 0,
    runnable: 0,
    bound: 0,
    tasks: 0,
    pauses: false,
    dispatches: 0,
    migrations: 0,
    waited_ns: 0,
    waits: [0; BUCKETS],
    lead_ns: 0,
    nice_factor: FACTOR_ONE,
};

/// The sum of an account and its continuation.
pub(super) fn sum(earlier: &Account, now: &Account) -> Account {
    let mut waits = earlier.waits;
    for (wait, now) in waits.iter_mut().zip(now.waits) {
        *wait += now;
    }
    Account {
        received_ns: earlier.received_ns + now.received_ns,
        specified_ns: earlier.specified_ns + now.specified_ns,
        dispatches: earlier.dispatches + now.dispatches,
        migrations: earlier.migrations + now.migrations,
        waited_ns: earlier.waited_ns + now.waited_ns,
        waits,
        ..*now
    }
}
