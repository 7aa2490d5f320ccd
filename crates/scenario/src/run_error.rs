//! Why a simulated run cannot go on.

use crate::file::Time;

/// A run that cannot go on.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum RunError {
    /// Programs that continue without using time.
    #[error(
        "at {at} no time passes any more, {client} goes round and round: \
         put a step into its program that computes or sleeps"
    )]
    Stuck {
        /// When.
        at: Time,
        /// The client that took the last step.
        client: String,
    },
    /// Programs that fork without end.
    #[error(
        "at {at} {client} starts one thread more than the {limit} that there may be at a time: let threads exit",
        limit = crate::plan::limits::THREADS
    )]
    TooManyThreads {
        /// When.
        at: Time,
        /// The client.
        client: String,
    },
}
