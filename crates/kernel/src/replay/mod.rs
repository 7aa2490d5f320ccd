//! Replays a trace of decisions: stride scheduling (1995, 2) must allow every pick.

mod early;
mod one;
mod pauses;
mod several;
mod slots;

use prorata_core::policy::PolicyError;

use self::one::OnOne;
use self::several::OnSeveral;
use crate::scheduler::{Decision, PASS_BITS};

/// Units of [`Decision::pass`] that are a nanosecond for each base ticket.
const PASS_UNITS: f64 = (1 << PASS_BITS) as f64;

/// How much CPU time a decision may be off by. Rounding adds up to this.
const TOLERANCE_NS: f64 = 100_000.0;

/// Why a trace does not follow stride scheduling.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages explain the variants")]
pub enum Disallowed {
    #[error(
        "pick {pick} is not allowed: client {node} comes {early_ns} ns of CPU time too early, before \
         a task of client {instead_of}"
    )]
    Pick {
        /// The number of picks so far, including this one.
        pick: u64,
        node: u32,
        instead_of: u32,
        /// How much too early, in CPU time of all clients together.
        early_ns: u64,
    },
    #[error(
        "after pick {pick} client {node} joins with {early_ns} ns of CPU time more than is due"
    )]
    Join {
        pick: u64,
        node: u32,
        /// The CPU time that it gains.
        early_ns: u64,
    },
    #[error(
        "after pick {pick} the pass of client {node} is {off_ns} ns of CPU time from where the core \
         has it"
    )]
    Pass {
        pick: u64,
        node: u32,
        /// The distance, positive if the client waits too long.
        off_ns: i64,
    },
    #[error(
        "pick {pick} is not allowed: a task of client {node} runs, although an early task of client \
         {instead_of} precedes it"
    )]
    Early {
        /// The number of picks so far, including this one.
        pick: u64,
        node: u32,
        instead_of: u32,
    },
    #[error(
        "pick {pick} is not allowed: a task of client {node} runs early with a lead of {lead_ns} ns, \
         more than {bound_ns} ns"
    )]
    Lead {
        pick: u64,
        node: u32,
        /// The lead of the client, or of the task if that is larger.
        lead_ns: u64,
        bound_ns: u64,
    },
    #[error(
        "after pick {pick} a task of client {node} is to go before early tasks after a wait of only \
         {waited_ns} ns"
    )]
    Overdue {
        pick: u64,
        node: u32,
        waited_ns: u64,
    },
    #[error(
        "after pick {pick} a task of client {node} is early that received {received_ns} of \
         {deserved_ns} ns that it deserved: its rank says otherwise"
    )]
    Fraction {
        pick: u64,
        node: u32,
        received_ns: u64,
        deserved_ns: u64,
    },
    #[error(
        "after pick {pick} client {node} uses {used_ns} ns while it pauses by its limit, more than \
         {bound_ns} ns"
    )]
    Limit {
        pick: u64,
        node: u32,
        /// CPU time beyond that of the turn in which it exhausted its allowance.
        used_ns: u64,
        bound_ns: u64,
    },
    #[error(
        "pick {pick} is not allowed: a task of client {node} runs by the timetable on CPU {cpu}, whose \
         slot is not its own"
    )]
    Slot { pick: u64, node: u32, cpu: u32 },
    #[error(
        "after pick {pick} the fallback decides in a slot of client {node}, which wants to run"
    )]
    FallBack { pick: u64, node: u32 },
    /// A lottery decides, and a lottery allows every pick.
    #[error("after pick {pick} a lottery decides, which may pick any client")]
    Drawn { pick: u64 },
    /// The core refuses the decision: the trace lacks an earlier one.
    #[error("the trace is not whole at client {node}: {error}")]
    NotWhole { node: u32, error: PolicyError },
}

/// Judges the decisions of a scheduler, one after another.
#[derive(Debug)]
pub struct Replay(Rules);

#[derive(Debug)]
enum Rules {
    One(Box<OnOne>),
    Several(Box<OnSeveral>),
}

impl Replay {
    /// For a trace from its beginning, or with the state before it. `cpus` is
    /// [`crate::scheduler::possible_cpus`] of its kernel, which ends turns at its tick.
    pub fn new(tick_ns: u64, cpus: u32) -> Self {
        Self(match cpus {
            1 => Rules::One(Box::new(OnOne::new(tick_ns))),
            _ => Rules::Several(Box::default()),
        })
    }

    /// Picks so far.
    pub fn picks(&self) -> u64 {
        match &self.0 {
            Rules::One(one) => one.picks(),
            Rules::Several(several) => several.picks(),
        }
    }

    /// Judges the next decision. Cost on one CPU: one look at each task for a pick, a charge
    /// and a change of tickets. Cost on several: for a pick, one look at each waiting task and
    /// at up to 1,024 decisions since it waits.
    ///
    /// # Errors
    ///
    /// If the policy does not allow this decision, or, on several CPUs, an earlier one. No
    /// later decision can be judged then.
    pub fn step(&mut self, decision: &Decision) -> Result<(), Disallowed> {
        match &mut self.0 {
            Rules::One(one) => one.step(decision),
            Rules::Several(several) => several.step(decision),
        }
    }
}
