//! The machine: a discrete-event simulation around a [`Dispatcher`], the very
//! code that decides for real processes.
//!
//! ```text
//!            +------------- events, by time -------------+
//!            v                                           |
//!   what is due happens: a step ends, a thread wakes, ---+
//!   a turn is over, something comes from outside
//!            |
//!            v   when nothing more is due at this time
//!   free CPUs are given away: dispatcher.next(cpu, now) -+
//! ```
//!
//! Time is whole nanoseconds. All events of one time happen, in the order in which they
//! were queued, before any CPU is given away at that time. So threads that wake together
//! compete together.
//!
//! The hot loop (turns end and begin, threads sleep and wake) allocates only
//! while tables grow; calls, mutexes with lotteries and changes of rights go
//! through the ledger's checked operations, which allocate.

mod accounts;
mod affinity;
mod clients;
mod cpus;
mod deeds;
mod hybrid;
mod pools;
mod rules;
mod slots;
mod steps;
mod turn_table;
mod turns;
mod world;

use std::borrow::Cow;

use prorata_core::dispatcher::Dispatcher;
use prorata_core::hybrid::Nice;
use prorata_core::ids::ClientId;
use prorata_scenario::RunError;
use prorata_scenario::event::Event;
use prorata_scenario::file::{MachineSpec, Quanta, Scenario, ScenarioError};
use prorata_scenario::measure::Counts;
use prorata_scenario::plan::{
    Code, Deed, Group, Plan, client_id, client_name, find_clients, group_of,
};
use prorata_scenario::queue::EventQueue;
use prorata_scenario::threads::Threads;
use prorata_scenario::world::{Objects, Rules};

pub use accounts::Imbalance;
use clients::{Client, prefetch_due};
use cpus::Cpus;
use pools::{Pool, dispatcher};
use slots::Slots;
use turn_table::TurnTable;

use crate::observer::Observer;

/// From so many clients on, memory is prefetched. Fewer clients stay in the caches, and
/// prefetching would only take time.
const MANY_CLIENTS: usize = 1 << 13;

/// No thread, no CPU.
const NONE: u32 = prorata_scenario::threads::NO_THREAD;

/// Something due at a time; eight bytes.
#[derive(Clone, Copy, Debug)]
enum Due {
    /// A thread's step or turn ends, if the CPU still has this stamp.
    Cpu { cpu: u16, stamp: u32 },
    /// A sleep is over.
    Wake { thread: u32 },
    /// All turns end.
    Tick,
    /// All clients of a group start.
    Start { group: u32 },
    /// A client's tickets change by its rule.
    Rule { client: u32 },
    /// Something from outside.
    Deed { index: u32 },
    /// A boundary of slots, if it still has this stamp.
    Slot { stamp: u32 },
    /// A client with a limit may run again.
    Resumption,
    /// A point of the time series.
    Sample,
    /// A time that an assertion speaks of.
    Mark,
}

/// The simulated machine, to look at; it is driven by a [`Simulation`].
pub struct Machine {
    now_ns: u64,
    end_ns: u64,
    queue: EventQueue<Due>,
    dispatcher: Dispatcher,
    cpus: Cpus,
    pools: Vec<Pool>,
    threads: Threads,
    clients: Vec<Client>,
    turns: TurnTable,
    objects: Objects,
    /// By client, of those that have one.
    rules: Rules,
    /// The timetable, if there is one.
    slots: Option<Box<Slots>>,
    counts: Counts,
    code: Code,
    groups: Vec<Group>,
    timeline: Vec<(u64, Deed)>,
    machine: MachineSpec,
    pairs: Vec<(u32, u32)>,
    sample_every_ns: Option<u64>,
    seed: u64,
    /// Policies so far.
    policies: u64,
    /// When a tick is due, if one is; only where quanta are aligned.
    tick_ns: Option<u64>,
    /// When an end of a pause is due, if one is; only where clients have limits.
    resumption_ns: Option<u64>,
    /// All turns are to end now.
    tick_now: bool,
    /// Some client may use only some CPUs.
    confines: bool,
    /// A mechanism of hybrid scheduling is in force (1999).
    is_hybrid: bool,
    /// Clients that woke since CPUs were last given away, where wakes preempt.
    woken: Vec<u32>,
    /// Threads that can run but have no CPU.
    waiting: u64,
    /// Steps taken since time passed.
    steps_at_once: u64,
    failure: Option<RunError>,
    finished: bool,
}

/// A run: a machine and its observer.
pub struct Simulation<O = ()> {
    machine: Machine,
    observer: O,
}

impl Simulation {
    /// A run without an observer.
    ///
    /// # Errors
    ///
    /// The first rule that the scenario breaks.
    pub fn new(scenario: &Scenario, seed: u64) -> Result<Simulation, ScenarioError> {
        Simulation::watched(scenario, seed, ())
    }
}

impl<O: Observer> Simulation<O> {
    /// A run that `observer` watches.
    ///
    /// # Errors
    ///
    /// The first rule that the scenario breaks.
    pub fn watched(scenario: &Scenario, seed: u64, observer: O) -> Result<Self, ScenarioError> {
        Ok(Simulation::of(Plan::new(scenario)?, seed, observer))
    }

    /// A run of a plan. All randomness comes from `seed`, which may differ from the
    /// scenario's own.
    pub fn of(plan: Plan, seed: u64, observer: O) -> Self {
        let mut simulation = Simulation {
            machine: Machine::new(plan, seed),
            observer,
        };
        simulation.tell(Event::Began);
        simulation
    }

    /// Handles one event. Returns whether there was one left.
    ///
    /// # Errors
    ///
    /// If the run cannot continue.
    pub fn step(&mut self) -> Result<bool, RunError> {
        let due = match self.machine.queue.pop() {
            Some(due) => due,
            None => match self.pass_time() {
                Some(due) => due,
                None => return self.machine.failure.clone().map_or(Ok(false), Err),
            },
        };
        self.machine.counts.events += 1;
        self.handle(due);
        Ok(true)
    }

    /// Settles the present if nothing more is due now; returns whether time
    /// passes next.
    pub(crate) fn is_settled(&mut self) -> bool {
        if self.machine.queue.has_present() {
            return false;
        }
        self.settle();
        !self.machine.queue.has_present()
    }

    /// Handles all events that are left.
    ///
    /// # Errors
    ///
    /// If the run cannot continue.
    pub fn run(&mut self) -> Result<(), RunError> {
        while self.step()? {}
        Ok(())
    }

    /// The machine now.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The observer.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// The observer, to take its records.
    pub fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }

    /// The machine and the observer.
    pub fn into_parts(self) -> (Machine, O) {
        (self.machine, self.observer)
    }

    /// Settles the present and goes on to the next time that something is
    /// due; nothing if there is none before the end.
    #[inline]
    fn pass_time(&mut self) -> Option<Due> {
        if self.machine.finished {
            return None;
        }
        loop {
            self.settle();
            // Settling may have made something due at once.
            if let Some(due) = self.machine.queue.pop() {
                return Some(due);
            }
            let machine = &mut self.machine;
            if machine.failure.is_some() {
                break;
            }
            let (threads, dispatcher) = (&machine.threads.all, &machine.dispatcher);
            let clients = &machine.clients;
            let soon = |due, nearest| prefetch_due(threads, clients, dispatcher, due, nearest);
            let Some(now_ns) = machine.queue.advance(machine.end_ns, soon) else {
                machine.now_ns = machine.end_ns;
                self.account_all();
                break;
            };
            machine.now_ns = now_ns;
            machine.dispatcher.advance(now_ns);
            machine.steps_at_once = 0;
            if let Some(due) = machine.queue.pop() {
                return Some(due);
            }
        }
        self.machine.finished = true;
        self.tell(Event::Finished);
        None
    }

    #[inline]
    fn handle(&mut self, due: Due) {
        match due {
            Due::Cpu { cpu, stamp } => self.cpu_due(cpu.into(), stamp),
            Due::Wake { thread } => self.wake(thread),
            Due::Tick => {
                self.machine.tick_ns = None;
                self.machine.tick_now = true;
            }
            Due::Start { group } => {
                let clients = self.machine.groups[group as usize].clients.clone();
                clients.into_iter().for_each(|client| self.start(client));
            }
            // Settling gives CPUs away.
            Due::Resumption => self.machine.resumption_ns = None,
            Due::Rule { client } => self.rule_due(client),
            Due::Deed { index } => self.deed_due(index),
            Due::Slot { stamp } => self.slot_due(stamp),
            Due::Sample => {
                self.account_all();
                self.tell(Event::Sample);
                self.machine.push_next_sample();
            }
            Due::Mark => {
                self.account_all();
                self.tell(Event::Mark);
            }
        }
    }

    #[inline]
    fn tell(&mut self, event: Event<'_>) {
        if O::WATCHES {
            self.observer
                .observe(self.machine.now_ns, event, &self.machine);
        }
    }
}

impl Machine {
    fn new(mut plan: Plan, seed: u64) -> Machine {
        let objects = Objects::new(&mut plan, seed);
        let count = plan.groups.last().map_or(0, |group| group.clients.end);
        let clients = vec![Client::NEW; count as usize];
        let mut threads = Threads::default();
        threads.reserve(clients.len());
        let mut queue = EventQueue::new();
        for (group, planned) in plan.groups.iter().enumerate() {
            let group = group as u32;
            queue.push(planned.start_ns, Due::Start { group });
        }
        for (index, (time_ns, _)) in plan.timeline.iter().enumerate() {
            queue.push(
                *time_ns,
                Due::Deed {
                    index: index as u32,
                },
            );
        }
        for mark_ns in plan.marks_ns {
            queue.push(mark_ns, Due::Mark);
        }
        let dispatcher = dispatcher(plan.ledger, &plan.pools, &plan.machine, seed);
        let policies = plan.pools.len() as u64;
        let is_hybrid = plan.machine.hybrid.mechanisms().judges_wakes();
        let mut machine = Machine {
            now_ns: 0,
            end_ns: plan.duration_ns,
            queue,
            dispatcher,
            cpus: Cpus::new(plan.machine.cpus),
            pools: plan.pools.into_iter().map(Pool::new).collect(),
            threads,
            clients,
            turns: TurnTable::default(),
            objects,
            rules: Rules::new(&plan.groups, seed),
            slots: plan
                .slots
                .map(|slots| Box::new(Slots::new(slots, count as usize))),
            counts: Counts::default(),
            code: plan.code,
            groups: plan.groups,
            timeline: plan.timeline,
            machine: plan.machine,
            pairs: plan.pairs,
            sample_every_ns: plan.sample_every_ns,
            seed,
            policies,
            tick_ns: None,
            resumption_ns: None,
            tick_now: false,
            confines: false,
            is_hybrid,
            woken: Vec::new(),
            waiting: 0,
            steps_at_once: 0,
            failure: None,
            finished: false,
        };
        for (client, pool) in (0..).zip(plan.homes) {
            let dispatcher = &mut machine.dispatcher;
            dispatcher.move_to_pool(client_id(client), pool.into());
        }
        for group in machine.groups.iter().filter(|g| g.affinity.is_some()) {
            machine.confines = true;
            for client in group.clients.clone().map(client_id) {
                let affinity = group.affinity.as_ref();
                machine.dispatcher.set_affinity(client, affinity);
            }
        }
        for group in machine.groups.iter().filter(|g| g.nice != Nice::default()) {
            for client in group.clients.clone().map(client_id) {
                machine.dispatcher.set_nice(client, group.nice);
            }
        }
        if let Some(slots) = &machine.slots {
            machine.dispatcher.open_slots(slots.period_ns());
            machine.plan_boundary();
        }
        machine.push_next_sample();
        machine
    }

    fn push_next_sample(&mut self) {
        if let Some(every_ns) = self.sample_every_ns {
            self.queue.push(self.now_ns + every_ns, Due::Sample);
        }
    }

    /// Nanoseconds since the start.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// When the run ends.
    pub fn end_ns(&self) -> u64 {
        self.end_ns
    }

    /// The dispatcher: the ledger, and the due of each client.
    pub fn dispatcher(&self) -> &Dispatcher {
        &self.dispatcher
    }

    /// The machine of the scenario, with the policy and the quantum of now.
    pub fn spec(&self) -> &MachineSpec {
        &self.machine
    }

    /// Number of clients; they are numbered from 0, in the order of the file.
    pub fn client_count(&self) -> u32 {
        self.clients.len() as u32
    }

    /// A client's name; that of a copy is the file's and its number.
    pub fn client_name(&self, client: u32) -> Cow<'_, str> {
        client_name(&self.groups, client)
    }

    /// A client's identifier in the ledger.
    pub fn client_id(&self, client: u32) -> ClientId {
        client_id(client)
    }

    /// The numbers of a client's copies, or of the one copy of that name.
    pub fn find_clients(&self, name: &str) -> Option<std::ops::Range<u32>> {
        find_clients(&self.groups, name)
    }

    /// Names of the file's clients and the numbers of their copies.
    pub fn groups(&self) -> impl Iterator<Item = (&str, std::ops::Range<u32>)> {
        self.groups
            .iter()
            .map(|group| (group.name.as_str(), group.clients.clone()))
    }

    pub(crate) fn parts(&self) -> (&[Group], &Objects) {
        (&self.groups, &self.objects)
    }

    /// Names of the mutexes, by number.
    pub fn mutex_names(&self) -> impl Iterator<Item = &str> {
        self.objects.mutex_names()
    }

    /// Names of the services, by number.
    pub fn service_names(&self) -> impl Iterator<Item = &str> {
        self.objects.service_names()
    }

    /// Pairs of clients whose relative error is measured.
    pub fn pairs(&self) -> &[(u32, u32)] {
        &self.pairs
    }

    /// The client whose thread a CPU runs, and the thread.
    pub fn running(&self, cpu: u32) -> Option<(u32, u32)> {
        let thread = self.cpus.all.get(cpu as usize)?.thread;
        (thread != NONE).then(|| (self.threads.all[thread as usize].client, thread))
    }

    /// Which line of the scenario a client comes from.
    fn group(&self, client: u32) -> &Group {
        group_of(&self.groups, client)
    }

    fn is_aligned(&self) -> bool {
        self.machine.quanta == Quanta::Aligned
    }
}
