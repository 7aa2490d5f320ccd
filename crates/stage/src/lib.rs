//! Runs scenarios on real processes: each client is a process that runs its program, and an
//! engine shares the CPUs out among them.
//!
//! ```text
//! scenario file -> plan -> run ---- messages ----> processes
//!                                           |                         ^
//!                                         stage: dispatcher, engine --+
//!                                           |
//!                                         report, verdicts (prorata-sim)
//! ```
//!
//! `prorata-scenario` has the rules by which threads meet, the timeline, the measures and
//! the verdicts, once for every engine. This crate has the real parts: processes, clocks,
//! sockets.
//!
//! A program that runs scenarios calls `prorata_user::guardian_entry` and
//! [`client_entry`] first thing in `main`.

mod cast;
mod engine;
mod error;
mod message;
mod process;
mod refusal;
mod run;
mod stage;
mod worker;

pub use cast::Cast;
pub use engine::{KERNEL, ProcessEngine, StartEngine, USER};
pub use error::StageError;
pub use refusal::check;
pub use run::{Watch, cpu_ticks, run, run_cast};
pub use stage::{Stage, own_cpus};
pub use worker::client_entry;
