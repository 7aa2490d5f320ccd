//! The engine inside the kernel: schedulers in BPF, for kernels with sched_ext.
//!
//! The feature `bpf` compiles them. Without it the interface is the same, and every load fails
//! with [`KernelError::NotBuiltIn`].

#[cfg(feature = "bpf")]
mod attach;
mod error;
#[cfg(feature = "bpf")]
mod exit;
mod floor;
pub mod observe;
pub mod replay;
pub mod scheduler;
#[cfg(feature = "bpf")]
mod warnings;
#[cfg(feature = "bpf")]
#[allow(missing_docs, clippy::all, clippy::undocumented_unsafe_blocks)]
mod floor_skeleton {
    include!(concat!(env!("OUT_DIR"), "/floor_skel.rs"));
}
#[cfg(feature = "bpf")]
#[allow(missing_docs, clippy::all, clippy::undocumented_unsafe_blocks)]
mod observe_skeleton {
    include!(concat!(env!("OUT_DIR"), "/observe_skel.rs"));
}
#[cfg(feature = "bpf")]
#[allow(missing_docs, clippy::all, clippy::undocumented_unsafe_blocks)]
mod prorata_skeleton {
    include!(concat!(env!("OUT_DIR"), "/prorata_skel.rs"));
}

pub use error::KernelError;
pub use floor::{Floor, FloorReport};

/// Whether this program was built with the schedulers.
pub const BUILT_IN: bool = cfg!(feature = "bpf");
