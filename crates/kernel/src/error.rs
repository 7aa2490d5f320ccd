//! The reasons why a scheduler does not run.

/// The reason why a request to a scheduler fails.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages explain the variants")]
pub enum KernelError {
    #[error(
        "this prorata was built without the kernel engine: build it by \
         `cargo build --features kernel`, for which scripts/vm-setup installs what is needed"
    )]
    NotBuiltIn,
    #[error(
        "this machine's kernel has no sched_ext: boot Linux 6.18 or later with \
         CONFIG_SCHED_CLASS_EXT, or run the same command in a machine of its own: \
         `prorata vm run -- prorata ...`"
    )]
    NoSchedExt,
    #[error(
        "this machine's kernel lets no program in BPF observe its scheduler: boot Linux with \
         CONFIG_BPF_EVENTS and CONFIG_DEBUG_INFO_BTF, as distributions build it, or run the same \
         command in a machine of its own: `prorata vm run -- prorata ...`"
    )]
    NoTracing,
    #[error("scheduler {0} is loaded already: unload that first")]
    Occupied(String),
    #[error("the kernel does not take the scheduler {name}: {why}")]
    Refused { name: &'static str, why: String },
    #[error("the kernel unloaded the scheduler {name}: {reason}: {message}")]
    Ejected {
        name: &'static str,
        reason: String,
        message: String,
    },
    #[error(
        "no scheduler of prorata's is loaded with a trace of its decisions: load it with one, by \
         `prorata start --engine kernel --trace`"
    )]
    NotTraced,
    #[error("the trace of the scheduler's decisions cannot be read: {0}")]
    Trace(String),
    #[error("a quantum of {quantum_ns} ns: it lasts from 100 us to 1 s")]
    Quantum { quantum_ns: u64 },
    #[error(
        "there is no node {node}: numbers are below {}",
        crate::scheduler::CGROUP_NODES
    )]
    NoSuchNode { node: u32 },
    #[error("node {node} does not exist: give it tickets first")]
    UnknownNode { node: u32 },
    #[error("the base currency cannot be funded, given tasks or removed")]
    Base,
    #[error("a ticket of {amount} for node {node}: amounts are from 1 to 2^40")]
    Amount { node: u32, amount: u64 },
    #[error("node {node} cannot be funded from node {currency}, which it funds itself")]
    Cycle { node: u32, currency: u32 },
    #[error(
        "node {node} would be more than {} tickets away from the base currency",
        crate::scheduler::MAX_DEPTH
    )]
    TooDeep { node: u32 },
    #[error(
        "there is no room for {wanted} more tickets: the kernel's table holds {}",
        crate::scheduler::TICKETS
    )]
    TooManyTickets { wanted: usize },
    #[error(
        "this kernel has PREEMPT_RT, which lacks the timer (bpf_timer) that limits of CPU time need: \
         leave the limit out, use the user engine, or boot a kernel without PREEMPT_RT"
    )]
    NoTimer,
    #[error("no timetable is open in the kernel")]
    NoTimetable,
    #[error("the kernel's timetable has no CPU {cpu}: it ends at 1023")]
    NoSuchCpu { cpu: u32 },
    #[error("there is no schedulee {number}: numbers are from 1 to 65536")]
    NoSuchSchedulee { number: u32 },
    #[error(
        "the kernel engine holds {} limits at most: end another limit first, by \
         `prorata set CLIENT --max none`",
        crate::scheduler::MOST_LIMITS
    )]
    TooManyLimits,
    #[error("node {node} {why}: it cannot be removed yet")]
    InUse { node: u32, why: &'static str },
    #[error("task {tid} cannot be scheduled in the kernel: {why}")]
    Task { tid: u32, why: std::io::Error },
}
