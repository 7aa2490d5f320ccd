//! A client, as the engine knows it beside the kernel.

use std::collections::BTreeSet;

use prorata_kernel::scheduler::Account;

use super::room::NOTHING;
use crate::process::ProcessId;

/// A client in the kernel.
#[derive(Debug)]
pub(super) struct Client {
    /// Users of the processes that were named.
    pub(super) users: BTreeSet<u32>,
    /// Whose children, if they are nobody else's, are the client's orphans.
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
            users: BTreeSet::new(),
            adopters: Vec::new(),
            quantum_ns: None,
            processes: Vec::new(),
            now: NOTHING,
            earlier: NOTHING,
        }
    }

    /// A process that nobody named joins only if its user is that of one that
    /// was, or one of those is root's.
    pub(super) fn may_hold(&self, user: u32) -> bool {
        self.users.contains(&user) || self.users.contains(&0)
    }
}
