//! Loads that make a scheduler work: the two microbenchmarks of the paper on
//! multi-queue scheduling (2001, 5.2 and 5.3) as real programs, a thread that measures how
//! late it wakes, and keys that measure how late a program echoes them.
//!
//! * [`chat`]: rooms of users that send one another messages over sockets, with
//!   four threads a user;
//! * [`reflex`]: rings of threads that pass a token through pipes, and yield;
//! * [`wake`]: a thread that is due at fixed times;
//! * [`keys`]: a program on a terminal that is typed into.
//!
//! The threads belong to the calling process and run under its scheduler: plain
//! Linux or any engine. Chat and Reflex keep an exact account. A message that is lost,
//! doubled or out of order is an error, and so is a missing round.

pub mod chat;
mod compute;
mod crew;
mod effort;
mod error;
pub mod keys;
mod latencies;
mod limits;
pub mod reflex;
pub mod wake;

pub use effort::{Effort, Performance, RunQueueTimes};
pub use error::LoadError;
pub use latencies::Latencies;
pub use limits::MAX_THREADS;

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
