//! What the daemon and its clients share: requests, answers, frames, and the
//! client's side of a connection.
//!
//! A program that only talks to the daemon needs this crate and no engine.

mod answer;
mod choice;
mod connection;
mod credentials;
mod engine_choice;
mod error;
mod event;
pub mod frame;
mod hybrid_choice;
mod listener;
mod lock;
mod paths;
mod progress;
mod request;
pub mod slots;
mod start;
#[cfg(test)]
mod testing;
mod turn;

pub use answer::{
    ClientReport, ClientState, CurrencyReport, HybridReport, NiceReport, OutsideReport,
    ProcessReport, ProcessesReport, Response, StatusReport, TicketReport, TransferReport,
    TurnsReport, UsersReport,
};
pub use connection::{Connection, SlotsWatch};
pub use credentials::peer_credentials;
pub use engine_choice::{EngineChoice, KernelChoice, QueueChoice};
pub use error::{ConnectError, StartError};
pub use event::{EventKind, EventReport, MOST_EVENTS, SleepKind, TurnEndKind};
pub use hybrid_choice::HybridChoice;
pub use lock::{LockFile, note_in};
pub use paths::{DaemonPaths, MAX_SOCKET_PATH_BYTES, PathError, SocketPath};
pub use progress::{PATIENCE, ProgressWatch};
pub use request::{
    CpuLimit, Envelope, Funding, MAX_REQUEST_BYTES, MAX_RESPONSE_BYTES, POLICIES, PROTOCOL_VERSION,
    PolicyName, Request, TransferPortion,
};
pub use start::{READY, is_starting, open_if_started, open_or_start, start_daemon};
