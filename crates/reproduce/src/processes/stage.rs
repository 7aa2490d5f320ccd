//! An engine of an experiment's own and the processes under it.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prorata_core::dispatcher::{Dispatcher, Machine};
use prorata_core::ids::ClientId;
use prorata_core::ledger::{Operation, Principal};
use prorata_sim::Plan;
use prorata_sim::scenario::Scenario;
use prorata_user::{EngineConfig, EngineError, UserEngine};
use rustix::thread::{CpuSet, sched_getaffinity};
use tempfile::TempDir;

use super::program::Program;
use super::worker::Work;
use super::{BoxedPolicy, Result};
use crate::error::ReproduceError;

/// All that must be gone when an experiment ends. Fields are dropped in this
/// order: engine, programs, directory.
pub(super) struct Stage {
    engine: Option<UserEngine>,
    /// By client, from when it is prepared on.
    programs: Vec<Option<Program>>,
    dispatcher: Arc<Mutex<Dispatcher>>,
    cpu: usize,
    _directory: TempDir,
}

/// Tickets of an integration whose relative error is 1: enough that those of
/// 10^12 trials can still be told apart, and few enough that those of the
/// first 1000 fit.
const TICKETS_AT_ERROR_1: f64 = 1e13;

impl Stage {
    /// An engine over a scenario's rights that shares out the last CPU that we
    /// may use.
    pub(super) fn new(scenario: &Scenario, policy: BoxedPolicy, quantum_ns: u64) -> Result<Stage> {
        let plan = Plan::new(scenario).map_err(|error| ReproduceError::Scenario {
            id: scenario.title.clone(),
            error: Box::new(error),
        })?;
        let cpu = last_cpu().map_err(failed("find out our CPUs"))?;
        let machine = Machine {
            cpus: 1,
            quantum_ns,
        };
        let ledger = plan.into_ledger();
        let clients = ledger.clients().count();
        let dispatcher = Arc::new(Mutex::new(Dispatcher::new(ledger, policy, machine)));
        let directory = tempfile::Builder::new()
            .prefix("prorata-reproduce-")
            .tempdir()
            .map_err(failed("make a directory"))?;
        let config = EngineConfig {
            cpus: Some(vec![cpu as u32]),
            state_directory: directory.path().join("state"),
            // No daemon listens: workers start nothing that would look for it.
            socket: directory.path().join("socket"),
            mechanism: None,
        };
        let engine = UserEngine::start(config, dispatcher.clone())?;
        Ok(Stage {
            engine: Some(engine),
            programs: (0..clients).map(|_| None).collect(),
            dispatcher,
            cpu,
            _directory: directory,
        })
    }

    /// Starts a client's process and puts it under the engine; it waits.
    pub(super) fn prepare(&mut self, client: usize, work: Work) -> Result<()> {
        let program = Program::prepare(work, self.cpu).map_err(failed("start a process"))?;
        if let Some(engine) = &self.engine {
            engine.manage(client_id(client), program.process()?)?;
        }
        self.programs[client] = Some(program);
        Ok(())
    }

    /// Lets a process that was prepared begin.
    pub(super) fn let_go(&mut self, client: usize) -> Result<()> {
        match &mut self.programs[client] {
            Some(program) => program.let_go().map_err(failed("speak to a process")),
            None => Ok(()),
        }
    }

    /// Leaves the processes to the plain kernel.
    pub(super) fn end_engine(&mut self) {
        self.engine = None;
    }

    /// Iterations or trials of each client.
    ///
    /// # Errors
    ///
    /// If the engine has failed: what follows would not be its work.
    pub(super) fn received(&self) -> Result<Vec<f64>> {
        let failure = self.engine.as_ref().and_then(|e| e.status().failure);
        if failure.is_some() {
            return Err(EngineError::Failed.into());
        }
        let programs = self.programs.iter();
        let received = programs.map(|program| match program {
            Some(program) => program.state().map(|state| state.done as f64),
            None => Ok(0.0),
        });
        let received: io::Result<Vec<f64>> = received.collect();
        received.map_err(failed("hear from a process"))
    }

    /// Gives each integration tickets in proportion to the square of its
    /// relative error (1994, 5.2).
    pub(super) fn follow_errors(&mut self) -> Result<()> {
        for (client, program) in self.programs.iter().enumerate() {
            let Some(program) = program else { continue };
            let state = program.state().map_err(failed("hear from a process"))?;
            let tickets = TICKETS_AT_ERROR_1 * state.relative_error.powi(2);
            // The conversion takes what is too large to the largest.
            set_tickets(
                &mut lock(&self.dispatcher),
                client_id(client),
                tickets.max(1.0) as u32,
            );
        }
        if let Some(engine) = &self.engine {
            engine.nudge();
        }
        Ok(())
    }
}

fn set_tickets(dispatcher: &mut Dispatcher, client: ClientId, amount: u32) {
    let ledger = dispatcher.ledger();
    let ticket = ledger.funding(client).next();
    let checked = ticket.and_then(|ticket| {
        let operation = Operation::SetAmount { ticket, amount };
        ledger.check(&Principal::ROOT, operation).ok()
    });
    if let Some(checked) = checked {
        dispatcher.apply(checked);
    }
}

/// Clients are numbered as in the scenario, see [`Plan::into_ledger`].
fn client_id(client: usize) -> ClientId {
    ClientId::from_parts(client as u32, 0)
}

fn last_cpu() -> io::Result<usize> {
    let usable = sched_getaffinity(None)?;
    let last = (0..CpuSet::MAX_CPU).rfind(|&cpu| usable.is_set(cpu));
    last.ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn failed(doing: &'static str) -> impl Fn(io::Error) -> ReproduceError {
    move |error| ReproduceError::Process { doing, error }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
