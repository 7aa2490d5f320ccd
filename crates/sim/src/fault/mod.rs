//! Fault mode: random scenarios under random changes of rights, with all checks at every
//! event; then quiet, in which every client must progress. After the VOPR of TigerBeetle: a
//! seed is a whole trial and replays it.
//!
//! ```text
//!   chaos   events, with operations on the ledger, starts, stops and changes
//!           of policy, quantum and pool thrown in; after each the books must balance
//!   heal    transfers end, all clients run and hold equal tickets
//!   quiet   no client starves: each receives CPU time
//!   steady  all threads end and all clients do nothing but compute: each gets
//!           what is due to it, but for a bounded error
//! ```

mod chaos;
mod scenarios;
mod slots;

use prorata_core::hybrid::lead_bound_ns;
use prorata_core::ledger::{Operation, Target};
use prorata_core::policy::PolicyName;
use prorata_core::rng::{Xoshiro256PlusPlus, below};
use prorata_core::slots::timetable::Timetable;
use prorata_scenario::RunError;
use prorata_scenario::file::Time;
use prorata_scenario::plan::{Deed, Plan, client_id};
use prorata_scenario::stream::{Purpose, stream};
use prorata_scenario::world::{Rights as _, World as _};
use serde::Serialize;

use crate::machine::{Imbalance, Machine, Simulation};
use crate::observer::Observer;

pub use scenarios::scenario;

/// A trial that nothing went wrong in.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Survived {
    /// Events handled, after each of which all was checked.
    pub events: u64,
    /// Operations on the ledger and other faults.
    pub faults: u64,
    /// Operations that the ledger refused, as it must.
    pub refused: u64,
}

/// Something that must not be: a bug in the simulator or below it.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("seed {seed}: at {at}: {fault}")]
pub struct Failure {
    /// Replays the trial.
    pub seed: u64,
    /// When.
    pub at: Time,
    /// What.
    pub fault: Fault,
}

/// Faults that a trial can find.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages explain the variants")]
pub enum Fault {
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Books(#[from] Imbalance),
    #[error("{client} got no CPU time in the quiet")]
    Starved { client: String },
    /// A client that did nothing but compute got much more or less than was
    /// due to it.
    #[error("the error of {client} grew by {quanta} quanta in the steady state, more than {bound}")]
    Error {
        client: String,
        /// By how much.
        quanta: f64,
        bound: f64,
    },
    #[error("the machine has come to a halt")]
    Halt,
}

/// Events of the chaos.
const CHAOS_EVENTS: u64 = 400;
/// One event in so many brings a fault.
const FAULT_EVERY: u64 = 3;
/// Length of quiet and of steady state each, in quanta of one CPU for each client. Within
/// it, a client with an equal part of the tickets loses all lotteries among
/// [`scenarios::MAX_CLIENTS`] with a probability below 10^-11.
const QUIET_QUANTA: u64 = 25;
/// Earlier debts are paid back within so many times that length.
const REPAYMENT: u64 = 6;
/// Tickets of each client in the quiet.
const QUIET_TICKETS: u32 = 100;

/// Makes the trial of a seed, watched.
pub fn trial<O: Observer>(seed: u64, observer: O) -> (O, Result<Survived, Failure>) {
    let mut lots = stream(seed, Purpose::Faults, 0);
    let scenario = scenario(&mut lots);
    let plan = Plan::new(&scenario).expect("random scenarios keep all rules");
    let mut trial = Trial {
        simulation: Simulation::of(plan, seed, observer),
        lots,
        faults: 0,
        refused: 0,
    };
    let result = trial.run().map_err(|fault| Failure {
        seed,
        at: Time(trial.machine().now_ns()),
        fault,
    });
    let counts = trial.machine().counts();
    let survived = Survived {
        events: counts.events,
        faults: trial.faults,
        refused: trial.refused,
    };
    let (_, observer) = trial.simulation.into_parts();
    (observer, result.map(|()| survived))
}

struct Trial<O> {
    simulation: Simulation<O>,
    lots: Xoshiro256PlusPlus,
    faults: u64,
    refused: u64,
}

impl<O: Observer> Trial<O> {
    fn run(&mut self) -> Result<(), Fault> {
        for _ in 0..CHAOS_EVENTS {
            self.step()?;
            if below(&mut self.lots, FAULT_EVERY) == 0 {
                self.faults += 1;
                let before = self.machine().counts().refused;
                chaos::fault(&mut self.simulation, &mut self.lots);
                self.refused += self.machine().counts().refused - before;
                self.machine().check()?;
            }
        }
        self.heal();
        self.quiet()?;
        self.steady()
    }

    fn machine(&self) -> &Machine {
        self.simulation.machine()
    }

    /// One event, and a look at everything. Before time passes, everything due has
    /// happened, so no CPU may be idle that a client could use.
    fn step(&mut self) -> Result<(), Fault> {
        if self.simulation.is_settled() {
            self.machine().check_settled()?;
        }
        if !self.simulation.step()? {
            return Err(Fault::Halt);
        }
        Ok(self.machine().check()?)
    }

    fn heal(&mut self) {
        let simulation = &mut self.simulation;
        let ledger = simulation.machine().dispatcher().ledger();
        let transfers: Vec<_> = ledger.transfers().map(|transfer| transfer.id).collect();
        for transfer in transfers {
            // The end of one that is part of a chain may end others.
            simulation.end_transfer(Some(transfer));
        }
        for client in 0..simulation.machine().client_count() {
            let client = client_id(client);
            let ledger = simulation.machine().dispatcher().ledger();
            let (base, held) = (ledger.base(), ledger.funding(client).collect::<Vec<_>>());
            for ticket in held {
                simulation.apply(Operation::DestroyTicket { ticket });
            }
            simulation.apply(Operation::Issue {
                currency: base,
                amount: QUIET_TICKETS,
                target: Some(Target::Client(client)),
            });
        }
        let all = 0..simulation.machine().client_count();
        for client in all.clone() {
            let user = simulation.machine().user_of(client);
            simulation.do_deed(Deed::Slots(slots::free_all(client, user)));
        }
        simulation.do_deed(Deed::Start(all));
    }

    /// Checks that every client progresses. Nothing more holds for clients that block: a
    /// client that wants less than its share while it competes falls behind for good.
    fn quiet(&mut self) -> Result<(), Fault> {
        let before = self.services();
        self.run_for(self.quiet_ns())?;
        if self.quiet_ns() < self.longest_early_ns() + self.longest_lead_ns() {
            return Ok(());
        }
        let clients = before.iter().zip(self.services()).zip(0..);
        for ((then, now), client) in clients {
            if now.received_ns == then.received_ns {
                let client = self.machine().client_name(client).into_owned();
                return Err(Fault::Starved { client });
            }
        }
        Ok(())
    }

    /// Checks that every client gets its due.
    fn steady(&mut self) -> Result<(), Fault> {
        let all = 0..self.machine().client_count();
        self.simulation.do_deed(Deed::Stop(all.clone()));
        if self.machine().spec().policy == PolicyName::Eevdf {
            // EEVDF never forgets a debt, and repayment may take longer than the whole
            // trial so far.
            let afresh = Deed::Policy(PolicyName::Eevdf);
            self.simulation.do_deed(afresh);
        }
        self.simulation.let_all_compute();
        self.simulation.do_deed(Deed::Start(all.clone()));
        let quantum_ns = self.machine().spec().quantum.0;
        // Clients that fell behind before are paid back first. Under hierarchical stride
        // their neighbours in the tree pay one after the other.
        self.run_for(REPAYMENT * self.quiet_ns())?;
        let before = self.services();
        let steady_ns = self.quiet_ns();
        self.run_for(steady_ns)?;
        // Under the other policies a client that was passed over, as its CPUs were taken, does
        // not come first for that.
        let repays = matches!(
            self.machine().spec().policy,
            PolicyName::Stride | PolicyName::Eevdf | PolicyName::Lottery
        );
        if self.machine().confines() && !repays {
            return Ok(());
        }
        for ((then, now), client) in before.iter().zip(self.services()).zip(all) {
            let pool = self.machine().pool_of(client);
            let bound = bound(self.machine(), pool, steady_ns);
            let quanta = (now.ahead_ns() - then.ahead_ns()) / quantum_ns as f64;
            if quanta.abs() > bound {
                let client = self.machine().client_name(client).into_owned();
                return Err(Fault::Error {
                    client,
                    quanta,
                    bound,
                });
            }
        }
        Ok(())
    }

    /// How long all clients but one may be early before that one runs. Of `n` clients with
    /// equal tickets each raises its lead to the bound `A` while all leads drain at their due
    /// rates: `(n - 1) A + t (n - 1) / n = t` (1999).
    fn longest_early_ns(&self) -> u64 {
        let spec = self.machine().spec();
        if spec.hybrid.is_off() {
            return 0;
        }
        let clients = u64::from(self.machine().client_count());
        let quantum_ns = spec.quantum.0;
        clients * clients * (lead_bound_ns(quantum_ns) + quantum_ns)
    }

    /// How long a client waits more than others because of what it used in slots.
    fn longest_lead_ns(&self) -> u64 {
        let quanta_ns = 2 * self.machine().spec().quantum.0;
        let period_ns = |table: &Timetable| {
            let geometry = table.geometry();
            geometry.period_ns() + quanta_ns
        };
        self.machine().timetable().map_or(0, period_ns)
    }

    fn quiet_ns(&self) -> u64 {
        let clients = u64::from(self.machine().client_count());
        QUIET_QUANTA * clients * self.machine().spec().quantum.0
    }

    fn run_for(&mut self, time_ns: u64) -> Result<(), Fault> {
        let until_ns = self.machine().now_ns() + time_ns;
        while self.machine().now_ns() < until_ns {
            self.step()?;
        }
        Ok(())
    }

    fn services(&self) -> Vec<Service> {
        let machine = self.machine();
        let clients = 0..machine.client_count();
        let services = clients.map(|client| Service {
            received_ns: machine.received_ns(client),
            specified_ns: machine
                .dispatcher()
                .usage(machine.client_id(client))
                .specified_ns,
        });
        services.collect()
    }
}

/// CPU time that a client received, and its due.
struct Service {
    received_ns: u64,
    specified_ns: u64,
}

impl Service {
    fn ahead_ns(&self) -> f64 {
        self.received_ns as f64 - self.specified_ns as f64
    }
}

/// The bound on a client's error, in quanta, in the steady state of its pool. The error of
/// stride is O(n) for n clients (1995, 2), and a turn under way on each CPU is not yet
/// accounted for. The error of a lottery is a sum of independent draws, at most one a
/// quantum, each with a standard deviation of at most half a quantum (1994, 2). Six
/// standard deviations allow for some 10^9 trials. A client that ran early before may repay
/// its lead now (1999).
fn bound(machine: &Machine, pool: u32, quiet_ns: u64) -> f64 {
    let spec = machine.spec();
    let clients = (0..machine.client_count()).filter(|client| machine.pool_of(*client) == pool);
    let cpus = machine.pool_cpus(pool).len() as f64;
    let orderly = clients.count() as f64 + cpus;
    let quantum_ns = spec.quantum.0 as f64;
    let quanta = quiet_ns as f64 / quantum_ns * cpus;
    let orderly = match spec.hybrid.is_off() {
        true => orderly,
        false => orderly + lead_bound_ns(spec.quantum.0) as f64 / quantum_ns + 1.0,
    };
    match spec.policy {
        PolicyName::Stride | PolicyName::HierarchicalStride | PolicyName::Eevdf => orderly,
        // No trial has decay usage: tickets decide nothing there.
        PolicyName::DecayUsage => f64::INFINITY,
        PolicyName::Lottery
        | PolicyName::ListLottery
        | PolicyName::TreeLottery
        | PolicyName::ClassLottery => orderly + 6.0 * 0.5 * quanta.sqrt(),
    }
}
