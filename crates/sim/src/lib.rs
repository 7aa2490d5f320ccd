//! A machine in a test: a deterministic discrete-event simulation of programs
//! that compete for CPUs by tickets.

pub mod machine;
pub mod measure;
pub mod observer;
pub mod perfetto;
pub mod plan;
pub mod scenario;
pub mod sweep;
pub mod trace;

mod draw;
mod policy;
mod queue;
mod stream;

pub use machine::{Counts, Machine, RunError, Simulation};
pub use measure::{Measures, Report};
pub use observer::{Event, Observer, Why};
pub use plan::Plan;
pub use policy::policy;
pub use scenario::Scenario;
