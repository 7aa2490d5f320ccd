//! sim
pub mod plan;
pub mod scenario;
mod draw;
mod queue;
mod stream;
