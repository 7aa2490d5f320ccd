//! Kernels for machines: found on the Debian mirror of the host, proven by
//! loading a scheduler, kept in the user's cache.

mod apt;
mod fetch;
mod release;
mod store;

pub use apt::AptError;
pub use fetch::{FetchError, fetch};
pub use release::{Release, SERIES};
pub use store::{Kernel, Store, StoreError};
