//! Why a simulated run cannot go on.

use crate::file::Time;

/// A run that cannot go on.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages explain the variants")]
pub enum RunError {
    #[error(
        "at {at} no time passes any more, {client} goes round and round: \
         put a step into its program that computes or sleeps"
    )]
    Stuck { at: Time, client: String },
    #[error(
        "at {at} {client} starts one thread more than the {limit} that there may be at a time: let threads exit",
        limit = crate::plan::limits::THREADS
    )]
    TooManyThreads { at: Time, client: String },
}
