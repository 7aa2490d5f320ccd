//! Decisions of the scheduler in the kernel, as its trace reports them.

#[cfg(feature = "bpf")]
use libbpf_rs::{MapCore, MapFlags};

#[cfg(feature = "bpf")]
use crate::KernelError;

/// What was decided.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum DecisionKind {
    /// The node competes again: one of its tasks became runnable.
    Join,
    /// The node ceases to compete, with this pass.
    Leave,
    /// The node's worth changes, and its pass with it.
    Tickets,
    /// A task of the node runs next.
    Pick,
    /// A task of the node used service, and the node now has this pass.
    Charge,
    /// The node competes for the first time.
    New,
    /// The state follows, node by node, and replaces all earlier records. A trace that is
    /// opened after the first decisions begins so.
    #[default]
    Begin,
    /// Part of the state: the node competes, with this pass.
    Competes,
    /// Part of the state: the node does not compete. The passes are those when it ceased to.
    Sleeps,
    /// On several CPUs: a task is about to enter a queue, or to move inside it. It has done so
    /// by the next record of this CPU.
    Wait,
    /// On several CPUs, and where tasks are early: this CPU begins to look at the queues.
    Look,
    /// On several CPUs: this CPU has taken a task from a queue.
    Take,
    /// On several CPUs: a task no longer waits.
    Go,
    /// An early task begins to wait, in the queue [`super::EARLY`] or in the CPU's own.
    WaitEarly,
    /// An early task that may have waited is not early any more.
    EndEarly,
    /// The task has waited for `service_ns`, too long: no early task runs next.
    Overdue,
    /// A limited node has exhausted its allowance, and pauses.
    Pause,
    /// Its pause is over.
    Resume,
    /// A task of a pausing node is about to run all the same: it ends, or has waited too long.
    Spare,
    /// A CPU looks at its row of the timetable.
    LookAtSlot,
    /// A task gets the CPU of its slot. It waits nowhere else any more.
    TakeInSlot,
    /// The schedulee of this CPU's slot does not want to run: the fallback decides once.
    FallBack,
}

impl DecisionKind {
    /// Whether this is a decision about a client, not about the state or the queues.
    pub fn is_decision(self) -> bool {
        use DecisionKind::{Charge, Join, Leave, New, Pick, Tickets};
        matches!(self, Join | Leave | Tickets | Pick | Charge | New)
    }
}

/// A decision about a node.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Decision {
    /// What was decided.
    pub kind: DecisionKind,
    /// The node.
    pub node: u32,
    /// The task of a pick, of a charge and of records about tasks, by its number in the
    /// initial PID namespace; else 0.
    pub tid: u32,
    /// The CPU that decided. For a pick, the CPU that the task gets.
    pub cpu: u32,
    /// The CPU's clock.
    pub time_ns: u64,
    /// The node's pass: nanoseconds of CPU time for each base ticket, in units
    /// of 2^-20. Wraps around.
    pub pass: u64,
    /// Base tickets that its tasks are worth together.
    pub tickets: f64,
    /// The present pass (1995, 2.2: global pass).
    pub present: u64,
    /// The CPU time that is charged. Of a client that comes back: the most that it may owe, if the use
    /// out of order is bounded. Of an early task that waits or is taken: what it deserved in
    /// the last ten seconds; 0 in its first second.
    pub service_ns: u64,
    /// The longest turn of its tasks.
    pub quantum_ns: u64,
    /// Its competing tasks.
    pub tasks: u32,
    /// Whether a lottery decides, not stride scheduling.
    pub drawn: bool,
    /// Of a node: the longest wait, as a difference of passes. Of a pick: the latest place that the
    /// task may have had. The place of a waiting task in its queue: the pass, unless that means too
    /// long a wait. Of an early task that waits or is taken: what it received in the last ten
    /// seconds.
    pub key: u64,
    /// The queue of a task that waits or is taken. Of a pick: [`super::BY_CLAIM`] if the timetable
    /// decided, not the order of tasks.
    pub queue: u32,
    /// Whether a task that waits or is taken is bound to some of the CPUs. The pass is its own
    /// in that case.
    pub is_bound: bool,
    /// Of a task: its rank if it is early. The least runs first
    /// ([`prorata_core::hybrid::EarlyRank`]).
    pub early: Option<u64>,
    /// Of a task: how far its client's use is ahead of what the client was due. Of an early task: the
    /// lead by which the kernel decided that it is early.
    pub lead_ns: u64,
    /// Of a task: how far its own use is ahead of its part of that.
    pub own_lead_ns: u64,
}

/// A part of a trace.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Trace {
    /// In order on each CPU.
    pub decisions: Vec<Decision>,
    /// Decisions since the load that the trace lacks because the ring was full.
    pub lost: u64,
}

#[cfg(feature = "bpf")]
const BYTES: usize = 112;

/// The rank of a task that is not early (`bpf/task.bpf.h`).
#[cfg(feature = "bpf")]
const NOT_EARLY: u64 = u64::MAX;

/// Reads `struct decision` of `bpf/abi.h`, if these bytes are one.
#[cfg(feature = "bpf")]
pub(super) fn decode(bytes: &[u8]) -> Option<Decision> {
    let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
    let word = |index: usize| {
        let bytes = &bytes[index * 8..][..8];
        u64::from_ne_bytes(bytes.try_into().expect("there are eight"))
    };
    let kind = match word(0) as u32 {
        0 => DecisionKind::Join,
        1 => DecisionKind::Leave,
        2 => DecisionKind::Tickets,
        3 => DecisionKind::Pick,
        4 => DecisionKind::Charge,
        5 => DecisionKind::New,
        6 => DecisionKind::Begin,
        7 => DecisionKind::Competes,
        8 => DecisionKind::Sleeps,
        9 => DecisionKind::Wait,
        10 => DecisionKind::Look,
        11 => DecisionKind::Take,
        12 => DecisionKind::Go,
        13 => DecisionKind::WaitEarly,
        14 => DecisionKind::EndEarly,
        15 => DecisionKind::Overdue,
        16 => DecisionKind::Pause,
        17 => DecisionKind::Resume,
        18 => DecisionKind::Spare,
        19 => DecisionKind::LookAtSlot,
        20 => DecisionKind::TakeInSlot,
        21 => DecisionKind::FallBack,
        _ => return None,
    };
    Some(Decision {
        kind,
        node: (word(0) >> 32) as u32,
        tid: word(1) as u32,
        cpu: (word(1) >> 32) as u32,
        time_ns: word(2),
        pass: word(3),
        tickets: super::worth::to_f64(word(4)),
        present: word(5),
        service_ns: word(6),
        quantum_ns: word(7),
        tasks: word(8) as u32,
        drawn: word(8) >> 32 != 0,
        key: word(9),
        queue: word(10) as u32,
        is_bound: word(10) >> 32 != 0,
        early: Some(word(11)).filter(|rank| *rank != NOT_EARLY),
        lead_ns: word(12),
        own_lead_ns: word(13),
    })
}

/// The number in a map of one number (`bpf/trace.bpf.h`).
#[cfg(feature = "bpf")]
pub(super) fn count_in(map: &dyn MapCore) -> Result<u64, KernelError> {
    let unreadable = |why: &dyn std::fmt::Display| KernelError::Trace(why.to_string());
    let count = map.lookup(&FIRST, MapFlags::ANY);
    let count = count.map_err(|error| unreadable(&error))?;
    let bytes = count.ok_or_else(|| unreadable(&"a map of one number has none"))?;
    let bytes = bytes.try_into();
    let bytes = bytes.map_err(|_| unreadable(&"a map of one number has another length"))?;
    Ok(u64::from_ne_bytes(bytes))
}

/// Sets the number in a map of one number.
#[cfg(feature = "bpf")]
pub(super) fn set_count_in(map: &dyn MapCore, count: u64) -> Result<(), KernelError> {
    let set = map.update(&FIRST, &count.to_ne_bytes(), MapFlags::ANY);
    set.map_err(|error| KernelError::Trace(error.to_string()))
}

#[cfg(feature = "bpf")]
const FIRST: [u8; 4] = 0_u32.to_ne_bytes();
