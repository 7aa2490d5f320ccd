//! A machine with many CPUs whose scheduler takes time: spin locks that CPUs
//! wait for, run queues that are searched, cache lines that travel (2001).
//!
//! [`crate::machine`] decides at no cost, once for all CPUs together; it is
//! there to see what shares come to. Here each CPU calls `schedule()` and
//! `reschedule_idle()` itself, on the run queues of [`prorata_smp::run_queue`],
//! and what the queues do comes out of the CPU's time:
//!
//! ```text
//!   programs --- system call, wake ---> a CPU in the kernel
//!                                         |  decision: lock, examine, unlock
//!                                         v
//!      spin locks <----- waits ------ run queues ------ interrupt ---> another CPU
//! ```
//!
//! Programs, pipes, mutexes and durations are those of every scenario
//! ([`prorata_scenario::world`]); tickets decide nothing here, as the paper's schedulers know none.

mod costs;
mod cpus;
mod decision;
mod kernel;
mod layout;
mod lengths;
mod lines;
mod locks;
mod programs;
mod queues;
mod topology;

use prorata_core::ledger::Ledger;
use prorata_scenario::RunError;
use prorata_scenario::file::{Scenario, ScenarioError};
use prorata_scenario::plan::{Code, Group, Plan};
use prorata_scenario::queue::EventQueue;
use prorata_scenario::stream::{Purpose, stream};
use prorata_scenario::threads::Threads;
use prorata_scenario::world::Objects;
use prorata_smp::run_queue::LayoutError;

pub use costs::Costs;
use cpus::Cpu;
pub use layout::LayoutName;
pub use lengths::Lengths;
pub use locks::LockStatistics;
use locks::Locks;
use queues::Queues;
pub use topology::{Description, DescriptionError, Shared};

/// CPUs and how they choose who runs.
#[derive(Clone, PartialEq, Debug)]
pub struct Machine {
    /// How many.
    pub cpus: u32,
    /// Their run queues.
    pub layout: LayoutName,
    /// What they spend.
    pub costs: Costs,
    /// Which of them share what, if pools go by that.
    pub topology: Option<Description>,
}

/// How often things happened.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Calls of `schedule()`.
    pub schedules: u64,
    /// What they took together, from the first step to the last, waits for
    /// locks included.
    pub schedules_ns: u64,
    /// Calls of `reschedule_idle()`.
    pub wakes: u64,
    /// Times that a CPU went from one task to another.
    pub switches: u64,
    /// Of these, to a task that ran elsewhere before.
    pub migrations: u64,
    /// Times that a CPU looked for work in other pools.
    pub balances: u64,
    /// Of these, how many took a task from there.
    pub moves: u64,
    /// Steps that give way.
    pub yields: u64,
    /// Messages put into pipes.
    pub sends: u64,
    /// Sleeps begun.
    pub sleeps: u64,
}

/// Something due at a time.
#[derive(Clone, Copy, Debug)]
enum Due {
    /// What a CPU does is over, if it still has this stamp.
    Cpu { cpu: u32, stamp: u32 },
    /// A sleep is over.
    Wake { task: u32 },
    /// An interrupt from another CPU.
    Interrupt { cpu: u32 },
    /// A CPU's timer.
    Tick { cpu: u32 },
}

/// A run that cannot begin.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum StartError {
    /// The programs are wrong.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The machine is.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// What its CPUs share is.
    #[error(transparent)]
    Topology(#[from] DescriptionError),
}

/// A run.
#[derive(Debug)]
pub struct Simulation {
    now_ns: u64,
    end_ns: u64,
    seed: u64,
    costs: Costs,
    queue: EventQueue<Due>,
    cpus: Vec<Cpu>,
    queues: Queues,
    locks: Locks,
    threads: Threads,
    groups: Vec<Group>,
    code: Code,
    objects: Objects,
    ledger: Ledger,
    counts: Counts,
    lengths: Lengths,
    /// Since when all that is measured is.
    since_ns: u64,
    /// The CPU at work at this moment.
    here: u32,
    /// Threads that have not exited.
    alive: u64,
    /// Steps without cost since time passed.
    steps_at_once: u64,
    failure: Option<RunError>,
}

impl Simulation {
    /// A run of a scenario's programs. Its clients begin together, each
    /// on the next CPU; what it says of its machine, of tickets and of what happens
    /// from outside is passed over.
    ///
    /// # Errors
    ///
    /// The first rule that the scenario or the machine breaks.
    pub fn new(scenario: &Scenario, machine: &Machine, seed: u64) -> Result<Self, StartError> {
        let mut plan = Plan::new(scenario)?;
        let cpus = machine.cpus;
        let queues = Queues::new(machine)?;
        let mut simulation = Simulation {
            now_ns: 0,
            end_ns: plan.duration_ns,
            seed,
            costs: machine.costs.clone(),
            queue: EventQueue::new(),
            cpus: (0..cpus).map(|_| Cpu::new()).collect(),
            locks: Locks::new(
                queues.locks(),
                machine.costs.transfer.0,
                stream(seed, Purpose::Locks, 0),
            ),
            queues,
            threads: Threads::default(),
            objects: Objects::new(&mut plan, seed),
            groups: plan.groups,
            code: plan.code,
            ledger: plan.ledger,
            counts: Counts::default(),
            lengths: Lengths::default(),
            since_ns: 0,
            here: 0,
            alive: 0,
            steps_at_once: 0,
            failure: None,
        };
        simulation.start_all();
        Ok(simulation)
    }

    fn start_all(&mut self) {
        let tick_ns = self.costs.tick.0;
        let cpus = u64::from(self.cpus.len() as u32);
        for cpu in 0..self.cpus.len() as u32 {
            // Timers of several CPUs do not tick together.
            let first_ns = tick_ns * (u64::from(cpu) + 1) / cpus;
            self.queue.push(first_ns, Due::Tick { cpu });
        }
        for group in 0..self.groups.len() {
            let (clients, program) = (
                self.groups[group].clients.clone(),
                self.groups[group].program,
            );
            for client in clients {
                self.here = client % self.cpus.len() as u32;
                self.add_thread(client, program);
            }
        }
        (0..self.cpus.len() as u32).for_each(|cpu| self.go_on(cpu));
    }

    /// Runs until every thread has exited, or to the end of the scenario.
    ///
    /// # Errors
    ///
    /// If the run cannot go on.
    pub fn run(&mut self) -> Result<(), RunError> {
        self.run_to(self.end_ns)
    }

    /// Runs until a time at most.
    ///
    /// # Errors
    ///
    /// If the run cannot go on.
    pub fn run_to(&mut self, end_ns: u64) -> Result<(), RunError> {
        while self.alive > 0 && self.failure.is_none() {
            let due = match self.queue.pop() {
                Some(due) => due,
                None => {
                    let Some(now_ns) = self.queue.advance(end_ns, |_, _| ()) else {
                        self.now_ns = end_ns;
                        break;
                    };
                    self.now_ns = now_ns;
                    self.steps_at_once = 0;
                    continue;
                }
            };
            match due {
                Due::Cpu { cpu, stamp } => self.cpu_due(cpu, stamp),
                Due::Wake { task } => self.wake_due(task),
                Due::Interrupt { cpu } => self.interrupt_due(cpu),
                Due::Tick { cpu } => self.tick_due(cpu),
            }
        }
        self.failure.clone().map_or(Ok(()), Err)
    }

    /// Forgets what was measured so far.
    pub fn measure_afresh(&mut self) {
        self.since_ns = self.now_ns;
        self.counts = Counts::default();
        self.lengths = Lengths::default();
        self.locks.measure_afresh();
    }

    /// For how long it has been measured, in nanoseconds.
    pub fn measured_ns(&self) -> u64 {
        self.now_ns - self.since_ns
    }

    /// Nanoseconds since the start.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Threads that have not exited.
    pub fn alive(&self) -> u64 {
        self.alive
    }

    /// Threads that there ever were.
    pub fn made(&self) -> u64 {
        self.threads.made
    }

    /// How often things happened so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// What the locks of the run queues came to so far, all together.
    pub fn lock_statistics(&self) -> LockStatistics {
        self.locks.statistics()
    }

    /// Lengths of run queues, as every call of `schedule()` found them.
    pub fn lengths(&self) -> &Lengths {
        &self.lengths
    }

    /// The length of each run queue now, running tasks included.
    pub fn queue_lengths(&self) -> Vec<u32> {
        self.queues.lengths()
    }
}
