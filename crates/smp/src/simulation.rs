//! A run of a scenario's programs on the machine.

use prorata_core::ledger::Ledger;
use prorata_scenario::RunError;
use prorata_scenario::file::Scenario;
use prorata_scenario::plan::{Code, Group, Plan};
use prorata_scenario::queue::EventQueue;
use prorata_scenario::stream::{Purpose, stream};
use prorata_scenario::threads::Threads;
use prorata_scenario::world::Objects;

use crate::locks::Locks;
use crate::processor::Processor;
use crate::queues::SimulatedQueues;
use crate::sockets::Sockets;
use crate::{LengthHistogram, LockStatistics, MachineModel, SchedulerCosts, SmpError, WritersWake};

/// How often each event happened.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct EventCounts {
    /// Calls of `schedule()`.
    pub schedules: u64,
    /// What all these calls took, from the first step to the last, waits for
    /// locks included.
    pub schedules_ns: u64,
    /// Calls of `try_to_wake_up()`.
    pub wakes: u64,
    /// Switches of a CPU from one task to another.
    pub switches: u64,
    /// Of these, to a task that last ran on another CPU.
    pub migrations: u64,
    /// Looks of a CPU for work in other pools.
    pub balances: u64,
    /// Of these, the looks that moved a task.
    pub moves: u64,
    /// Steps that yield.
    pub yields: u64,
    /// Messages put into pipes, and signals.
    pub sends: u64,
    /// Sleeps begun.
    pub sleeps: u64,
    /// Waits for the lock of a socket.
    pub socket_waits: u64,
    /// Waits for room in a pipe.
    pub waits_for_room: u64,
    /// Segments between the ends of sockets.
    pub segments: u64,
}

/// An event due at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Due {
    /// A CPU ends what it does, if it still has this stamp.
    Cpu { cpu: u32, stamp: u32 },
    /// A sleep is over.
    Wake { task: u32 },
    /// An interrupt from another CPU.
    Interrupt { cpu: u32 },
    /// A CPU's timer.
    Tick { cpu: u32 },
}

/// A run of a scenario's programs on a machine.
#[derive(Debug)]
pub struct SmpSimulation {
    pub(crate) now_ns: u64,
    end_ns: u64,
    pub(crate) seed: u64,
    pub(crate) costs: SchedulerCosts,
    pub(crate) writers: WritersWake,
    pub(crate) queue: EventQueue<Due>,
    pub(crate) cpus: Vec<Processor>,
    pub(crate) queues: SimulatedQueues,
    pub(crate) locks: Locks,
    pub(crate) threads: Threads,
    pub(crate) groups: Vec<Group>,
    pub(crate) code: Code,
    pub(crate) objects: Objects,
    pub(crate) sockets: Sockets,
    pub(crate) ledger: Ledger,
    pub(crate) counts: EventCounts,
    pub(crate) lengths: LengthHistogram,
    /// When the measurement began.
    since_ns: u64,
    /// The CPU at work at this moment.
    pub(crate) here: u32,
    /// Threads that have not exited.
    pub(crate) alive: u64,
    /// Steps without cost since time passed.
    pub(crate) steps_at_once: u64,
    pub(crate) failure: Option<RunError>,
}

impl SmpSimulation {
    /// A run of a scenario's programs. All clients begin together, each on the
    /// next CPU. Nice values count. The scenario's machine, tickets and timeline
    /// have no effect.
    ///
    /// # Errors
    ///
    /// The first rule that the scenario or the machine breaks.
    pub fn new(scenario: &Scenario, machine: &MachineModel, seed: u64) -> Result<Self, SmpError> {
        let mut plan = Plan::new(scenario)?;
        let cpus = machine.cpus;
        let queues = SimulatedQueues::new(machine)?;
        let mut simulation = SmpSimulation {
            now_ns: 0,
            end_ns: plan.duration_ns,
            seed,
            costs: machine.costs.clone(),
            writers: machine.writers,
            queue: EventQueue::new(),
            cpus: (0..cpus).map(|_| Processor::new()).collect(),
            locks: Locks::new(
                queues.locks(),
                machine.costs.on_bus_ns(machine.costs.transfer.0),
                stream(seed, Purpose::Locks, 0),
            ),
            queues,
            threads: Threads::default(),
            objects: Objects::new(&mut plan, seed),
            sockets: Sockets::default(),
            groups: plan.groups,
            code: plan.code,
            ledger: plan.ledger,
            counts: EventCounts::default(),
            lengths: LengthHistogram::default(),
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

    /// Runs until every thread has exited, or to the scenario's end.
    ///
    /// # Errors
    ///
    /// If the run cannot go on.
    pub fn run(&mut self) -> Result<(), RunError> {
        self.run_to(self.end_ns)
    }

    /// Runs until every thread has exited, or to this time.
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
        self.counts = EventCounts::default();
        self.lengths = LengthHistogram::default();
        self.locks.measure_afresh();
    }

    /// Nanoseconds since the measurement began.
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

    /// Threads made so far.
    pub fn made(&self) -> u64 {
        self.threads.made
    }

    /// How often each event happened so far.
    pub fn counts(&self) -> EventCounts {
        self.counts
    }

    /// The locks of all run queues together.
    pub fn lock_statistics(&self) -> LockStatistics {
        self.locks.statistics()
    }

    /// Lengths of run queues, as each call of `schedule()` found them.
    pub fn lengths(&self) -> &LengthHistogram {
        &self.lengths
    }

    /// The length of each run queue now, running tasks included. The empty
    /// real-time queue of each pool stands behind those of the CPUs.
    pub fn queue_lengths(&self) -> Vec<u32> {
        self.queues.lengths()
    }
}
