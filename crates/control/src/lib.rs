//! The daemon: one ledger, one engine, journal, socket, permissions. And the
//! client's side of a connection to it.

mod connection;
mod daemon;
mod frame;
mod place;
pub mod protocol;
mod start;

pub use connection::{ConnectError, Connection};
pub use daemon::{DaemonError, DaemonOptions, Mechanism, daemon_main};
pub use place::{MAX_SOCKET_PATH_BYTES, Place, PlaceError, SocketPath};
pub use start::{StartError, start_daemon};
