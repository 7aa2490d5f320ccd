//! Kernels for machines: fetched from the host's Debian mirror, proven by
//! loading a scheduler, and kept in the user's cache.

mod apt;
mod fetch;
mod release;
mod store;

pub use apt::AptError;
pub use fetch::{FetchError, fetch};
pub use release::{Release, SERIES};
pub use store::{Kernel, Store, StoreError};
