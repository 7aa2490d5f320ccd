//! The daemon: one ledger, one engine, journal, socket, permissions. And the
//! client's side of a connection to it.

mod connection;
mod control;
mod daemon;
mod decode;
mod engine;
mod frame;
mod host;
mod journal;
mod log;
mod peer;
mod place;
mod policy;
mod process;
pub mod protocol;
mod refusal;
mod report;
mod restore;
mod roots;
mod server;
mod session;
mod start;
mod state;
#[cfg(any(test, fuzzing))]
mod testing;
#[cfg(test)]
mod tests;
mod user_engine;

pub use connection::{ConnectError, Connection};
pub use daemon::{DaemonError, DaemonOptions, MakeEngine, daemon_main, serve};
pub use engine::{Engine, EngineError, EngineStatus};
pub use journal::JournalError;
pub use place::{MAX_SOCKET_PATH_BYTES, Place, PlaceError, SocketPath};
pub use process::ProcessId;
/// How the user engine keeps losers from running.
pub use prorata_user::Mechanism;
pub use server::Timing;
pub use start::{StartError, start_daemon};
