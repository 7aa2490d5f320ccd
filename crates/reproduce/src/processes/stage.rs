//! An engine of an experiment's own and the processes under it.

use std::io;

use prorata_core::dispatcher::{Dispatcher, Machine};
use prorata_core::ledger::{Operation, Principal};
use prorata_sim::Plan;
use prorata_sim::plan::client_id;
use prorata_sim::scenario::Scenario;
use prorata_stage::USER;

use super::program::Program;
use super::worker::Work;
use super::{BoxedPolicy, Result};
use crate::error::ReproduceError;

/// All that must be gone when an experiment ends. Fields are dropped in this
/// order: engine, programs.
pub(super) struct Stage {
    engine: Option<prorata_stage::Stage>,
    /// By client, from when it is prepared on.
    programs: Vec<Option<Program>>,
    /// Those that are shared out.
    cpus: Vec<u32>,
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
        let machine = Machine {
            cpus: 1,
            quantum_ns,
        };
        let clients = plan.ledger.clients().count();
        let engine = prorata_stage::Stage::new(&USER, plan.ledger, policy, machine)?;
        Ok(Stage {
            cpus: engine.cpus().to_vec(),
            engine: Some(engine),
            programs: (0..clients).map(|_| None).collect(),
        })
    }

    /// Starts a client's process and puts it under the engine; it waits.
    pub(super) fn prepare(&mut self, client: usize, work: Work) -> Result<()> {
        let program = Program::prepare(work, &self.cpus).map_err(failed("start a process"))?;
        if let Some(engine) = &self.engine {
            engine.manage(client_id(client as u32), &program.process)?;
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
        if let Some(engine) = &self.engine {
            engine.check()?;
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
        let Some(engine) = &self.engine else {
            return Ok(());
        };
        for (program, client) in self.programs.iter().zip(0..) {
            let Some(program) = program else { continue };
            let state = program.state().map_err(failed("hear from a process"))?;
            let tickets = TICKETS_AT_ERROR_1 * state.relative_error.powi(2);
            // The conversion takes what is too large to the largest.
            set_tickets(&mut engine.dispatcher(), client, tickets.max(1.0) as u32);
        }
        engine.nudge();
        Ok(())
    }
}

fn set_tickets(dispatcher: &mut Dispatcher, client: u32, amount: u32) {
    let ledger = dispatcher.ledger();
    let ticket = ledger.funding(client_id(client)).next();
    let checked = ticket.and_then(|ticket| {
        let operation = Operation::SetAmount { ticket, amount };
        ledger.check(&Principal::ROOT, operation).ok()
    });
    if let Some(checked) = checked {
        dispatcher.apply(checked);
    }
}

fn failed(doing: &'static str) -> impl Fn(io::Error) -> ReproduceError {
    move |error| ReproduceError::Process { doing, error }
}
