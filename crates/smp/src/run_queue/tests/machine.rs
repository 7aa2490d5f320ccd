//! A machine whose CPUs decide one after another, over any layout.

use proptest::prelude::*;

use prorata_core::hybrid::nice::Nice;

use super::super::goodness::most_ticks;
use super::super::{
    Balance, Cpu, Decision, DecisionStep, Displaced, Goodness, Held, LayoutError, LockIndex,
    Placement, Queue, QueueLayout, RunQueues, Schedule, Scheduled, Task, TaskIndex, Tick, TurnEnd,
};

pub const CPUS: u32 = 4;
pub const TASKS: u32 = 12;

/// As on x86, but address spaces are disregarded.
pub const WITHOUT_MM: Goodness = Goodness { same_mm: 0 };

/// Run queues whose decisions run to their end at once.
#[derive(Debug)]
pub struct Sequential {
    pub shared: RunQueues,
    memory: Memory,
    /// CPUs that were told to decide, in order, until they are taken.
    told: Vec<Cpu>,
    /// Tasks and words that the last decision looked at.
    pub examined: (u64, u64),
    /// Locks that the last decision took, in order.
    pub locked: Vec<LockIndex>,
}

#[derive(Debug)]
struct Memory {
    queues: Vec<Queue>,
    /// By lock: whether the decision holds it.
    held: Vec<bool>,
}

impl Held for Memory {
    fn queue(&mut self, LockIndex(lock): LockIndex) -> &mut Queue {
        assert!(self.held[lock as usize], "lock {lock} is not held");
        &mut self.queues[lock as usize]
    }

    fn take_blocked(&mut self, _: TaskIndex) -> Option<Task> {
        unreachable!("no decision begins before another has ended")
    }
}

impl Sequential {
    pub fn new(goodness: Goodness, layout: &QueueLayout, cpus: u32) -> Result<Self, LayoutError> {
        let (shared, queues) = RunQueues::new(goodness, layout, cpus)?;
        let held = vec![false; shared.locks() as usize];
        Ok(Self {
            shared,
            memory: Memory { queues, held },
            told: Vec::new(),
            examined: (0, 0),
            locked: Vec::new(),
        })
    }

    pub fn queues(&self) -> &[Queue] {
        &self.memory.queues
    }

    /// CPUs that were told to decide anew since the last call.
    pub fn take_told(&mut self) -> Vec<Cpu> {
        std::mem::take(&mut self.told)
    }

    pub fn schedule(&mut self, cpu: Cpu, end: TurnEnd) -> Scheduled {
        let mut decision = Schedule::new(cpu, end, 0);
        self.run(&mut decision, |_| true);
        decision.outcome()
    }

    pub fn wake(&mut self, task: Task) {
        self.run(&mut Placement::woken(task), |_| true);
    }

    /// A tick on `cpu`: whether the time slice there has ended.
    pub fn tick(&mut self, cpu: Cpu) -> bool {
        let mut decision = Tick::new(cpu);
        self.run(&mut decision, |_| true);
        decision.expired()
    }

    /// Runs a decision to its end. `grant` says of each tried lock whether it
    /// is free.
    pub fn run(&mut self, decision: &mut impl Decision, mut grant: impl FnMut(LockIndex) -> bool) {
        self.examined = (0, 0);
        self.locked.clear();
        let mut granted = false;
        loop {
            let step = decision.step(&mut self.shared, &mut self.memory, granted);
            match step {
                DecisionStep::Lock(lock) => self.take(lock),
                DecisionStep::TryLock(lock) => {
                    granted = grant(lock);
                    if granted {
                        self.take(lock);
                    }
                }
                DecisionStep::Unlock(LockIndex(lock)) => {
                    let held = std::mem::take(&mut self.memory.held[lock as usize]);
                    assert!(held, "lock {lock} is released but not held");
                }
                DecisionStep::Examined { tasks, words } => {
                    self.examined.0 += u64::from(tasks);
                    self.examined.1 += u64::from(words);
                }
                DecisionStep::Interrupt(cpu) => self.told.push(cpu),
                DecisionStep::Done => break,
            }
        }
        assert!(!self.memory.held.contains(&true), "a lock is left held");
    }

    fn take(&mut self, lock: LockIndex) {
        let held = std::mem::replace(&mut self.memory.held[lock.0 as usize], true);
        assert!(!held, "lock {lock:?} is taken twice");
        self.locked.push(lock);
    }
}

#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A task wakes, if it is blocked.
    Wake(u32),
    /// The running task goes on so, and the CPU decides.
    Decide(u32, TurnEnd),
    /// Ten milliseconds.
    Tick(u32),
}

pub fn events() -> impl Strategy<Value = Vec<Event>> {
    let end = prop_oneof![
        2 => Just(TurnEnd::Runnable),
        2 => Just(TurnEnd::Yields),
        3 => Just(TurnEnd::Blocks)
    ];
    let event = prop_oneof![
        4 => (0..TASKS).prop_map(Event::Wake),
        3 => (0..CPUS, end).prop_map(|(cpu, end)| Event::Decide(cpu, end)),
        3 => (0..CPUS).prop_map(Event::Tick),
    ];
    prop::collection::vec(event, 1..200)
}

/// All tasks, blocked, some of them nice, with some ticks left each, in some address spaces.
pub fn tasks() -> impl Strategy<Value = Vec<Task>> {
    let nice = prop_oneof![Just(0), -20..=19i8].prop_filter_map("a nice value", Nice::new);
    let nature = nice.prop_flat_map(|nice| (0..=most_ticks(nice), Just(nice), 0..3u32));
    let natures = prop::collection::vec(nature, TASKS as usize);
    natures.prop_map(|natures| {
        let task = |(index, (counter, nice, mm))| Task {
            counter,
            nice,
            mm,
            ..task(index)
        };
        (0..).zip(natures).map(task).collect()
    })
}

/// Tasks that are all alike.
pub fn equal_tasks() -> Vec<Task> {
    (0..TASKS)
        .map(|index| Task {
            mm: 0,
            ..task(index)
        })
        .collect()
}

pub fn task(index: u32) -> Task {
    Task::new(TaskIndex(index), Nice::default(), Cpu(index % CPUS))
}

/// How a `schedule()` went.
#[derive(Clone, Copy, Debug)]
pub struct Made {
    /// Tries of a lock that were refused.
    pub refused: u32,
    /// Whether all counters were recalculated.
    pub recalculated: bool,
}

pub struct TestMachine {
    pub queues: Sequential,
    /// By index, while they are blocked.
    pub blocked: Vec<Option<Task>>,
    pub now_ns: u64,
    /// Answers for tried locks, used in turns; all are granted without any.
    pub grants: Vec<bool>,
    tries: usize,
    /// Each `schedule()` that the last event led to.
    pub made: Vec<Made>,
}

impl TestMachine {
    pub fn new(goodness: Goodness, layout: &QueueLayout, tasks: &[Task]) -> Self {
        Self::of(CPUS, goodness, layout, tasks)
    }

    /// A machine of so many CPUs.
    pub fn of(cpus: u32, goodness: Goodness, layout: &QueueLayout, tasks: &[Task]) -> Self {
        Self {
            queues: Sequential::new(goodness, layout, cpus).unwrap(),
            blocked: tasks.iter().copied().map(Some).collect(),
            now_ns: 0,
            grants: Vec::new(),
            tries: 0,
            made: Vec::new(),
        }
    }

    /// Carries out a decision; returns the refused tries.
    pub fn run(&mut self, decision: &mut impl Decision) -> u32 {
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

    /// Places a task if it is blocked. Returns whether it was.
    pub fn wake(&mut self, index: u32) -> bool {
        let task = self.blocked[index as usize].take();
        task.map(|task| self.run(&mut Placement::woken(task)))
            .is_some()
    }

    pub fn decide(&mut self, cpu: u32, end: TurnEnd) -> Scheduled {
        self.now_ns += 1000;
        let clock = self.queues.shared.clock(Cpu(cpu));
        let mut decision = Schedule::new(Cpu(cpu), end, self.now_ns);
        let refused = self.run(&mut decision);
        let recalculated = self.queues.shared.clock(Cpu(cpu)) != clock;
        self.made.push(Made {
            refused,
            recalculated,
        });
        let outcome = decision.outcome();
        if let Some(task) = outcome.blocked {
            let blocked = &mut self.blocked[task.index.0 as usize];
            assert!(blocked.replace(task).is_none());
        }
        outcome
    }

    /// Moves a task to the pool of `cpu`; returns whether one moved.
    pub fn balance(&mut self, cpu: Cpu) -> bool {
        let mut balance = Balance::new(cpu);
        self.run(&mut balance);
        let moving = balance.moving();
        moving
            .map(|moving| self.run(&mut Placement::moved(moving)))
            .is_some()
    }

    pub fn displaced(&mut self, displaced: Displaced) {
        self.run(&mut Placement::displaced(displaced));
    }

    /// One event, and the decisions that it leads to at once, by CPU.
    pub fn happen(&mut self, event: Event) -> Vec<(Cpu, Scheduled)> {
        let mut decided = Vec::new();
        self.made.clear();
        match event {
            Event::Wake(index) => {
                self.wake(index);
            }
            Event::Decide(cpu, end) => decided.push((Cpu(cpu), self.decide(cpu, end))),
            Event::Tick(cpu) => {
                if self.queues.tick(Cpu(cpu)) {
                    decided.push((Cpu(cpu), self.decide(cpu, TurnEnd::Runnable)));
                }
            }
        }
        self.settle(&mut decided);
        decided
    }

    /// Displaced tasks look for a CPU, and told CPUs decide.
    fn settle(&mut self, decided: &mut Vec<(Cpu, Scheduled)>) {
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
                let outcome = self.decide(cpu, TurnEnd::Runnable);
                decided.push((Cpu(cpu), outcome));
            }
            assert!(next < 10_000, "CPUs tell one another for ever");
        }
    }

    /// Every task is in exactly one place, and no CPU runs two.
    pub fn check(&self) {
        let mut seen = vec![0; self.blocked.len()];
        let mut busy = vec![0; CPUS as usize];
        for (task, runs) in self.queues.queues().iter().flat_map(Queue::tasks) {
            seen[task.index.0 as usize] += 1;
            busy[task.cpu.0 as usize] += u32::from(runs);
        }
        for task in self.blocked.iter().flatten() {
            seen[task.index.0 as usize] += 1;
        }
        assert!(seen.iter().all(|&times| times == 1), "{seen:?}");
        assert!(busy.iter().all(|&tasks| tasks <= 1), "{busy:?}");
    }
}
