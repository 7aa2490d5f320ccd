//! Loads that make a scheduler work: the two microbenchmarks of the paper on
//! multi-queue scheduling (2001, 5.2 and 5.3) as real programs, a thread that measures how
//! late it wakes, and keys that measure how late a program echoes them.
//!
//! * [`chat`]: rooms of users that send one another messages over sockets, with
//!   four threads a user;
//! * [`reflex`]: rings of threads that pass a token through pipes, and yield;
//! * [`wake`]: a thread that is due at fixed times;
//! * [`keys`]: a program on a terminal that is typed into;
//! * [`controller`]: a thread with a deadline in every period;
//! * [`gang`]: threads that spin at a barrier;
//! * [`jobs`]: threads that only compute.
//!
//! The threads belong to the calling process and run under its scheduler: plain
//! Linux or any engine. Chat and Reflex keep an exact account. A message that is lost,
//! doubled or out of order is an error, and so is a missing round.

pub mod chat;
mod compute;
pub mod controller;
mod crew;
mod deadline;
mod effort;
mod error;
pub mod gang;
pub mod jobs;
pub mod keys;
mod latencies;
mod limits;
pub mod reflex;
mod segments;
pub mod wake;
mod window;

pub use deadline::DeadlineReservation;
pub use effort::{Effort, Performance, RunQueueTimes};
pub use error::LoadError;
pub use latencies::Latencies;
pub use limits::MAX_THREADS;
pub use segments::{Doing, Segment};
pub use window::Window;

/// Watches a load while it runs, some times a second.
pub trait Watch {
    /// So many of so many messages, rounds, wakes or keys are done.
    fn progress(&mut self, done: u64, of: u64);
    /// Whether the load should end early.
    fn is_over(&mut self) -> bool {
        false
    }
}

/// Looks at nothing and never ends a load.
impl Watch for () {
    fn progress(&mut self, _: u64, _: u64) {}
}
