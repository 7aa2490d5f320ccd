//! A client, as the engine knows it beside the kernel.

use prorata_kernel::scheduler::Account;
use prorata_user::ownership::Users;

use super::kernel_side::NOTHING;
use crate::process::ProcessId;

/// A client in the kernel.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) users: Users,
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
            adopters: Vec::new(),
            quantum_ns: None,
            processes: Vec::new(),
            now: NOTHING,
            earlier: NOTHING,
        }
    }
}
