//! An engine of an experiment's own and the processes under it.

use std::io;

use prorata_core::dispatcher::Dispatcher;
use prorata_core::ledger::{Operation, Principal};
use prorata_scenario::plan::client_id;
use prorata_scenario::{Plan, Scenario};
use prorata_stage::EngineKind;

use super::Result;
use super::program::Program;
use super::worker::{State, Work};
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
    /// may use, by the scenario's policy.
    pub(super) fn new(
        kind: &'static EngineKind,
        scenario: &Scenario,
        seed: u64,
        quantum_ns: u64,
    ) -> Result<Stage> {
        let plan = Plan::new(scenario).map_err(|error| ReproduceError::Scenario {
            id: scenario.title.clone(),
            error: Box::new(error),
        })?;
        let clients = plan.ledger.clients().count();
        let policy = (scenario.machine.policy, seed);
        let engine = prorata_stage::Stage::new(kind, plan.ledger, policy, 1, quantum_ns)?;
        Ok(Stage {
            cpus: engine.cpus().to_vec(),
            engine: Some(engine),
            programs: (0..clients).map(|_| None).collect(),
        })
    }

    /// Starts clients' processes, puts them under the engine and lets them begin
    /// together when all are ready.
    pub(super) fn start(&mut self, clients: &[usize], work: Work) -> Result<()> {
        for &client in clients {
            let program = Program::prepare(work, &self.cpus).map_err(failed("start a process"))?;
            if let Some(engine) = &self.engine {
                engine.manage(client_id(client as u32), &program.process)?;
            }
            self.programs[client] = Some(program);
        }
        for &client in clients {
            if let Some(program) = &mut self.programs[client] {
                program.let_go().map_err(failed("speak to a process"))?;
            }
        }
        if let Some(engine) = &self.engine
            && !clients.is_empty()
        {
            // Else they run undecided until the quantum ends.
            engine.nudge();
        }
        Ok(())
    }

    /// Leaves the processes to the plain kernel.
    pub(super) fn end_engine(&mut self) {
        self.engine = None;
    }

    /// How far each client's program has come.
    ///
    /// # Errors
    ///
    /// If the engine has failed: what follows would not be its work.
    pub(super) fn states(&self) -> Result<Vec<State>> {
        if let Some(engine) = &self.engine {
            engine.check()?;
        }
        let states = self.programs.iter().map(|program| match program {
            Some(program) => program.state(),
            None => Ok(State::BEFORE),
        });
        let states: io::Result<Vec<State>> = states.collect();
        states.map_err(failed("hear from a process"))
    }

    /// Whether each client has a turn, if the engine shows that.
    pub(super) fn has_turn(&self) -> Option<Vec<bool>> {
        let engine = self.engine.as_ref().filter(|engine| engine.shows_turns())?;
        let clients = 0..self.programs.len() as u32;
        let dispatcher = engine.dispatcher();
        let turns = clients.map(|client| dispatcher.runs(client_id(client)));
        Some(turns.collect())
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
