//! The reasons why a scheduler does not run.

/// The reason why a request to a scheduler fails.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// Built without the feature `bpf`.
    #[error(
        "this prorata was built without the kernel engine: build it by \
         `cargo build --features kernel`, for which scripts/vm-setup installs what is needed"
    )]
    NotBuiltIn,
    /// The kernel has no sched_ext.
    #[error(
        "this machine's kernel has no sched_ext: boot Linux 6.18 or later with \
         CONFIG_SCHED_CLASS_EXT, or run the same command in a machine of its own: \
         `prorata vm run -- prorata ...`"
    )]
    NoSchedExt,
    /// Another scheduler is loaded; the kernel runs one at a time.
    #[error("scheduler {0} is loaded already: unload that first")]
    Occupied(String),
    /// The kernel refuses to load the scheduler.
    #[error("the kernel does not take the scheduler {name}: {why}")]
    Refused {
        /// The scheduler.
        name: &'static str,
        /// The loader's message.
        why: String,
    },
    /// The kernel unloaded the scheduler.
    #[error("the kernel unloaded the scheduler {name}: {reason}: {message}")]
    Ejected {
        /// The scheduler.
        name: &'static str,
        /// The kernel's short reason.
        reason: String,
        /// The kernel's message.
        message: String,
    },
    /// The loaded scheduler has no trace.
    #[error(
        "no scheduler of prorata's is loaded with a trace of its decisions: load it with one, by \
         `prorata start --engine kernel --trace`"
    )]
    NotTraced,
    /// The trace cannot be read.
    #[error("the trace of the scheduler's decisions cannot be read: {0}")]
    Trace(String),
    /// A quantum outside the limits.
    #[error("a quantum of {quantum_ns} ns: it lasts from 100 us to 1 s")]
    Quantum {
        /// The rejected value.
        quantum_ns: u64,
    },
    /// The number of a node that the caller may not use.
    #[error(
        "there is no node {node}: numbers are below {}",
        crate::scheduler::CGROUP_NODES
    )]
    NoSuchNode {
        /// The rejected value.
        node: u32,
    },
    /// A node that never had tickets, or was removed.
    #[error("node {node} does not exist: give it tickets first")]
    UnknownNode {
        /// The rejected value.
        node: u32,
    },
    /// The base currency cannot be changed.
    #[error("the base currency cannot be funded, given tasks or removed")]
    Base,
    /// An amount outside the limits.
    #[error("a ticket of {amount} for node {node}: amounts are from 1 to 2^40")]
    Amount {
        /// The node to be funded.
        node: u32,
        /// The rejected value.
        amount: u64,
    },
    /// The node would fund itself.
    #[error("node {node} cannot be funded from node {currency}, which it funds itself")]
    Cycle {
        /// The node to be funded.
        node: u32,
        /// The ticket's currency.
        currency: u32,
    },
    /// Too long a chain of tickets.
    #[error(
        "node {node} would be more than {} tickets away from the base currency",
        crate::scheduler::MAX_DEPTH
    )]
    TooDeep {
        /// The node to be funded.
        node: u32,
    },
    /// Too many tickets.
    #[error(
        "there is no room for {wanted} more tickets: the kernel's table holds {}",
        crate::scheduler::TICKETS
    )]
    TooManyTickets {
        /// Tickets that were asked for.
        wanted: usize,
    },
    /// A node that cannot be removed yet.
    #[error("node {node} {why}: it cannot be removed yet")]
    InUse {
        /// The node.
        node: u32,
        /// What uses the node.
        why: &'static str,
    },
    /// A task that does not exist, or cannot move.
    #[error("task {tid} cannot be scheduled in the kernel: {why}")]
    Task {
        /// The task.
        tid: u32,
        /// The kernel's error.
        why: std::io::Error,
    },
}
