//! The daemon: one ledger, one engine, journal, socket, permissions.

pub mod protocol;
