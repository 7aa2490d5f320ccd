//! Engines that share CPUs out between processes.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use prorata_control::{Engine, EngineError, user_engine};
use prorata_core::dispatcher::Dispatcher;

/// Starts an engine that shares out these CPUs as a dispatcher decides. The
/// directory, not made yet, is its own.
pub type StartEngine =
    fn(Arc<Mutex<Dispatcher>>, PathBuf, Vec<u32>) -> Result<Box<dyn Engine>, EngineError>;

/// An engine for processes: how it is started, and what it can do.
#[derive(Debug)]
pub struct EngineKind {
    /// How people call it.
    pub name: &'static str,
    /// Whether who yields its CPU gives the rest of its turn away.
    pub sees_yields: bool,
    /// Shortest and longest quantum.
    pub quanta_ns: RangeInclusive<u64>,
    /// Starts one.
    pub start: StartEngine,
}

/// The engine for ordinary Linux.
pub const USER: EngineKind = EngineKind {
    name: "user",
    // It looks at CPU clocks and at who wants to run; a yield shows in
    // neither.
    sees_yields: false,
    quanta_ns: 1_000_000..=1_000_000_000,
    start: |dispatcher, directory, cpus| {
        // No daemon listens: programs start nothing that would look for it.
        let socket = directory.join("socket");
        user_engine(dispatcher, directory, socket, cpus, None)
    },
};
