//! Why a scheduler does not run.

/// What is wrong.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// Built without the feature `bpf`.
    #[error(
        "this prorata was built without the kernel engine: build it by \
         `cargo build --features kernel`, for which scripts/vm-setup installs what is needed"
    )]
    NotBuiltIn,
    /// The kernel has no sched_ext.
    #[error(
        "this machine's kernel has no sched_ext: boot Linux 6.18 or later with \
         CONFIG_SCHED_CLASS_EXT, or use `prorata vm run`"
    )]
    NoSchedExt,
    /// Another scheduler is there; there can be one only.
    #[error("scheduler {0} is loaded already: unload that first")]
    Occupied(String),
    /// The kernel refuses the scheduler.
    #[error("the kernel does not take the scheduler {name}: {why}")]
    Refused {
        /// The scheduler.
        name: &'static str,
        /// What the loader says.
        why: String,
    },
    /// The kernel threw it out.
    #[error("the kernel unloaded the scheduler {name}: {reason}: {message}")]
    Ejected {
        /// The scheduler.
        name: &'static str,
        /// The kernel's reason, in short.
        reason: String,
        /// What it says beyond that.
        message: String,
    },
}
