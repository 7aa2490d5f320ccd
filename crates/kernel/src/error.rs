//! Why a scheduler does not run.

/// What is wrong.
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
    /// Another scheduler is there; there can be one only.
    #[error("scheduler {0} is loaded already: unload that first")]
    Occupied(String),
    /// The kernel refuses the scheduler.
    #[error("the kernel does not take the scheduler {name}: {why}")]
    Refused {
        /// The scheduler.
        name: &'static str,
        /// What the loader says.
        why: String,
    },
    /// The kernel threw it out.
    #[error("the kernel unloaded the scheduler {name}: {reason}: {message}")]
    Ejected {
        /// The scheduler.
        name: &'static str,
        /// The kernel's reason, in short.
        reason: String,
        /// What it says beyond that.
        message: String,
    },
    /// The scheduler that is loaded has no trace.
    #[error(
        "no scheduler of prorata's is loaded with a trace of its decisions: load it with one, by \
         `prorata start --engine kernel --trace`"
    )]
    NotTraced,
    /// A trace that cannot be read.
    #[error("the trace of the scheduler's decisions cannot be read: {0}")]
    Trace(String),
    /// A quantum outside the limits.
    #[error("a quantum of {quantum_ns} ns: it lasts from 100 us to 1 s")]
    Quantum {
        /// What was asked for.
        quantum_ns: u64,
    },
    /// A node's number is not the caller's to use.
    #[error(
        "there is no node {node}: numbers are below {}",
        crate::scheduler::CGROUP_NODES
    )]
    NoSuchNode {
        /// What was asked for.
        node: u32,
    },
    /// A node that never was given tickets, or was removed.
    #[error("node {node} does not exist: give it tickets first")]
    UnknownNode {
        /// What was asked for.
        node: u32,
    },
    /// The base currency is worth what it is.
    #[error("the base currency cannot be funded, given tasks or removed")]
    Base,
    /// An amount outside the limits.
    #[error("a ticket of {amount} for node {node}: amounts are from 1 to 2^40")]
    Amount {
        /// The node to be funded.
        node: u32,
        /// What was asked for.
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
        /// What it is used for.
        why: &'static str,
    },
    /// A task that is not there, or not to be moved.
    #[error("task {tid} cannot be scheduled in the kernel: {why}")]
    Task {
        /// The task.
        tid: u32,
        /// What the kernel says.
        why: std::io::Error,
    },
}
