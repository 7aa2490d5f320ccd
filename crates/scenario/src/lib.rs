//! Scenarios for the simulator and for real processes alike: the file, the plan made of it,
//! the rules by which threads meet, the measures, and the verdicts on assertions.

pub mod draw;
pub mod event;
pub mod file;
pub mod measure;
pub mod plan;
mod policy;
pub mod queue;
mod run_error;
pub mod stream;
pub mod threads;
pub mod world;

pub use file::Scenario;
pub use measure::Report;
pub use plan::Plan;
pub use policy::policy;
pub use run_error::RunError;
