//! A place for processes: some CPUs, and an engine of its own that shares them
//! out.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prorata_control::protocol::ClientState;
use prorata_control::{Engine, EngineError};
use prorata_core::dispatcher::{Dispatcher, Machine};
use prorata_core::ids::ClientId;
use prorata_core::ledger::Ledger;
use prorata_core::policy::Policy;
use rustix::thread::{CpuSet, sched_getaffinity};
use tempfile::TempDir;

use crate::engine::EngineKind;
use crate::error::StageError;
use crate::process::Process;

/// An engine and what it works on. Dropped, it leaves all processes to the
/// plain kernel.
pub struct Stage {
    // Dropped in this order: nothing is enforced any more, then its directory.
    engine: Box<dyn Engine>,
    dispatcher: Arc<Mutex<Dispatcher>>,
    cpus: Vec<u32>,
    _directory: TempDir,
}

impl Stage {
    /// An engine over these rights that shares out the last `cpus` CPUs of
    /// those that this process may use.
    pub fn new(
        kind: &EngineKind,
        ledger: Ledger,
        policy: Box<dyn Policy + Send>,
        machine: Machine,
    ) -> Result<Stage, StageError> {
        let mut cpus = own_cpus().map_err(StageError::failed("find out our CPUs"))?;
        let spare = cpus.len().checked_sub(machine.cpus as usize);
        cpus.drain(
            ..spare.ok_or(StageError::TooFewCpus {
                cpus: machine.cpus,
                usable: cpus.len(),
            })?,
        );
        let directory = tempfile::Builder::new()
            .prefix("prorata-stage-")
            .tempdir()
            .map_err(StageError::failed("make a directory"))?;
        let dispatcher = Arc::new(Mutex::new(Dispatcher::new(ledger, policy, machine)));
        let state = directory.path().join("state");
        let engine = (kind.start)(dispatcher.clone(), state, cpus.clone())?;
        Ok(Stage {
            engine,
            dispatcher,
            cpus,
            _directory: directory,
        })
    }

    /// Manages a process, and all that it starts, as a client.
    pub fn manage(&self, client: ClientId, process: &Process) -> Result<(), StageError> {
        let id = process.id().map_err(EngineError::from)?;
        Ok(self.engine.manage(client, id)?)
    }

    /// The CPUs that are shared out.
    pub fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    /// What decides. Not to be held for longer than it takes to look
    /// something up or to change it: the engine waits for it.
    pub fn dispatcher(&self) -> MutexGuard<'_, Dispatcher> {
        self.dispatcher
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Rights have changed: the engine is to decide now. Not to be called
    /// while the dispatcher is held.
    pub fn nudge(&self) {
        self.engine.nudge();
    }

    /// Whether any thread of a client wants to run.
    pub fn competes(&self, client: ClientId) -> bool {
        matches!(
            self.engine.state(client),
            Some(ClientState::Running | ClientState::Waiting)
        )
    }

    /// How the engine enforces its decisions now.
    pub fn mechanism(&self) -> &'static str {
        self.engine.status().mechanism
    }

    /// Whether the engine has a process of a client, or has not noticed yet
    /// that the last has ended.
    pub fn manages(&self, client: ClientId) -> bool {
        self.engine.state(client).is_some()
    }

    /// That the engine still works.
    ///
    /// # Errors
    ///
    /// If it has failed: what follows would not be its work.
    pub fn check(&self) -> Result<(), StageError> {
        match self.engine.failure() {
            None => Ok(()),
            Some(failure) => Err(EngineError::from(failure).into()),
        }
    }
}

/// CPUs that this process may use.
pub fn own_cpus() -> io::Result<Vec<u32>> {
    let usable = sched_getaffinity(None)?;
    let cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| usable.is_set(cpu));
    Ok(cpus.map(|cpu| cpu as u32).collect())
}
