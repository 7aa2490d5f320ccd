//! CPUs whose decisions come in between one another's steps, with locks held: no
//! task is lost or runs twice, and none waits while a CPU idles.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::super::{
    Balance, Comparison, Cpu, Decision, DecisionStep, Goodness, Held, LockIndex, Placement, Queue,
    QueueLayout, RunQueues, Schedule, Task, TaskIndex, Tick, TurnEnd,
};
use super::machine::{CPUS, TASKS, equal_tasks, tasks};
use super::seeded;

/// What a CPU is asked to do next.
#[derive(Clone, Copy, Debug)]
enum Ask {
    Wake(u32),
    Decide(TurnEnd),
    Tick,
    Balance,
}

#[derive(Debug)]
enum Made {
    Schedule(Schedule),
    Placement(Placement),
    Tick(Tick),
    Balance(Balance),
}

/// A CPU and its decision in progress.
#[derive(Default)]
struct Processor {
    made: Option<Made>,
    /// The lock that the CPU spins for.
    wants: Option<LockIndex>,
    granted: bool,
    told: bool,
    runs: Option<TaskIndex>,
    /// Placements to make before anything else.
    due: VecDeque<Placement>,
}

/// Queues that refuse a CPU without their lock.
struct Memory<'a> {
    queues: &'a mut [Queue],
    holders: &'a [Option<u32>],
    blocked: &'a mut [Option<Task>],
    cpu: u32,
}

impl Held for Memory<'_> {
    fn queue(&mut self, LockIndex(lock): LockIndex) -> &mut Queue {
        assert_eq!(self.holders[lock as usize], Some(self.cpu), "lock {lock}");
        &mut self.queues[lock as usize]
    }

    fn take_blocked(&mut self, TaskIndex(task): TaskIndex) -> Option<Task> {
        self.blocked[task as usize].take()
    }
}

/// A machine whose CPUs take steps in a given order.
struct Interleaved {
    shared: RunQueues,
    queues: Vec<Queue>,
    /// By lock.
    holders: Vec<Option<u32>>,
    cpus: Vec<Processor>,
    /// By index, while they are blocked.
    blocked: Vec<Option<Task>>,
    /// By index: the task blocks or is about to, and has not been woken since.
    sleeps: Vec<bool>,
    now_ns: u64,
}

impl Interleaved {
    fn new(layout: &QueueLayout, tasks: &[Task]) -> Self {
        let (shared, queues) = RunQueues::new(Goodness::X86, layout, CPUS).unwrap();
        Self {
            holders: vec![None; shared.locks() as usize],
            cpus: (0..CPUS).map(|_| Processor::default()).collect(),
            blocked: tasks.iter().copied().map(Some).collect(),
            sleeps: vec![true; tasks.len()],
            queues,
            shared,
            now_ns: 0,
        }
    }

    /// Begins what a CPU is asked for, unless it has other work.
    fn ask(&mut self, cpu: u32, ask: Ask) {
        let state = &mut self.cpus[cpu as usize];
        if state.made.is_some() || state.told || !state.due.is_empty() {
            return;
        }
        let runs = state.runs;
        let made = match ask {
            Ask::Wake(index) => self.wake(TaskIndex(index)).map(Made::Placement),
            // An idle CPU waits to be told.
            Ask::Decide(_) if runs.is_none() => None,
            Ask::Decide(end) => Some(self.schedule(cpu, end)),
            Ask::Tick => Some(Made::Tick(Tick::new(Cpu(cpu)))),
            Ask::Balance => Some(Made::Balance(Balance::new(Cpu(cpu)))),
        };
        self.cpus[cpu as usize].made = made;
    }

    /// A task wakes that has blocked or is about to; once.
    fn wake(&mut self, index: TaskIndex) -> Option<Placement> {
        std::mem::take(&mut self.sleeps[index.0 as usize]).then_some(())?;
        let home = self.cpus.iter().position(|cpu| cpu.runs == Some(index));
        Some(self.place(index, home.map(|home| Cpu(home as u32))))
    }

    fn place(&mut self, index: TaskIndex, home: Option<Cpu>) -> Placement {
        match self.blocked[index.0 as usize].take() {
            Some(task) => Placement::woken(task),
            None => Placement::leaving(index, home.expect("a task blocks on a CPU")),
        }
    }

    fn schedule(&mut self, cpu: u32, end: TurnEnd) -> Made {
        self.now_ns += 1000;
        if let (TurnEnd::Blocks, Some(TaskIndex(task))) = (end, self.cpus[cpu as usize].runs) {
            self.sleeps[task as usize] = true;
        }
        Made::Schedule(Schedule::new(Cpu(cpu), end, self.now_ns))
    }

    /// A CPU takes a step, unless it has none or waits for a lock.
    fn advance(&mut self, cpu: u32) -> Option<DecisionStep> {
        let state = &mut self.cpus[cpu as usize];
        if state.made.is_none() {
            if let Some(place) = state.due.pop_front() {
                state.made = Some(Made::Placement(place));
            } else if std::mem::take(&mut state.told) {
                let made = self.schedule(cpu, TurnEnd::Runnable);
                self.cpus[cpu as usize].made = Some(made);
            } else {
                return None;
            }
        }
        let state = &mut self.cpus[cpu as usize];
        if let Some(LockIndex(lock)) = state.wants {
            let holder = &mut self.holders[lock as usize];
            assert_ne!(*holder, Some(cpu), "lock {lock} is taken twice");
            if holder.is_some() {
                return None;
            }
            *holder = Some(cpu);
            state.wants = None;
        }
        Some(self.step(cpu))
    }

    fn step(&mut self, cpu: u32) -> DecisionStep {
        let state = &mut self.cpus[cpu as usize];
        let (queues, holders) = (&mut self.queues[..], &self.holders[..]);
        let held = &mut Memory {
            queues,
            holders,
            blocked: &mut self.blocked,
            cpu,
        };
        let (shared, granted) = (&mut self.shared, state.granted);
        let step = match state.made.as_mut().unwrap() {
            Made::Schedule(made) => made.step(shared, held, granted),
            Made::Placement(made) => made.step(shared, held, granted),
            Made::Tick(made) => made.step(shared, held, granted),
            Made::Balance(made) => made.step(shared, held, granted),
        };
        match step {
            DecisionStep::Lock(lock) => state.wants = Some(lock),
            DecisionStep::TryLock(LockIndex(lock)) => {
                let holder = &mut self.holders[lock as usize];
                assert_ne!(*holder, Some(cpu), "lock {lock} is tried twice");
                state.granted = holder.is_none();
                holder.get_or_insert(cpu);
            }
            DecisionStep::Unlock(LockIndex(lock)) => {
                let held = self.holders[lock as usize].take();
                assert_eq!(held, Some(cpu), "lock {lock}");
            }
            DecisionStep::Examined { .. } => {}
            DecisionStep::Interrupt(Cpu(other)) => self.cpus[other as usize].told = true,
            DecisionStep::Done => self.end(cpu),
        }
        step
    }

    fn end(&mut self, cpu: u32) {
        assert!(!self.holders.contains(&Some(cpu)), "a lock is left held");
        let state = &mut self.cpus[cpu as usize];
        match state.made.take() {
            Some(Made::Schedule(made)) => {
                let outcome = made.outcome();
                state.runs = outcome.next;
                if let Some(displaced) = outcome.displaced {
                    state.due.push_back(Placement::displaced(displaced));
                }
                if let Some(task) = outcome.blocked {
                    let index = task.index.0 as usize;
                    assert!(self.blocked[index].replace(task).is_none());
                }
            }
            Some(Made::Placement(made)) => {
                if let Some((index, home)) = made.missed() {
                    let again = self.place(index, Some(home));
                    self.cpus[cpu as usize].due.push_front(again);
                }
            }
            Some(Made::Tick(made)) => state.told |= made.expired(),
            Some(Made::Balance(made)) => state.due.extend(made.moving().map(Placement::moved)),
            None => {}
        }
    }

    /// Lets all CPUs take steps until none has anything to do.
    fn settle(&mut self) {
        let mut rounds = 0;
        // Every CPU takes a step in each round.
        while (0..CPUS).filter(|&cpu| self.advance(cpu).is_some()).count() > 0 {
            rounds += 1;
            assert!(rounds < 100_000, "it never ends");
        }
        let idle = |state: &Processor| state.made.is_none() && state.due.is_empty();
        assert!(self.cpus.iter().all(idle), "CPUs wait for one another");
    }

    /// Every task is in one place, and runs on one CPU at most.
    fn check(&self) {
        let mut seen = vec![0; self.blocked.len()];
        let mut runs = vec![None; CPUS as usize];
        for (task, is_running) in self.queues.iter().flat_map(|queue| queue.tasks()) {
            seen[task.index.0 as usize] += 1;
            if is_running {
                let other = runs[task.cpu.0 as usize].replace(task.index);
                assert_eq!(other, None, "on {:?}", task.cpu);
            }
        }
        for task in self.blocked.iter().flatten() {
            seen[task.index.0 as usize] += 1;
        }
        assert!(seen.iter().all(|&times| times == 1), "{seen:?}");
        let blocked: Vec<bool> = self.blocked.iter().map(Option::is_some).collect();
        assert_eq!(blocked, self.sleeps, "a wake is lost, or a sleep");
        let known: Vec<_> = self.cpus.iter().map(|cpu| cpu.runs).collect();
        assert_eq!(known, runs);
    }

    /// No CPU idles while a task waits in its pool.
    fn check_work_is_done(&self) {
        for (queue, first) in self.queues.iter().zip(0..) {
            if !queue.tasks().any(|(_, runs)| !runs) {
                continue;
            }
            let pool = self.shared.pool_of(Cpu(first));
            for cpu in (0..CPUS).map(Cpu) {
                let idles = self.cpus[cpu.0 as usize].runs.is_none();
                assert!(self.shared.pool_of(cpu) != pool || !idles, "{cpu:?} idles");
            }
        }
    }
}

fn layouts() -> [QueueLayout; 7] {
    [
        QueueLayout::GlobalList,
        QueueLayout::PriorityLevels,
        QueueLayout::MultiQueue(Comparison::Scan),
        QueueLayout::MultiQueue(Comparison::Tournament),
        QueueLayout::Pools(vec![0, 1, 1, 0], Comparison::Scan),
        QueueLayout::Pools(vec![0, 1, 1, 1], Comparison::Tournament),
        QueueLayout::Pools(vec![0, 1, 2, 0], Comparison::Tournament),
    ]
}

/// So many steps of one CPU, before which it is asked for something.
type Move = (u32, Ask, u32);

/// A yielding task is not offered to idle CPUs and may wait beside one.
fn moves(yields: bool) -> impl Strategy<Value = Vec<Move>> {
    let ask = prop_oneof![
        5 => (0..TASKS).prop_map(Ask::Wake),
        2 => Just(Ask::Decide(TurnEnd::Runnable)),
        2 => Just(Ask::Decide(if yields { TurnEnd::Yields } else { TurnEnd::Runnable })),
        4 => Just(Ask::Decide(TurnEnd::Blocks)),
        2 => Just(Ask::Tick),
        1 => Just(Ask::Balance),
    ];
    prop::collection::vec((0..CPUS, ask, 1..9u32), 1..160)
}

/// Runs and checks a history; `works` where no CPU may idle beside a waiting task.
fn run(mut machine: Interleaved, moves: &[Move], works: bool) {
    let check = |machine: &mut Interleaved| {
        machine.settle();
        machine.check();
        if works {
            machine.check_work_is_done();
        }
    };
    for (number, &(cpu, ask, steps)) in moves.iter().enumerate() {
        machine.ask(cpu, ask);
        for _ in 0..steps {
            machine.advance(cpu);
        }
        if number % 16 == 15 {
            check(&mut machine);
        }
    }
    check(&mut machine);
}

/// A CPU reaches for a task of another queue. That queue is recalculated, its own
/// not yet: the task goes through the recalculation once.
#[test]
fn a_task_taken_from_a_recalculated_queue_is_recalculated_once() {
    let layout = QueueLayout::MultiQueue(Comparison::Scan);
    let mut machine = Interleaved::new(&layout, &equal_tasks());
    // A task on each CPU, and one more on CPU 1.
    for task in [0, 1, 2, 3, 5] {
        machine.ask(0, Ask::Wake(task));
        machine.settle();
    }
    machine.ask(0, Ask::Decide(TurnEnd::Blocks));
    // It has seen what the others offer, and is about to try a lock.
    while !matches!(machine.advance(0), Some(DecisionStep::TryLock(_))) {}
    assert_eq!(machine.holders[..2], [Some(0), Some(0)]);
    machine.shared.pool_mut(Cpu(0)).clock += 1;
    machine.settle();
    assert_eq!(machine.cpus[0].runs, Some(TaskIndex(5)));
    let mut tasks = machine.queues[0].tasks();
    let (task, _) = tasks.find(|(_, runs)| *runs).unwrap();
    // 6, and half of that.
    assert_eq!(task.counter, 9);
}

/// A task is about to block, and wakes. If the decision that wakes it has the lock first, the
/// task goes on, at once or later. Otherwise the task has left and comes back.
#[test]
fn a_task_that_wakes_before_it_has_blocked_stays() {
    for layout in layouts() {
        for stays in [true, false] {
            let mut machine = Interleaved::new(&layout, &equal_tasks());
            machine.ask(0, Ask::Wake(1));
            machine.settle();
            assert_eq!(machine.cpus[1].runs, Some(TaskIndex(1)), "{layout:?}");
            machine.ask(1, Ask::Decide(TurnEnd::Blocks));
            // It wants the lock, and has not got it.
            assert!(matches!(machine.advance(1), Some(DecisionStep::Lock(_))));
            if !stays {
                assert!(machine.advance(1).is_some(), "it has the lock");
            }
            machine.ask(2, Ask::Wake(1));
            // The same task is woken once.
            machine.ask(3, Ask::Wake(1));
            assert!(machine.cpus[3].made.is_none());
            let waking = |machine: &Interleaved| machine.cpus[2].made.is_some();
            let mut locks = 0;
            while waking(&machine) {
                match machine.advance(2) {
                    Some(DecisionStep::Lock(_)) => locks += 1,
                    Some(_) => {}
                    None => assert!(machine.advance(1).is_some()),
                }
            }
            assert!(locks > 0);
            machine.settle();
            machine.check();
            machine.check_work_is_done();
            assert!(machine.blocked[1].is_none(), "{layout:?}: no wake is lost");
            if stays {
                assert_eq!(machine.cpus[1].runs, Some(TaskIndex(1)), "{layout:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        ..seeded(2001)
    })]

    #[test]
    fn no_cpu_idles_while_a_task_waits(tasks in tasks(), moves in moves(false)) {
        for layout in layouts() {
            run(Interleaved::new(&layout, &tasks), &moves, true);
        }
    }

    #[test]
    fn no_task_is_lost_or_runs_twice(tasks in tasks(), moves in moves(true)) {
        for layout in layouts() {
            run(Interleaved::new(&layout, &tasks), &moves, false);
        }
    }
}
