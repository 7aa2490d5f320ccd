//! Baselines: policies of others, to compare the papers' with.
//!
//! No engine runs a baseline by default. Baselines are written to be read and to
//! be right, not to be fast.

mod decay_usage;
mod eevdf;

pub use decay_usage::DecayUsage;
pub use eevdf::Eevdf;
