//! The machine whose scheduler takes time.

mod costs;
mod pools;
mod sockets;
mod support;
