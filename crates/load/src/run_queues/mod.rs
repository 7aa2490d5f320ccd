//! Run queues behind real locks, driven by real threads.
//!
//! What decides is [`prorata_core::run_queue`], as in the simulator; here the
//! locks that it asks for are real, and so is what two CPUs do at a time:
//!
//! * [`Machine`] holds the queues, each behind a [`Lock`], and carries out the
//!   steps of decisions;
//! * [`Tokens`] is who competes: Reflex (2001, 5.3) without processes, so that
//!   all time goes to decisions;
//! * [`Worker`] is a CPU: what a thread does that makes one decision after
//!   another.
//!
//! It is generic over locks, so that a model checker's can be put in.

mod lock;
mod machine;
mod tokens;
mod worker;

pub use lock::{Lock, LockStatistics, Metered, Plain};
pub use machine::{Machine, Processor};
pub use tokens::{Audit, Tokens};
pub use worker::{Counts, TICK_NS, Worker};
