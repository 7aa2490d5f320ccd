//! Engines that share CPUs out between processes.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use prorata_control::{
    Engine, EngineError, EngineSetup, KernelOptions, kernel_engine, user_engine,
};
use prorata_core::dispatcher::Dispatcher;
use prorata_core::policy::PolicyName;

/// Starts an engine that shares out these CPUs as a dispatcher decides. The
/// directory, not made yet, is its own.
pub type StartEngine =
    fn(Arc<Mutex<Dispatcher>>, PathBuf, Vec<u32>) -> Result<Box<dyn Engine>, EngineError>;

/// An engine for processes: its start and its abilities.
#[derive(Debug)]
pub struct ProcessEngine {
    /// Its name on the command line.
    pub name: &'static str,
    /// Whether it asks the dispatcher for each decision.
    pub decides_here: bool,
    /// Whether a yielding thread gives up the rest of its turn.
    pub sees_yields: bool,
    /// The policies that it knows.
    pub policies: &'static [PolicyName],
    /// Shortest and longest quantum.
    pub quanta_ns: RangeInclusive<u64>,
    /// Most processes of a run.
    pub most_clients: u32,
    /// Most threads of a run at any one time.
    pub most_threads: u32,
    /// Starts one.
    pub start: StartEngine,
}

/// The engine for ordinary Linux.
pub const USER: ProcessEngine = ProcessEngine {
    name: "user",
    decides_here: true,
    // It looks at CPU clocks and runnable threads; a yield shows in neither.
    sees_yields: false,
    policies: &[
        PolicyName::Stride,
        PolicyName::Lottery,
        PolicyName::HierarchicalStride,
        PolicyName::ListLottery,
        PolicyName::TreeLottery,
        PolicyName::ClassLottery,
    ],
    quanta_ns: 1_000_000..=1_000_000_000,
    // It looks at each of them every quantum.
    most_clients: 1024,
    most_threads: 4096,
    start: |dispatcher, directory, cpus| {
        let setup = EngineSetup::without_daemon(dispatcher, directory, cpus);
        user_engine(setup, None)
    },
};

/// The scheduler inside the kernel, for the run's processes alone.
pub const KERNEL: ProcessEngine = ProcessEngine {
    name: "kernel",
    decides_here: false,
    sees_yields: true,
    policies: &[PolicyName::Stride, PolicyName::Lottery],
    quanta_ns: 1_000_000..=1_000_000_000,
    most_clients: 4096,
    most_threads: 16384,
    start: |dispatcher, directory, cpus| {
        let setup = EngineSetup::without_daemon(dispatcher, directory, cpus);
        kernel_engine(setup, KernelOptions::for_clients())
    },
};
