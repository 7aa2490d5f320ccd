//! Loads that make a scheduler work: the two microbenchmarks of the paper on
//! multi-queue scheduling (2001, 5.2 and 5.3) as real programs.
//!
//! * [`chat`]: rooms full of users who send one another messages over sockets,
//!   four threads a user;
//! * [`reflex`]: rings of threads that pass a token through pipes, and yield.
//!
//! The programs are ordinary threads of the calling process, so they run under
//! whatever schedules that: plain Linux or any engine. Both keep an exact
//! account: a message that is lost, doubled or out of order, or a round that
//! is missing, is an error and not a slower result.

pub mod chat;
mod crew;
mod effort;
mod error;
mod limits;
pub mod reflex;

pub use effort::{Effort, Performance, Turns};
pub use error::LoadError;
pub use limits::MAX_THREADS;

/// Who looks on while a load runs, some times a second.
pub trait Watch {
    /// So much of so much is done: messages, or rounds.
    fn progress(&mut self, done: u64, of: u64);
    /// Whether it should end early.
    fn is_over(&mut self) -> bool;
}

/// Nobody looks on.
impl Watch for () {
    fn progress(&mut self, _: u64, _: u64) {}

    fn is_over(&mut self) -> bool {
        false
    }
}
