//! Baselines: policies of others, to compare the papers' with.
//!
//! Nothing here is what prorata stands for or what its engines run by default;
//! they are written to be read and to be right, not to be fast.

mod eevdf;

pub use eevdf::Eevdf;
