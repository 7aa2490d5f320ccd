//! CPUs whose decisions come in between one another's steps, with locks held:
//! nobody is lost or runs twice, and nobody waits while a CPU idles.

use std::collections::VecDeque;

use proptest::prelude::*;
use prorata_core::run_queue::{
    Balance, Comparison, Cpu, Decision, End, Goodness, Held, Layout, LockIndex, Pass, Place, Queue,
    Ranking, RunQueues, Schedule, Step, Task, TaskIndex, Tick, Turn,
};

use super::machine::{CPUS, Nature, TASKS, WITHOUT_MM, natures, task};
use super::seeded;

/// What a CPU is asked to do next.
#[derive(Clone, Copy, Debug)]
pub enum Ask {
    Wake(u32),
    Decide(End),
    Tick,
    Balance,
}

#[derive(Debug)]
enum Made {
    Schedule(Schedule),
    Place(Place),
    Tick(Tick),
    Balance(Balance),
}

/// A CPU in the middle of something.
#[derive(Default)]
struct Processor {
    made: Option<Made>,
    /// The lock that it spins for.
    wants: Option<LockIndex>,
    granted: bool,
    told: bool,
    runs: Option<TaskIndex>,
    /// What it is to do before anything else.
    due: VecDeque<Place>,
}

/// Queues, of which only those are to be had whose lock the CPU holds.
struct Memory<'a> {
    queues: &'a mut [Queue],
    holders: &'a [Option<u32>],
    cpu: u32,
}

impl Held for Memory<'_> {
    fn queue(&mut self, LockIndex(lock): LockIndex) -> &mut Queue {
        assert_eq!(self.holders[lock as usize], Some(self.cpu), "lock {lock}");
        &mut self.queues[lock as usize]
    }
}

/// A machine of which each CPU takes a step when it is told to.
pub struct Interleaved<R> {
    pub shared: RunQueues<R>,
    pub queues: Vec<Queue>,
    /// By lock.
    holders: Vec<Option<u32>>,
    cpus: Vec<Processor>,
    /// By index, while they are blocked.
    blocked: Vec<Option<Task>>,
    now_ns: u64,
}

impl<R: Ranking> Interleaved<R> {
    pub fn new(ranking: R, layout: &Layout, natures: &[Nature]) -> Self {
        let (shared, queues) = RunQueues::new(ranking, layout, CPUS).unwrap();
        let tasks = natures.iter().zip(0..);
        Self {
            holders: vec![None; shared.locks() as usize],
            cpus: (0..CPUS).map(|_| Processor::default()).collect(),
            blocked: tasks.map(|(&nature, i)| Some(task(i, nature))).collect(),
            queues,
            shared,
            now_ns: 0,
        }
    }

    /// Begins what a CPU is asked for, if it has nothing else to do.
    pub fn ask(&mut self, cpu: u32, ask: Ask) {
        let state = &mut self.cpus[cpu as usize];
        if state.made.is_some() || state.told || !state.due.is_empty() {
            return;
        }
        let runs = state.runs;
        let made = match ask {
            Ask::Wake(index) => {
                let task = self.blocked[index as usize].take();
                task.map(|task| Made::Place(Place::woken(task)))
            }
            // An idle CPU waits to be told.
            Ask::Decide(_) if runs.is_none() => None,
            Ask::Decide(end) => Some(self.schedule(cpu, end)),
            Ask::Tick => Some(Made::Tick(Tick::new(Cpu(cpu)))),
            Ask::Balance => Some(Made::Balance(Balance::new(Cpu(cpu)))),
        };
        self.cpus[cpu as usize].made = made;
    }

    fn schedule(&mut self, cpu: u32, end: End) -> Made {
        self.now_ns += 1000;
        let turn = Turn { end, used_ns: 1000 };
        Made::Schedule(Schedule::new(Cpu(cpu), turn, self.now_ns))
    }

    /// A CPU takes a step, if there is one and no lock keeps it from that.
    pub fn advance(&mut self, cpu: u32) -> Option<Step> {
        let state = &mut self.cpus[cpu as usize];
        if state.made.is_none() {
            if let Some(place) = state.due.pop_front() {
                state.made = Some(Made::Place(place));
            } else if std::mem::take(&mut state.told) {
                let made = self.schedule(cpu, End::Runnable);
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

    fn step(&mut self, cpu: u32) -> Step {
        let state = &mut self.cpus[cpu as usize];
        let (queues, holders) = (&mut self.queues[..], &self.holders[..]);
        let held = &mut Memory {
            queues,
            holders,
            cpu,
        };
        let (shared, granted) = (&self.shared, state.granted);
        let step = match state.made.as_mut().unwrap() {
            Made::Schedule(made) => made.step(shared, held, granted),
            Made::Place(made) => made.step(shared, held, granted),
            Made::Tick(made) => made.step(shared, held, granted),
            Made::Balance(made) => made.step(shared, held, granted),
        };
        match step {
            Step::Lock(lock) => state.wants = Some(lock),
            Step::TryLock(LockIndex(lock)) => {
                let holder = &mut self.holders[lock as usize];
                assert_ne!(*holder, Some(cpu), "lock {lock} is tried twice");
                state.granted = holder.is_none();
                holder.get_or_insert(cpu);
            }
            Step::Unlock(LockIndex(lock)) => {
                let held = self.holders[lock as usize].take();
                assert_eq!(held, Some(cpu), "lock {lock}");
            }
            Step::Examined { .. } => {}
            Step::Interrupt(Cpu(other)) => self.cpus[other as usize].told = true,
            Step::Done => self.end(cpu),
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
                    state.due.push_back(Place::displaced(displaced));
                }
                if let Some(task) = outcome.blocked {
                    let index = task.index.0 as usize;
                    assert!(self.blocked[index].replace(task).is_none());
                }
            }
            Some(Made::Tick(made)) => state.told |= made.expired(),
            Some(Made::Balance(made)) => state.due.extend(made.moving().map(Place::moved)),
            _ => {}
        }
    }

    /// Lets everybody do what there is to do.
    pub fn settle(&mut self) {
        let mut rounds = 0;
        // All of them take a step, also those after one that did.
        while (0..CPUS).filter(|&cpu| self.advance(cpu).is_some()).count() > 0 {
            rounds += 1;
            assert!(rounds < 100_000, "it never ends");
        }
        let idle = |state: &Processor| state.made.is_none() && state.due.is_empty();
        assert!(self.cpus.iter().all(idle), "CPUs wait for one another");
    }

    /// Everybody is in one place, and runs where it may, on one CPU.
    fn check(&self) {
        let mut seen = vec![0; self.blocked.len()];
        let mut runs = vec![None; CPUS as usize];
        for (task, is_running) in self.queues.iter().flat_map(|queue| queue.tasks()) {
            seen[task.index.0 as usize] += 1;
            if is_running {
                assert!(task.allowed.contains(task.cpu), "{task:?}");
                let other = runs[task.cpu.0 as usize].replace(task.index);
                assert_eq!(other, None, "on {:?}", task.cpu);
            }
        }
        for task in self.blocked.iter().flatten() {
            seen[task.index.0 as usize] += 1;
        }
        assert!(seen.iter().all(|&times| times == 1), "{seen:?}");
        let known: Vec<_> = self.cpus.iter().map(|cpu| cpu.runs).collect();
        assert_eq!(known, runs);
    }

    /// No CPU idles while somebody waits in its pool who may run there.
    fn check_work_is_done(&self) {
        for queue in &self.queues {
            for (task, _) in queue.tasks().filter(|(_, runs)| !runs) {
                let pool = self.pool_of_queue(queue);
                for cpu in (0..CPUS)
                    .map(Cpu)
                    .filter(|cpu| self.shared.pool_of(*cpu) == pool)
                {
                    let idles = self.cpus[cpu.0 as usize].runs.is_none();
                    assert!(!idles, "{cpu:?} idles and {task:?} waits");
                }
            }
        }
    }

    fn pool_of_queue(&self, queue: &Queue) -> u32 {
        let place = self
            .queues
            .iter()
            .position(|other| std::ptr::eq(other, queue));
        let place = place.unwrap() as u32;
        match place < CPUS {
            true => self.shared.pool_of(Cpu(place)),
            false => place - CPUS,
        }
    }
}

fn layouts() -> [Layout; 7] {
    [
        Layout::GlobalList,
        Layout::PriorityLevels,
        Layout::MultiQueue(Comparison::Scan),
        Layout::MultiQueue(Comparison::Tournament),
        Layout::Pools(vec![0, 1, 1, 0], Comparison::Scan),
        Layout::Pools(vec![0, 1, 1, 1], Comparison::Tournament),
        Layout::Pools(vec![0, 1, 2, 0], Comparison::Tournament),
    ]
}

/// So many steps of one CPU, before which it is asked for something.
type Move = (u32, Ask, u32);

/// Who yields is not offered to idle CPUs, so where nobody is to wait beside one
/// nobody yields.
fn moves(yields: bool) -> impl Strategy<Value = Vec<Move>> {
    let ask = prop_oneof![
        5 => (0..TASKS).prop_map(Ask::Wake),
        2 => Just(Ask::Decide(End::Runnable)),
        2 => Just(Ask::Decide(if yields { End::Yields } else { End::Runnable })),
        4 => Just(Ask::Decide(End::Blocks)),
        2 => Just(Ask::Tick),
        1 => Just(Ask::Balance),
    ];
    prop::collection::vec((0..CPUS, ask, 1..9u32), 1..160)
}

fn run<R: Ranking>(mut machine: Interleaved<R>, moves: &[Move], everywhere: bool) {
    for (number, &(cpu, ask, steps)) in moves.iter().enumerate() {
        machine.ask(cpu, ask);
        for _ in 0..steps {
            machine.advance(cpu);
        }
        if number % 16 == 15 {
            machine.settle();
            machine.check();
            if everywhere {
                machine.check_work_is_done();
            }
        }
    }
    machine.settle();
    machine.check();
    if everywhere {
        machine.check_work_is_done();
    }
}

/// While a CPU reaches for a task of another queue, that queue is recalculated,
/// its own not yet: the task goes through that once.
#[test]
fn who_is_taken_from_a_recalculated_queue_is_recalculated_once() {
    let mut natures = vec![(0, 1, 0, 0, 0); TASKS as usize];
    // It waits behind CPU 1, and CPU 2 may not run it.
    natures[5].4 = 0b11;
    let layout = Layout::MultiQueue(Comparison::Scan);
    let mut machine = Interleaved::new(WITHOUT_MM, &layout, &natures);
    for task in [0, 1, 2, 3, 5] {
        machine.ask(0, Ask::Wake(task));
        machine.settle();
    }
    for _ in 0..5 {
        machine.ask(2, Ask::Tick);
        machine.settle();
    }
    machine.ask(0, Ask::Decide(End::Blocks));
    // It has seen what the others offer, and is about to try a lock.
    while !matches!(machine.advance(0), Some(Step::Examined { words: 1.., .. })) {}
    machine.ask(2, Ask::Tick);
    while machine.advance(2).is_some() {}
    assert_eq!(machine.shared.clock(Cpu(2)), 1);
    machine.settle();
    assert_eq!(machine.cpus[0].runs, Some(TaskIndex(5)));
    machine.ask(0, Ask::Tick);
    machine.settle();
    // 6, half of it and 6, less this tick.
    assert_eq!(machine.queues[0].current(Cpu(0)).unwrap().counter.get(), 8);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        ..seeded(2001)
    })]

    #[test]
    fn no_cpu_idles_while_somebody_waits(
        natures in natures(false),
        moves in moves(false),
    ) {
        for layout in layouts() {
            run(Interleaved::new(Goodness::X86, &layout, &natures), &moves, true);
            let pass = Pass::new(1000).unwrap();
            run(Interleaved::new(pass, &layout, &natures), &moves, true);
        }
    }

    #[test]
    fn nobody_is_lost_or_runs_twice(natures in natures(true), moves in moves(true)) {
        for layout in layouts() {
            run(Interleaved::new(Goodness::X86, &layout, &natures), &moves, false);
        }
    }
}
