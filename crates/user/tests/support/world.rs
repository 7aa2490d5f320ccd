//! An engine with a ledger to enforce.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use prorata_core::cpu_limit::CpuLimit;
use prorata_core::dispatcher::{Dispatcher, Usage};
use prorata_core::ids::ClientId;
use prorata_core::ledger::{Ledger, Limits, Operation, Outcome, Principal, Target};
use prorata_core::policy::{ClientIndex, Policy, PolicyError, Stride};
use prorata_user::{EngineConfig, EngineError, Mechanism, UserEngine};

use super::{Program, shared_cpu, socket, wait_until};

/// A ledger, a dispatcher over it, and an engine that enforces it.
pub struct World {
    pub dispatcher: SharedDispatcher,
    /// Declared before its state directory, and so dropped before that.
    engine: Option<UserEngine>,
    pub directory: tempfile::TempDir,
}

impl World {
    pub fn new(mechanism: Option<Mechanism>, quantum_ns: u64) -> World {
        Self::with_cpus(mechanism, quantum_ns, &[shared_cpu() as u32])
    }

    pub fn with_cpus(mechanism: Option<Mechanism>, quantum_ns: u64, cpus: &[u32]) -> World {
        let directory = tempfile::tempdir().expect("a directory");
        let config = config(directory.path(), mechanism, Some(cpus.to_vec()));
        let (dispatcher, engine) = start_engine(config, quantum_ns).expect("the engine starts");
        World {
            dispatcher,
            engine: Some(engine),
            directory,
        }
    }

    pub fn engine(&self) -> &UserEngine {
        self.engine.as_ref().expect("it runs until the world ends")
    }

    /// Ends the engine.
    pub fn end_engine(&mut self) {
        self.engine = None;
    }

    /// A new client with tickets in the base currency, or without any, and no process.
    pub fn client(&self, name: &str, tickets: u32) -> ClientId {
        create_client(&self.dispatcher, name, tickets)
    }

    /// A new client that consists of this program.
    pub fn enter(&self, name: &str, tickets: u32, program: &Program) -> ClientId {
        let client = self.client(name, tickets);
        self.engine()
            .manage(client, program.id())
            .expect("it can be managed");
        client
    }

    /// A new client with this many tickets for each program.
    pub fn enter_all(&self, tickets: &[u32], programs: &[Program]) -> Vec<ClientId> {
        let clients = programs.iter().zip(tickets).enumerate();
        clients
            .map(|(index, (program, &tickets))| {
                self.enter(&format!("program {index}"), tickets, program)
            })
            .collect()
    }

    /// Hogs with these tickets, managed.
    pub fn hogs(&self, tickets: &[u32]) -> Vec<Program> {
        let programs: Vec<Program> = tickets.iter().map(|_| Program::hog()).collect();
        self.enter_all(tickets, &programs);
        programs
    }

    pub fn set_policy(&self, policy: impl Policy + Send + 'static) {
        self.lock().set_policy(Box::new(policy));
    }

    pub fn lock(&self) -> MutexGuard<'_, Dispatcher> {
        self.dispatcher.lock().expect("nobody panicked")
    }

    /// Waits until the engine has decided so often.
    pub fn wait_for_decisions(&self, count: u64) {
        let decisions = || self.engine().status().decisions;
        let enough = decisions() + count;
        wait_until("it decides", || {
            self.engine().nudge();
            decisions() >= enough
        });
    }

    pub fn usage(&self, client: ClientId) -> Usage {
        self.lock().usage(client)
    }
}

/// For an engine of the tests that keeps its state there.
pub fn config(
    state_directory: &Path,
    mechanism: Option<Mechanism>,
    cpus: Option<Vec<u32>>,
) -> EngineConfig {
    EngineConfig {
        cpus,
        state_directory: state_directory.to_owned(),
        socket: socket(),
        mechanism,
    }
}

pub type SharedDispatcher = Arc<Mutex<Dispatcher>>;

/// An engine, and a dispatcher without clients for it to enforce.
pub fn start_engine(
    config: EngineConfig,
    quantum_ns: u64,
) -> Result<(SharedDispatcher, UserEngine), EngineError> {
    let ledger = Ledger::new(Limits::default());
    let dispatcher = Dispatcher::new(ledger, Box::new(Stride::new()), 1, quantum_ns);
    let dispatcher = Arc::new(Mutex::new(dispatcher));
    let engine = UserEngine::start(config, dispatcher.clone())?;
    Ok((dispatcher, engine))
}

pub fn create_client(dispatcher: &Mutex<Dispatcher>, name: &str, tickets: u32) -> ClientId {
    let mut dispatcher = dispatcher.lock().expect("nobody panicked");
    let create = Operation::CreateClient {
        name: Some(name.into()),
        owner: 0,
    };
    let Outcome::Client(client) = execute(&mut dispatcher, create) else {
        panic!("a client is created");
    };
    if tickets > 0 {
        issue(&mut dispatcher, client, tickets);
    }
    client
}

/// Gives a client more tickets.
pub fn issue(dispatcher: &mut Dispatcher, client: ClientId, amount: u32) {
    let currency = dispatcher.ledger().base();
    let target = Some(Target::Client(client));
    execute(
        dispatcher,
        Operation::Issue {
            currency,
            amount,
            target,
        },
    );
}

/// Limits a client's CPU time to so many percent of a CPU.
pub fn limit(dispatcher: &mut Dispatcher, client: ClientId, percent: Option<u32>) {
    limit_thousandths(dispatcher, client, percent.map(|percent| percent * 10));
}

/// Limits a client's CPU time to so many thousandths of a CPU.
pub fn limit_thousandths(dispatcher: &mut Dispatcher, client: ClientId, max: Option<u32>) {
    let max = max.and_then(CpuLimit::from_thousandths);
    execute(dispatcher, Operation::LimitClient { client, max });
}

fn execute(dispatcher: &mut Dispatcher, operation: Operation) -> Outcome {
    let checked = dispatcher
        .ledger()
        .check(&Principal::ROOT, operation)
        .expect("it is legal");
    dispatcher.apply(checked)
}

/// Stride scheduling with something done before each pick.
pub struct Watched<F> {
    pub stride: Stride,
    pub before_pick: F,
}

impl<F: Fn()> Policy for Watched<F> {
    fn join(&mut self, client: ClientIndex, tickets: u32) -> Result<(), PolicyError> {
        self.stride.join(client, tickets)
    }
    fn leave(&mut self, client: ClientIndex) -> Result<(), PolicyError> {
        self.stride.leave(client)
    }
    fn forget(&mut self, client: ClientIndex) {
        self.stride.forget(client);
    }
    fn set_tickets(&mut self, client: ClientIndex, tickets: u32) -> Result<(), PolicyError> {
        self.stride.set_tickets(client, tickets)
    }
    fn pick(&mut self) -> Option<ClientIndex> {
        (self.before_pick)();
        self.stride.pick()
    }
    fn take(&mut self, client: ClientIndex) -> Result<(), PolicyError> {
        self.stride.take(client)
    }
    fn untake(&mut self, client: ClientIndex) -> Result<(), PolicyError> {
        self.stride.untake(client)
    }
    fn charge(&mut self, client: ClientIndex, used: u64, quantum: u64) -> Result<(), PolicyError> {
        self.stride.charge(client, used, quantum)
    }
    fn total_tickets(&self) -> u64 {
        self.stride.total_tickets()
    }
    fn len(&self) -> usize {
        self.stride.len()
    }
}
