//! Baselines: policies of others, to compare the papers' with.
//!
//! No engine runs a baseline by default. Baselines are written to be read and to
//! be right, not to be fast.

mod eevdf;

pub use eevdf::Eevdf;
