//! What is looked at in a scenario: one module for each kind of experiment.

mod allocations;
mod chat;
mod currency_graph;
mod dispatch_latency;
mod effective_tickets;
mod finishes;
mod first_fit;
mod hierarchy_bound;
mod imbalance;
mod inverse_lottery;
mod large_machines;
mod list_search;
mod lock_waits;
mod many_cpus;
mod modification;
mod monte_carlo;
mod mutex;
mod next_lottery;
mod overhead;
mod panel;
mod passes;
mod progress;
mod queries;
mod queue_lengths;
mod rate_accuracy;
mod reflex;
mod reserved_latency;
mod responses;
mod runs;
mod slot_stages;
mod slot_switch;
mod slowdown;
mod throughput_error;
mod two_pieces;
mod windows;

use prorata_core::policy::PolicyName;
use prorata_scenario::Scenario;
use prorata_scenario::file::ScenarioError;
use prorata_scenario::plan::Plan;
use prorata_sim::{Machine, Observer, Simulation};
use prorata_stage::ProcessEngine;
use serde::Deserialize;

use crate::course::{self, Course};
use crate::error::ReproduceError;
use crate::expectation::Expectation;
use crate::figure::{Figure, OnProcesses, Pace};
use crate::finding::Findings;
use crate::processes;
use crate::reproduction::{Engine, Watch};

type Result<T> = std::result::Result<T, ReproduceError>;

/// What is looked at.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Experiment {
    /// A search through a list (1994, Figure 1).
    ListSearch(list_search::ListSearch),
    /// What currencies and clients are worth (1994, Figure 3).
    CurrencyGraph(currency_graph::CurrencyGraph),
    /// What tickets count for after a part of a quantum (1994, 4.5).
    NextLottery(next_lottery::NextLottery),
    /// Rates of two clients over their tickets (1994, Figure 4).
    RateAccuracy(rate_accuracy::RateAccuracy),
    /// Rates over windows of time (1994, Figure 5).
    Windows(windows::Windows),
    /// Trials of Monte-Carlo integrations (1994, Figure 6).
    MonteCarlo(monte_carlo::MonteCarlo),
    /// Calls of a server (1994, Figure 7).
    Queries(queries::Queries),
    /// Service over time, and shares between times (1994, Figures 8 and 9).
    Progress(progress::Progress),
    /// What decisions cost (1994, 5.6).
    Overhead(overhead::Overhead),
    /// Waiting at a mutex (1994, Figure 11).
    Mutex(mutex::MutexWaits),
    /// Losses of pages (1994, 6.2).
    InverseLottery(inverse_lottery::Pages),
    /// Passes over time (1995, Figure 2).
    Passes(passes::Passes),
    /// A change of tickets (1995, Figure 4).
    Modification(modification::Modification),
    /// Allocations one by one (1995, Figure 8).
    Allocations(allocations::Allocations),
    /// Error over allocations (1995, Figures 9 and 10).
    ThroughputError(throughput_error::ThroughputError),
    /// Errors in trees of many sizes (1995, 4.1).
    HierarchyBound(hierarchy_bound::HierarchyBound),
    /// Response times (1995, Figures 11 to 13).
    Responses(responses::Responses),
    /// Deviations from the mean length of run queues (2001, Figure 1).
    Imbalance(imbalance::Imbalance),
    /// Run queue lengths and locks under a database (2001, Tables 1 and 2).
    QueueLengths(queue_lengths::QueueLengths),
    /// Throughput of Chat (2001, Figures 2 to 5 and Tables 3 to 5).
    ChatRooms(chat::ChatRooms),
    /// Rounds of Reflex (2001, Figures 6 and 7 and Table 6).
    Rounds(reflex::Rounds),
    /// A turn in two pieces and the same turn in one (1999, Figure 1).
    TwoPieces(two_pieces::TwoPieces),
    /// Chances in a lottery and by the paper's pseudo-code (1999, Figure 2).
    EffectiveTickets(effective_tickets::EffectiveTickets),
    /// Programs that end by work done (1999, Figures 3 and 4).
    Finishes(finishes::Finishes),
    /// Times from a wake to the CPU (1999, Figures 5 and 6, Table 1).
    DispatchLatency(dispatch_latency::DispatchLatency),
    /// Waits for locks with kernel priorities (1999, Table 2).
    LockWaits(lock_waits::LockWaits),
    /// Work beside programs that make the scheduler work (1999, Figure 10).
    Slowdown(slowdown::Slowdown),
    /// The same on machines past the paper's (2001, 6).
    LargeMachines(large_machines::LargeMachines),
    /// The table of slots at several stages (2005, Figure 2.6).
    SlotStages(slot_stages::SlotStages),
    /// What a switch of slots costs (2005, Table 4.1).
    SlotSwitch(slot_switch::SlotSwitch),
    /// Round trips to servers in reserved slots (2005, Figure 4.2).
    ReservedLatency(reserved_latency::ReservedLatency),
    /// Periodic tasks placed one by one in a table of slots (2005, Figures 4.3 to 4.5).
    FirstFit(first_fit::FirstFit),
}

/// Policies that every experiment in which a policy decides is repeated under.
const OTHERS: [PolicyName; 5] = [
    PolicyName::Lottery,
    PolicyName::ClassLottery,
    PolicyName::Stride,
    PolicyName::HierarchicalStride,
    PolicyName::Eevdf,
];

impl Experiment {
    pub(crate) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        match self {
            Experiment::ListSearch(this) => this.run(context),
            Experiment::CurrencyGraph(this) => this.run(context),
            Experiment::NextLottery(this) => this.run(context),
            Experiment::RateAccuracy(this) => this.run(context),
            Experiment::Windows(this) => this.run(context),
            Experiment::MonteCarlo(this) => this.run(context),
            Experiment::Queries(this) => this.run(context),
            Experiment::Progress(this) => this.run(context),
            Experiment::Overhead(this) => this.run(context),
            Experiment::Mutex(this) => this.run(context),
            Experiment::InverseLottery(this) => this.run(context),
            Experiment::Passes(this) => this.run(context),
            Experiment::Modification(this) => this.run(context),
            Experiment::Allocations(this) => this.run(context),
            Experiment::ThroughputError(this) => this.run(context),
            Experiment::HierarchyBound(this) => this.run(context),
            Experiment::Responses(this) => this.run(context),
            Experiment::Imbalance(this) => this.run(context),
            Experiment::QueueLengths(this) => this.run(context),
            Experiment::ChatRooms(this) => this.run(context),
            Experiment::Rounds(this) => this.run(context),
            Experiment::TwoPieces(this) => this.run(context),
            Experiment::EffectiveTickets(this) => this.run(context),
            Experiment::LockWaits(this) => this.run(context),
            Experiment::Finishes(this) => this.run(context),
            Experiment::DispatchLatency(this) => this.run(context),
            Experiment::Slowdown(this) => this.run(context),
            Experiment::LargeMachines(this) => this.run(context),
            Experiment::SlotStages(this) => this.run(context),
            Experiment::SlotSwitch(this) => this.run(context),
            Experiment::ReservedLatency(this) => this.run(context),
            Experiment::FirstFit(this) => this.run(context),
        }
    }

    /// Policies beyond those of the paper; none where it is about one policy,
    /// or about none.
    pub(crate) fn others(&self, scenario: &Scenario, paper: u32) -> Vec<PolicyName> {
        let of_paper = match self {
            Experiment::ListSearch(_)
            | Experiment::CurrencyGraph(_)
            | Experiment::NextLottery(_)
            | Experiment::Overhead(_)
            | Experiment::InverseLottery(_)
            | Experiment::HierarchyBound(_)
            | Experiment::Passes(_)
            | Experiment::Modification(_)
            | Experiment::Imbalance(_)
            | Experiment::QueueLengths(_)
            | Experiment::ChatRooms(_)
            | Experiment::Rounds(_)
            | Experiment::TwoPieces(_)
            | Experiment::EffectiveTickets(_)
            | Experiment::LockWaits(_)
            | Experiment::Slowdown(_)
            | Experiment::LargeMachines(_)
            | Experiment::SlotStages(_)
            | Experiment::SlotSwitch(_)
            | Experiment::ReservedLatency(_)
            | Experiment::FirstFit(_) => return Vec::new(),
            Experiment::Allocations(this) => panel::policies(&this.panels),
            Experiment::ThroughputError(this) => panel::policies(&this.panels),
            Experiment::Responses(this) => panel::policies(&this.panels),
            _ => vec![scenario.machine.policy],
        };
        // The paper of 1999 has 4.4BSD's scheduler beside its own.
        let peer = (paper == 1999).then_some(PolicyName::DecayUsage);
        let others = OTHERS.into_iter().chain(peer);
        others.filter(|other| !of_paper.contains(other)).collect()
    }
}

/// A policy as people write it.
pub fn policy_title(policy: PolicyName) -> &'static str {
    match policy {
        PolicyName::Stride => "stride",
        PolicyName::Lottery => "lottery as a race",
        PolicyName::HierarchicalStride => "hierarchical stride",
        PolicyName::ListLottery => "list lottery",
        PolicyName::TreeLottery => "tree lottery",
        PolicyName::ClassLottery => "constant-time lottery",
        PolicyName::Eevdf => "EEVDF (baseline)",
        PolicyName::DecayUsage => "decay usage (baseline)",
    }
}

/// A scenario as an engine for processes decides it: however the paper draws its
/// lotteries, one that knows them as a race alone has the same winners as often.
pub(crate) fn decided_by(scenario: &Scenario, kind: &ProcessEngine) -> Scenario {
    let mut scenario = scenario.clone();
    let policy = &mut scenario.machine.policy;
    let is_lottery = matches!(
        policy,
        PolicyName::ListLottery | PolicyName::TreeLottery | PolicyName::ClassLottery
    );
    if is_lottery && !kind.policies.contains(policy) {
        *policy = PolicyName::Lottery;
    }
    scenario
}

/// A boost is an order where it cannot multiply tickets.
pub(crate) fn as_far_as_possible(scenario: &mut Scenario) {
    let machine = &mut scenario.machine;
    machine.hybrid.as_printed &= machine.policy.runs_as_printed();
}

/// What an experiment has at hand.
pub(crate) struct Context<'a> {
    pub figure: &'a Figure,
    /// What the paper says of it.
    pub expectations: &'a [Expectation],
    pub run: u32,
    pub engine: Engine,
    /// On processes as long as in the paper; simulated machines of all sizes.
    pub full: bool,
    /// Decides instead of the paper's policies.
    pub policy: Option<PolicyName>,
    pub watch: &'a mut dyn Watch,
}

impl Context<'_> {
    /// The figure's scenario, under the policy in question.
    pub fn scenario(&self) -> Scenario {
        let mut scenario = self.figure.scenario.clone();
        if let Some(policy) = self.policy {
            scenario.machine.policy = policy;
        }
        as_far_as_possible(&mut scenario);
        scenario
    }

    pub fn seed(&self, run: u32) -> u64 {
        u64::from(self.figure.scenario.seed) + (u64::from(run) << 32)
    }

    /// Simulates a scenario to its end.
    pub fn simulate<O: Observer>(
        &mut self,
        scenario: &Scenario,
        seed: u64,
        observer: O,
    ) -> Result<(Machine, O)> {
        self.step("")?;
        let simulation = Simulation::watched(scenario, seed, observer);
        let mut simulation = simulation.map_err(|error| self.refused(error))?;
        simulation.run().map_err(|error| ReproduceError::Run {
            id: self.figure.id.clone(),
            error,
        })?;
        Ok(simulation.into_parts())
    }

    /// The course of a run on the engine in question.
    pub fn course(&mut self, scenario: &Scenario, seed: u64) -> Result<Course> {
        let Some(kind) = self.engine.for_processes() else {
            return course::simulated(self, scenario, seed);
        };
        let (on_processes, pace) = self.on_processes()?;
        let pace = pace.clone();
        let settle = on_processes.settle;
        let scenario = decided_by(scenario, kind);
        processes::course((kind, seed), &scenario, &pace, settle, self.watch)
    }

    /// How the figure is run on processes, and at what pace now.
    pub fn on_processes(&self) -> Result<(&OnProcesses, &Pace)> {
        let on_processes = self.figure.reproduces.processes.as_ref();
        let on_processes =
            on_processes.ok_or_else(|| ReproduceError::NotOnProcesses(self.figure.id.clone()))?;
        let pace = match self.full {
            true => &on_processes.full,
            false => &on_processes.short,
        };
        Ok((on_processes, pace))
    }

    /// How often a measurement is repeated, given how often by simulation and
    /// in the paper: on processes as often as there, or more in shortened form.
    pub fn runs(&self, simulated: u32, paper: u32) -> u32 {
        let on_processes = self.figure.reproduces.processes.as_ref();
        match on_processes {
            Some(on_processes) if self.engine != Engine::Sim && !self.full => {
                paper.max(on_processes.runs)
            }
            _ if self.engine != Engine::Sim => paper,
            _ => simulated,
        }
    }

    /// Says what comes next.
    ///
    /// # Errors
    ///
    /// If the watcher ends it.
    pub fn step(&mut self, what: &str) -> Result<()> {
        self.watch.step(what);
        if self.watch.is_over() {
            return Err(ReproduceError::Interrupted);
        }
        Ok(())
    }

    /// The plan of the figure's scenario, for experiments that drive a part of a machine.
    pub fn plan(&self) -> Result<Plan> {
        Plan::new(&self.figure.scenario).map_err(|error| self.refused(error))
    }

    /// A scenario that is refused.
    fn refused(&self, error: ScenarioError) -> ReproduceError {
        ReproduceError::Scenario {
            id: self.figure.id.clone(),
            error: Box::new(error),
        }
    }

    /// A scenario that does not fit its experiment.
    pub fn malformed(&self, what: impl Into<String>) -> ReproduceError {
        ReproduceError::Malformed {
            id: self.figure.id.clone(),
            what: what.into(),
        }
    }
}
