//! Run queues of a machine with many CPUs (2001): who runs next, and where who
//! could run waits.
//!
//! Two axes that know nothing of each other:
//!
//! * a [`Ranking`] orders tasks: [`Goodness`], that of Linux 2.4, or [`Pass`],
//!   proportional shares;
//! * a [`Layout`] says where they wait: one list under one lock (DSS), an array
//!   of lists under one lock (PLS), a queue and lock for each CPU (MQ), or that
//!   within pools of CPUs.
//!
//! Nothing here takes a lock or knows a clock. A decision is a machine of
//! [`Step`]s; a driver carries them out, with real locks or simulated ones, and
//! owns the [`Queue`]s behind them. What is read without a lock is in
//! [`RunQueues`]. [`Sequential`] is the plainest driver.
//!
//! ```text
//!   Schedule  who runs next on a CPU              schedule()
//!   Place     a CPU for who woke or was displaced reschedule_idle()
//!   Tick      a time slice grows shorter          the timer
//!   Balance   a pool takes a task from another, and Place puts it there
//!   Adjust    tickets or nice value change
//!   Reweigh   weights were readjusted, so tickets change
//! ```
//!
//! The paper is Kravetz, Franke, Nagar and Ravindran, *Enhancing Linux
//! Scheduler Scalability*, IBM Research Report, 2001.

mod adjust;
mod atomic;
mod availability;
mod balance;
mod board;
mod decision;
mod feasible_tickets;
mod goodness;
mod in_force;
mod layout;
mod limits;
mod load;
mod pass;
mod place;
mod place_set;
mod queue;
mod ranking;
mod reweigh;
mod schedule;
mod schedule_queues;
mod search;
mod sequential;
mod single_pass;
mod task;
mod tick;
mod turn;
mod weights;

pub use adjust::{Adjust, Change};
pub use balance::{Balance, Moving};
pub use board::{Best, Comparison, Offers};
pub use decision::{Decision, Held, LockIndex, Step};
pub use feasible_tickets::FeasibleTickets;
pub use goodness::{Goodness, MAX_PENALTY, MAX_RETURNED, REAL_TIME, fork_counter, return_counter};
pub use in_force::{InForce, TICKET_PARTS};
pub use layout::{Layout, LayoutError, MAX_CPUS, RunQueues};
pub use limits::{
    Counter, LimitError, MAX_COUNTER, MAX_QUANTUM_NS, MAX_TICKETS, MAX_WEIGHTED_TASKS,
    MIN_QUANTUM_NS, Nice, Tickets,
};
pub use pass::{Pass, QUANTUM_SERVICE};
pub use place::{Displaced, Place};
pub use place_set::PlaceSet;
pub use queue::{Queue, Slot};
pub use ranking::{MAX_LEVELS, NOBODY, Precedence, Rank, Ranking, Scale};
pub use reweigh::Reweigh;
pub use schedule::Schedule;
pub use sequential::Sequential;
pub use task::{Class, Cpu, CpuSet, Task, TaskIndex};
pub use tick::Tick;
pub use turn::{End, Outcome, Turn};
pub use weights::Weights;
