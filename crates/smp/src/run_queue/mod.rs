//! The run queues of *Enhancing Linux Scheduler Scalability* (Kravetz, Franke,
//! Nagar and Ravindran, 2001): tasks ranked by the goodness of Linux 2.4, in
//! the layouts that the paper compares.
//!
//! A [`QueueLayout`] says where tasks wait: one list under one lock (DSS), an array
//! of lists under one lock (PLS), a queue and a lock for each CPU (MQ), or MQ
//! within pools of CPUs.
//!
//! Nothing here takes a lock or reads a clock. A [`Decision`] is a state
//! machine that asks for [`DecisionStep`]s. A driver carries the steps out with
//! simulated locks and owns the [`Queue`]s behind these. [`RunQueues`] holds
//! what CPUs read without a lock.
//!
//! ```text
//!   Schedule   which task runs next on a CPU          schedule()
//!   Placement  a CPU for a task that wakes or waits   reschedule_idle()
//!   Tick       shortens a time slice                  the timer
//!   Balance    takes a task from another pool; a Placement puts it in its queue
//! ```

mod availability;
mod balance;
mod decision;
mod goodness;
mod layout;
mod load;
mod offers;
mod placement;
mod queue;
mod schedule;
mod schedule_queues;
mod search;
mod task;
mod tick;
mod turn;

#[cfg(test)]
mod tests;

pub use balance::{Balance, Moving};
pub use decision::{Decision, DecisionStep, Held, LockIndex};
pub use goodness::{Goodness, Rank};
pub use layout::{LayoutError, MAX_CPUS, QueueLayout, RunQueues};
pub use offers::Comparison;
pub use placement::{Displaced, Placement};
pub use queue::Queue;
pub use schedule::Schedule;
pub use task::{Cpu, Task, TaskIndex};
pub use tick::Tick;
pub use turn::{Scheduled, TurnEnd};
