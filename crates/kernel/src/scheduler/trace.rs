//! Decisions of the scheduler in the kernel, as its trace tells them.

#[cfg(feature = "bpf")]
use libbpf_rs::{MapCore, MapFlags};

#[cfg(feature = "bpf")]
use crate::KernelError;

/// What was decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecisionKind {
    /// The node competes from now on, as it did before at times: one of its tasks wants
    /// to run.
    Join,
    /// It ceases to, with this pass.
    Leave,
    /// It is worth something else, and so has another pass.
    Tickets,
    /// One of its tasks runs next.
    Pick,
    /// One of its tasks used service, and now it has this pass.
    Charge,
    /// The node competes from now on, for the first time.
    New,
    /// Not a decision: what came before is to be forgotten, and the state follows, node by
    /// node. So a trace begins that is taken when decisions have been made already.
    Begin,
    /// Part of the state: the node competes, with this pass.
    Competes,
    /// Part of the state: the node does not compete; this was its pass, and the present
    /// one, when it ceased to.
    Sleeps,
    /// On several CPUs: a task is about to wait in a queue, or elsewhere in it. It is there
    /// for certain when this CPU decides anything else.
    Wait,
    /// This CPU begins to look at the queues.
    Look,
    /// It has taken a task that waited there.
    Take,
    /// A task does not wait any more.
    Go,
}

impl DecisionKind {
    /// Whether it decides about a client, rather than tells of the state or of the queues.
    pub fn is_decision(self) -> bool {
        use DecisionKind::{Charge, Join, Leave, New, Pick, Tickets};
        matches!(self, Join | Leave | Tickets | Pick | Charge | New)
    }
}

/// A decision about a node, as a client of the scheduler's.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Decision {
    /// What was decided.
    pub kind: DecisionKind,
    /// The node.
    pub node: u32,
    /// Of a pick, a charge and what is told of tasks: the task, by its number in the kernel's
    /// own name space. Else 0.
    pub tid: u32,
    /// The CPU that decided: of a pick, the one that is given.
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
    /// Of a charge: CPU time used.
    pub service_ns: u64,
    /// The longest turn of its tasks.
    pub quantum_ns: u64,
    /// Its tasks that compete.
    pub tasks: u32,
    /// Whether a lottery decides, and not stride scheduling.
    pub drawn: bool,
    /// Of a task that waits: its place in the queue, which is its pass, unless that means
    /// too long a wait.
    pub key: u64,
    /// Of a task that waits, or is taken: the queue.
    pub queue: u32,
    /// Of a task that waits, or is taken: whether it is a client of its own, for being bound
    /// to some of the CPUs. The pass is its own then.
    pub is_alone: bool,
}

/// A part of a trace.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Trace {
    /// In order on each CPU.
    pub decisions: Vec<Decision>,
    /// Decisions since the scheduler was loaded that are not in the trace, for
    /// want of room.
    pub lost: u64,
}

#[cfg(feature = "bpf")]
const BYTES: usize = 88;

/// Reads `struct decision` of `bpf/abi.h`; nothing if these bytes are none.
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
        is_alone: word(10) >> 32 != 0,
    })
}

/// What is in a map of one number, as `bpf/trace.bpf.h` has them.
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

/// Changes it.
#[cfg(feature = "bpf")]
pub(super) fn set_count_in(map: &dyn MapCore, count: u64) -> Result<(), KernelError> {
    let set = map.update(&FIRST, &count.to_ne_bytes(), MapFlags::ANY);
    set.map_err(|error| KernelError::Trace(error.to_string()))
}

#[cfg(feature = "bpf")]
const FIRST: [u8; 4] = 0_u32.to_ne_bytes();
