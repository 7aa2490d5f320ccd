//! A stage for processes: some CPUs, and an engine that shares them out.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prorata_bulletin::Reader;
use prorata_control::{Engine, EngineError, EngineStatus};
use prorata_core::dispatcher::{Dispatcher, Usage};
use prorata_core::ids::ClientId;
use prorata_core::ledger::Ledger;
use prorata_core::policy::PolicyName;
use prorata_protocol::ClientState;
use prorata_protocol::slots::RowReport;
use prorata_scenario::policy;
use rustix::thread::{CpuSet, sched_getaffinity};
use tempfile::TempDir;

use crate::engine::ProcessEngine;
use crate::error::StageError;
use crate::process::Process;

/// An engine with its dispatcher and CPUs. Dropping it leaves all processes to the plain
/// kernel.
pub struct Stage {
    // Dropped in this order: nothing is enforced any more, then its directory.
    engine: Box<dyn Engine>,
    dispatcher: Arc<Mutex<Dispatcher>>,
    kind: &'static ProcessEngine,
    cpus: Vec<u32>,
    directory: TempDir,
}

impl Stage {
    /// An engine over these rights that shares out the last `machine_cpus` CPUs of
    /// those that this process may use. Where the policy is the dispatcher's, its
    /// lots come from the seed.
    pub fn new(
        kind: &'static ProcessEngine,
        ledger: Ledger,
        (name, seed): (PolicyName, u64),
        machine_cpus: u32,
        quantum_ns: u64,
    ) -> Result<Stage, StageError> {
        if !kind.policies.contains(&name) {
            let known: Vec<String> = kind.policies.iter().map(ToString::to_string).collect();
            return Err(StageError::UnknownPolicy {
                policy: name,
                engine: kind.name,
                known: known.join(", "),
            });
        }
        let mut cpus = own_cpus().map_err(StageError::failed("find out our CPUs"))?;
        let spare = cpus.len().checked_sub(machine_cpus as usize);
        cpus.drain(
            ..spare.ok_or(StageError::TooFewCpus {
                cpus: machine_cpus,
                usable: cpus.len(),
            })?,
        );
        let directory = tempfile::Builder::new()
            .prefix("prorata-stage-")
            .tempdir()
            .map_err(StageError::failed("make a directory"))?;
        let policy = policy(name, seed, 0);
        let dispatcher = Arc::new(Mutex::new(Dispatcher::new(
            ledger,
            policy,
            machine_cpus,
            quantum_ns,
        )));
        let state = directory.path().join("state");
        let engine = (kind.start)(dispatcher.clone(), state, cpus.clone())?;
        engine.configure(quantum_ns, name);
        Ok(Stage {
            engine,
            dispatcher,
            kind,
            cpus,
            directory,
        })
    }

    /// The stage's own directory.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Enforces a timetable from now on, or none.
    pub(crate) fn enforce_slots(&self, table: Option<Reader>) -> Result<(), StageError> {
        self.engine.enforce_slots(table)?;
        Ok(())
    }

    /// What the engine counted of slots, one a CPU.
    pub(crate) fn slot_rows(&self) -> Vec<RowReport> {
        self.engine.slot_rows()
    }

    pub(crate) fn manage(&self, client: ClientId, process: &Process) -> Result<(), StageError> {
        let id = process.id().map_err(EngineError::from)?;
        Ok(self.engine.manage(client, id)?)
    }

    /// Leaves a client's processes to the plain kernel.
    pub fn release(&self, client: ClientId) {
        self.engine.release(client);
    }

    /// The CPUs that are shared out.
    pub fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    /// The dispatcher. Callers hold it only for a short time: the engine waits for it.
    pub fn dispatcher(&self) -> MutexGuard<'_, Dispatcher> {
        self.dispatcher
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Rights have changed: the engine decides now. Callers must not hold the dispatcher.
    pub fn nudge(&self) {
        self.engine.nudge();
    }

    /// Passes the policy and the dispatcher's quantum on to the engine. Callers must not
    /// hold the dispatcher.
    pub fn configure(&self, policy: PolicyName) {
        let quantum_ns = self.dispatcher().quantum_ns();
        self.engine.configure(quantum_ns, policy);
    }

    /// Updates the answers of the following methods.
    pub fn look(&self) {
        self.engine.look();
    }

    /// Received and specified CPU time of a client, by the account of the engine or else of
    /// the dispatcher.
    pub fn usage(&self, client: ClientId) -> Usage {
        let usage = self.dispatcher().usage(client);
        match self.engine.account(client) {
            None => usage,
            Some(account) => Usage {
                received_ns: account.received_ns,
                specified_ns: account.specified_ns,
                ..usage
            },
        }
    }

    /// Whether each turn shows in [`Dispatcher::runs`]. Otherwise only the kernel knows the
    /// running tasks.
    pub fn shows_turns(&self) -> bool {
        self.kind.decides_here
    }

    /// Whether any thread of a client wants to run.
    pub fn competes(&self, client: ClientId) -> bool {
        matches!(
            self.engine.state(client),
            Some(ClientState::Running | ClientState::Waiting)
        )
    }

    /// How the engine fares now.
    pub fn status(&self) -> EngineStatus {
        self.engine.status()
    }

    /// Whether the engine has a process of a client, or has not noticed yet
    /// that the last has ended.
    pub fn manages(&self, client: ClientId) -> bool {
        self.engine.state(client).is_some()
    }

    /// Checks that the engine still works.
    ///
    /// # Errors
    ///
    /// If the engine has failed.
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
