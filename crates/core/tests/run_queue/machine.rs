//! A machine whose CPUs do what a history says, over any ranking and layout.

use proptest::prelude::*;
use prorata_core::run_queue::{
    Balance, Change, Class, Cpu, CpuSet, Decision, Displaced, End, Goodness, Held, Layout,
    LockIndex, Nice, Outcome, Place, Ranking, RunQueues, Schedule, Sequential, Step, Task,
    TaskIndex, Tickets, Turn,
};

pub const CPUS: u32 = 4;
pub const TASKS: u32 = 12;

/// As on x86, with address spaces disregarded.
pub const WITHOUT_MM: Goodness = Goodness {
    same_mm: 0,
    ..Goodness::X86
};

/// What happens.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A blocked task wakes; others are left alone.
    Wake(u32),
    /// Who runs there goes on so, and the CPU decides.
    Decide(u32, End),
    /// Ten milliseconds.
    Tick(u32),
    /// A task has so many tickets from now on.
    Tickets(u32, Tickets),
}

pub fn events() -> impl Strategy<Value = Vec<Event>> {
    let end = prop_oneof![
        2 => Just(End::Runnable),
        2 => Just(End::Yields),
        3 => Just(End::Blocks)
    ];
    let event = prop_oneof![
        4 => (0..TASKS).prop_map(Event::Wake),
        3 => (0..CPUS, end).prop_map(|(cpu, end)| Event::Decide(cpu, end)),
        3 => (0..CPUS).prop_map(Event::Tick),
        1 => (0..TASKS, 1..40u32).prop_map(|(task, tickets)| {
            Event::Tickets(task, Tickets::new(tickets).unwrap())
        }),
    ];
    prop::collection::vec(event, 1..200)
}

/// A task's nature: class, real-time priority, nice, address space and the
/// CPUs that it may run on, all of them where the word is zero. It has as many
/// tickets as its nice value is below 20.
pub type Nature = (u8, u8, i8, u32, u64);

pub fn natures(allowed: bool) -> impl Strategy<Value = Vec<Nature>> {
    let mask = if allowed { 0..1u64 << CPUS } else { 0..1 };
    let nature = (
        prop_oneof![8 => Just(0u8), 1 => Just(1), 1 => Just(2)],
        1..4u8,
        prop_oneof![Just(0i8), -20..20i8],
        0..3u32,
        mask,
    );
    prop::collection::vec(nature, TASKS as usize)
}

pub fn task(index: u32, (class, rt_priority, nice, mm, allowed): Nature) -> Task {
    let mut task = Task::new(TaskIndex(index), Cpu(index % CPUS));
    task.class = [Class::Other, Class::Fifo, Class::RoundRobin][usize::from(class)];
    task.rt_priority = rt_priority;
    task.nice = Nice::new(nice).unwrap();
    task.tickets = Tickets::new((20 - i32::from(nice)) as u32).unwrap();
    task.mm = mm;
    if allowed != 0 {
        task.allowed = CpuSet::only((0..CPUS).filter(|cpu| allowed >> cpu & 1 == 1).map(Cpu));
    }
    task
}

pub struct Machine<R: Ranking> {
    pub queues: Sequential<R>,
    /// By index, while they are blocked.
    pub blocked: Vec<Option<Task>>,
    pub now_ns: u64,
    /// Answers for locks that are tried, used in turns; granted if there are
    /// none.
    pub grants: Vec<bool>,
    tries: usize,
    /// Of each decision of who runs next that the last event led to: the tries
    /// that were refused.
    pub refusals: Vec<u32>,
}

impl<R: Ranking> Machine<R> {
    pub fn new(ranking: R, layout: &Layout, natures: &[Nature]) -> Self {
        let tasks = natures.iter().zip(0..);
        Self {
            queues: Sequential::new(ranking, layout, CPUS).unwrap(),
            blocked: tasks.map(|(&nature, i)| Some(task(i, nature))).collect(),
            now_ns: 0,
            grants: Vec::new(),
            tries: 0,
            refusals: Vec::new(),
        }
    }

    /// Carries out a decision; returns the tries that were refused.
    pub fn run(&mut self, decision: &mut impl Decision<R>) -> u32 {
        let Self {
            queues,
            grants,
            tries,
            ..
        } = self;
        let mut refused = 0;
        queues.run(decision, |_: LockIndex| {
            *tries += 1;
            let granted = grants.is_empty() || grants[*tries % grants.len()];
            refused += u32::from(!granted);
            granted
        });
        refused
    }

    /// Who wakes is placed. Whether it was blocked.
    pub fn wake(&mut self, index: u32) -> bool {
        let task = self.blocked[index as usize].take();
        let wakes = task.is_some();
        if let Some(task) = task {
            self.run(&mut Place::woken(task));
        }
        wakes
    }

    pub fn decide(&mut self, cpu: u32, end: End) -> Outcome {
        self.now_ns += 1000;
        // The whole quantum, or a part of it.
        let used_ns = 1000 >> (self.now_ns / 1000 % 3);
        let turn = Turn { end, used_ns };
        let mut decision = Schedule::new(Cpu(cpu), turn, self.now_ns);
        let refused = self.run(&mut decision);
        self.refusals.push(refused);
        let mut outcome = decision.outcome();
        if let Some(task) = outcome.blocked.take() {
            let index = task.index.0 as usize;
            assert!(self.blocked[index].is_none());
            self.blocked[index] = Some(task);
        }
        outcome
    }

    /// Takes a task for the pool of `cpu`; whether there was one.
    pub fn balance(&mut self, cpu: Cpu) -> bool {
        let mut balance = Balance::new(cpu);
        self.run(&mut balance);
        let moving = balance.moving();
        let moves = moving.is_some();
        if let Some(moving) = moving {
            self.run(&mut Place::moved(moving));
        }
        moves
    }

    pub fn displaced(&mut self, displaced: Displaced) {
        self.run(&mut Place::displaced(displaced));
    }

    /// One event, and the decisions that it leads to at once, by CPU.
    pub fn happen(&mut self, event: Event) -> Vec<(Cpu, Outcome)> {
        let mut decided = Vec::new();
        self.refusals.clear();
        match event {
            Event::Wake(index) => {
                self.wake(index);
            }
            Event::Decide(cpu, end) => decided.push((Cpu(cpu), self.decide(cpu, end))),
            Event::Tick(cpu) => {
                if self.queues.tick(Cpu(cpu)) {
                    decided.push((Cpu(cpu), self.decide(cpu, End::Runnable)));
                }
            }
            Event::Tickets(index, tickets) => match &mut self.blocked[index as usize] {
                Some(task) => task.tickets = tickets,
                None => {
                    let change = Change::Tickets(tickets);
                    assert!(self.queues.adjust(TaskIndex(index), change));
                }
            },
        }
        self.settle(&mut decided);
        decided
    }

    /// Who was displaced looks for a CPU, who was told decides.
    fn settle(&mut self, decided: &mut Vec<(Cpu, Outcome)>) {
        let mut next = 0;
        loop {
            while let Some((_, outcome)) = decided.get(next) {
                next += 1;
                if let Some(displaced) = outcome.displaced {
                    self.displaced(displaced);
                }
            }
            let told = self.queues.take_told();
            if told.is_empty() {
                break;
            }
            for Cpu(cpu) in told {
                let outcome = self.decide(cpu, End::Runnable);
                decided.push((Cpu(cpu), outcome));
            }
            assert!(next < 10_000, "CPUs tell one another for ever");
        }
    }

    /// Everybody is in exactly one place, and no CPU runs two.
    pub fn check(&self) {
        let mut seen = vec![0; self.blocked.len()];
        let mut busy = vec![0; CPUS as usize];
        for queue in self.queues.queues() {
            for (task, runs) in queue.tasks() {
                seen[task.index.0 as usize] += 1;
                busy[task.cpu.0 as usize] += u32::from(runs);
                assert!(!runs || task.allowed.contains(task.cpu), "{task:?}");
            }
        }
        for task in self.blocked.iter().flatten() {
            seen[task.index.0 as usize] += 1;
        }
        assert!(seen.iter().all(|&times| times == 1), "{seen:?}");
        assert!(busy.iter().all(|&tasks| tasks <= 1), "{busy:?}");
    }
}

/// A decision, and the locks that it takes.
pub struct Locks<D>(pub D, pub Vec<LockIndex>);

impl<R, D: Decision<R>> Decision<R> for Locks<D> {
    fn step(&mut self, shared: &RunQueues<R>, held: &mut impl Held, granted: bool) -> Step {
        let step = self.0.step(shared, held, granted);
        self.1.extend(match step {
            Step::Lock(lock) | Step::TryLock(lock) => Some(lock),
            _ => None,
        });
        step
    }
}
