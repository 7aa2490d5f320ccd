//! What published numbers are kept in: by this name, so that a model checker
//! can put its own in their place (`tests/offers_model.rs`).

pub(super) use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};
