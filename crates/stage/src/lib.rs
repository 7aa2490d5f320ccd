//! The same scenarios on real processes: each client is a process that does
//! what its program says, and an engine shares the CPUs out between them.
//!
//! ```text
//!   scenario file -> plan (prorata-sim) -> run ---- messages ----> processes
//!                                           |                         ^
//!                                         stage: dispatcher, engine --+
//!                                           |
//!                                         report, verdicts (prorata-sim)
//! ```
//!
//! What threads do to one another, what a timeline does to rights, and whether
//! an assertion holds is said in `prorata-sim`, once for every engine. Here
//! stands what is real: processes, clocks, sockets.
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
pub use run::{Watch, run, run_cast};
pub use stage::{Stage, own_cpus};
pub use worker::client_entry;
