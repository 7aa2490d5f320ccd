//! A trace of decisions replayed: every pick must be one that stride scheduling (1995, 2)
//! allows.

mod one;
mod several;

use prorata_core::policy::PolicyError;

use self::one::OnOne;
use self::several::OnSeveral;
use crate::scheduler::Decision;

/// Units of [`Decision::pass`] that are a nanosecond for each base ticket.
const PASS_UNITS: f64 = (1 << 20) as f64;

/// How much CPU time a decision may be off by: what rounding adds up to.
const TOLERANCE_NS: f64 = 100_000.0;

/// Why a trace is not one of stride scheduling.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Disallowed {
    /// Somebody else deserved to run more.
    #[error(
        "pick {pick} is not allowed: client {node} comes {early_ns} ns of CPU time too early, before \
         a task of client {instead_of}"
    )]
    Pick {
        /// How many picks there were, this one counted.
        pick: u64,
        /// Who was picked.
        node: u32,
        /// Who should have been.
        instead_of: u32,
        /// Until when, in CPU time of all together.
        early_ns: u64,
    },
    /// Somebody joins further in front than its last leave or its newness allows.
    #[error(
        "after pick {pick} client {node} joins with {early_ns} ns of CPU time more than is due"
    )]
    Join {
        /// Picks before.
        pick: u64,
        /// Who joined.
        node: u32,
        /// How much it gains.
        early_ns: u64,
    },
    /// A pass moved otherwise than by what was used, or by the change of tickets.
    #[error(
        "after pick {pick} the pass of client {node} is {off_ns} ns of CPU time from where the core \
         has it"
    )]
    Pass {
        /// Picks before.
        pick: u64,
        /// Whose pass.
        node: u32,
        /// How far; positive if it has more of a wait than is due.
        off_ns: i64,
    },
    /// Not stride scheduling's: whoever is picked, a lottery allows it.
    #[error("after pick {pick} a lottery decides, which may pick anybody")]
    Drawn {
        /// Picks before.
        pick: u64,
    },
    /// The core refuses the decision: something is missing before it.
    #[error("the trace is not whole at client {node}: {error}")]
    NotWhole {
        /// Whose decision.
        node: u32,
        /// What the core says.
        error: PolicyError,
    },
}

/// What judges the decisions of a scheduler, one after another.
#[derive(Debug)]
pub struct Replay(Rules);

#[derive(Debug)]
enum Rules {
    One(Box<OnOne>),
    Several(Box<OnSeveral>),
}

impl Replay {
    /// Of a trace from its beginning, or with the state before it, on a kernel for so many
    /// CPUs ([`crate::scheduler::possible_cpus`]) that looks at the end of a turn once a
    /// tick.
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

    /// The next decision. Cost: on one CPU one look at each task, for a pick, a charge, and a
    /// change of tickets; on several, for a pick, one at each task that waits and at up to
    /// 1,024 decisions since it does.
    ///
    /// # Errors
    ///
    /// If the policy does not allow it, or on several CPUs one before it. What follows is
    /// not to be judged then.
    pub fn step(&mut self, decision: &Decision) -> Result<(), Disallowed> {
        match &mut self.0 {
            Rules::One(one) => one.step(decision),
            Rules::Several(several) => several.step(decision),
        }
    }
}
