//! Scenarios: what a file says, the plan that is made of it, what threads do to
//! one another, what is measured and whether it is as asserted. The same for the
//! simulator and for real processes.

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
