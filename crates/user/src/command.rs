//! What the engine's callers ask of the decision thread.

use std::sync::mpsc::SyncSender;

use prorata_core::ids::ClientId;

use crate::error::EngineError;
use crate::guardian::Guardian;
use crate::process_id::ProcessId;

/// A request, with where to send the answer. Nobody waits for an answer that
/// is not sent: a dropped sender tells the caller that the engine has failed.
#[derive(Debug)]
pub(crate) enum Command {
    Manage {
        client: ClientId,
        process: ProcessId,
        answer: SyncSender<Result<(), EngineError>>,
    },
    AlsoChildrenOf {
        client: ClientId,
        parent: ProcessId,
        answer: SyncSender<Result<(), EngineError>>,
    },
    ManageMarked {
        client: ClientId,
        user: u32,
        since_ticks: u64,
        answer: SyncSender<Result<u32, EngineError>>,
    },
    Release {
        client: ClientId,
        answer: SyncSender<()>,
    },
    SetQuantum {
        client: ClientId,
        quantum_ns: Option<u64>,
        answer: SyncSender<()>,
    },
    Suspend {
        client: ClientId,
        answer: SyncSender<bool>,
    },
    Resume {
        client: ClientId,
        answer: SyncSender<()>,
    },
    /// A new guardian is ready, or could not be started.
    Guardian(std::io::Result<Guardian>),
    /// Release everything and end.
    End,
}
