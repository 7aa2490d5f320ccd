//! All interleavings, up to a number of preemptions, of a few decisions on a
//! few CPUs: what locks protect is right whoever comes first (loom).
//!
//! Another CPU may come in between any two steps of a decision, so that what
//! was published without a lock is out of date by the time it is used. Steps
//! themselves are not taken apart: what is within one is done under a lock, or
//! is a single look at what is published.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use loom::sync::atomic::{AtomicUsize, Ordering as LoomOrdering};
use loom::sync::{Mutex, MutexGuard};
use prorata_core::run_queue::{
    Class, Comparison, Counter, Cpu, Goodness, Layout, Nice, Pass, Queue, Ranking, TICKET_PARTS,
    Task, TaskIndex, Tickets,
};
use prorata_load::run_queues::{Counts, Lock, Machine, TICK_NS, Tokens, Worker};

/// A lock that the model checker knows.
struct Modelled {
    mutex: Mutex<Option<Queue>>,
    /// Attempts in vain, one after another.
    failures: AtomicU64,
}

/// Whoever has failed so often in a row lets others go first: a CPU that has
/// nothing to do tries again and again.
const MOST_FAILURES: u64 = 3;

loom::lazy_static! {
    /// What every step writes, so that any two may be exchanged.
    static ref STEPS: AtomicUsize = AtomicUsize::new(0);
}

impl Lock for Modelled {
    type Guard<'a> = MutexGuard<'a, Option<Queue>>;

    fn new(queue: Option<Queue>) -> Self {
        Self {
            mutex: Mutex::new(queue),
            failures: AtomicU64::new(0),
        }
    }

    fn lock(&self) -> Self::Guard<'_> {
        self.mutex.lock().unwrap()
    }

    fn try_lock(&self) -> Option<Self::Guard<'_>> {
        let guard = self.mutex.try_lock().ok();
        if guard.is_some() {
            self.failures.store(0, Ordering::Relaxed);
        } else if self.failures.fetch_add(1, Ordering::Relaxed) >= MOST_FAILURES {
            loom::thread::yield_now();
        }
        guard
    }

    fn between_steps() {
        STEPS.fetch_add(1, LoomOrdering::Relaxed);
    }
}

/// What is tried.
struct Model<R> {
    ranking: fn() -> R,
    layout: Layout,
    cpus: u32,
    rings: u32,
    turns: u32,
    preemptions: usize,
    task: fn(TaskIndex) -> Task,
    /// Who is given a single ticket while turns go on.
    adjusted: Option<TaskIndex>,
    /// What is looked at when all turns are over; whether it is what is to be
    /// seen now and then.
    inspect: fn(&Machine<R, Modelled>) -> bool,
}

/// What was seen in all executions together.
#[derive(Default)]
struct Seen {
    executions: AtomicU64,
    schedules: AtomicU64,
    skipped: AtomicU64,
    recalculations: AtomicU64,
    moves: AtomicU64,
    adjusted: AtomicU64,
    inspected: AtomicU64,
}

impl Seen {
    fn add(&self, counts: Counts) {
        self.schedules
            .fetch_add(counts.schedules, Ordering::Relaxed);
        self.skipped.fetch_add(counts.skipped, Ordering::Relaxed);
        self.recalculations
            .fetch_add(counts.recalculations, Ordering::Relaxed);
        self.moves.fetch_add(counts.moves, Ordering::Relaxed);
    }
}

const THREADS: u32 = 2;

impl<R: Ranking + Send + Sync + 'static> Model<R> {
    /// Explores it all. loom itself finds deadlocks.
    fn check(self) -> Arc<Seen> {
        let seen = Arc::new(Seen::default());
        let mut explorer = loom::model::Builder::new();
        explorer.preemption_bound = Some(self.preemptions);
        explorer.max_branches = 20_000;
        let all = Arc::clone(&seen);
        explorer.check(move || self.execute(&all));
        println!(
            "{} executions, {} schedules, {} skipped, {} recalculations, {} moves, \
             {} adjusted, {} as inspected",
            seen.executions.load(Ordering::Relaxed),
            seen.schedules.load(Ordering::Relaxed),
            seen.skipped.load(Ordering::Relaxed),
            seen.recalculations.load(Ordering::Relaxed),
            seen.moves.load(Ordering::Relaxed),
            seen.adjusted.load(Ordering::Relaxed),
            seen.inspected.load(Ordering::Relaxed),
        );
        seen
    }

    fn execute(&self, seen: &Arc<Seen>) {
        seen.executions.fetch_add(1, Ordering::Relaxed);
        let machine = Machine::new((self.ranking)(), &self.layout, self.cpus).unwrap();
        let machine: Arc<Machine<R, Modelled>> = Arc::new(machine);
        let tokens = Arc::new(Tokens::new(self.rings, THREADS, self.task));
        tokens.start(&mut machine.processor(Cpu(0)));
        let workers: Vec<_> = (0..self.cpus)
            .map(|cpu| {
                let (machine, tokens) = (Arc::clone(&machine), Arc::clone(&tokens));
                let (turns, seen) = (self.turns, Arc::clone(seen));
                loom::thread::spawn(move || {
                    let now_ns = Cell::new(0);
                    let clock = || {
                        now_ns.set(now_ns.get() + TICK_NS / 4);
                        now_ns.get()
                    };
                    let mut worker = Worker::new(&machine, &tokens, Cpu(cpu), clock);
                    for _ in 0..turns {
                        worker.turn();
                    }
                    seen.add(worker.counts());
                })
            })
            .collect();
        if let Some(task) = self.adjusted {
            let mut processor = machine.processor(Cpu(0));
            let done = tokens.set_tickets(task, Tickets::ONE, &mut processor);
            seen.adjusted.fetch_add(u64::from(done), Ordering::Relaxed);
        }
        for worker in workers {
            worker.join().unwrap();
        }
        tokens.audit(&machine);
        // Nobody who waits is left to a CPU that idles and was not told.
        assert_eq!(tokens.forgotten(&machine, self.cpus), []);
        let as_inspected = (self.inspect)(&machine);
        seen.inspected
            .fetch_add(u64::from(as_inspected), Ordering::Relaxed);
    }
}

/// Ordinary tasks whose time slices end with the first tick.
fn ordinary(index: TaskIndex) -> Task {
    let mut task = Task::new(index, Cpu(0));
    task.nice = Nice::new(19).unwrap();
    task.counter = Counter::new(1).unwrap();
    task
}

/// The same, but those of the first ring are of real time.
fn with_real_time(index: TaskIndex) -> Task {
    let mut task = ordinary(index);
    if index.0 < THREADS {
        task.class = Class::RoundRobin;
        task.rt_priority = 1;
    }
    task
}

fn goodness(layout: Layout, task: fn(TaskIndex) -> Task) -> Model<Goodness> {
    Model {
        ranking: || Goodness::X86,
        layout,
        cpus: 2,
        rings: 3,
        turns: 3,
        preemptions: 2,
        task,
        adjusted: None,
        inspect: |_| false,
    }
}

fn pass(new: fn() -> Pass, layout: Layout) -> Model<Pass> {
    Model {
        ranking: new,
        layout,
        cpus: 2,
        rings: 3,
        turns: 3,
        preemptions: 2,
        task: ordinary,
        adjusted: None,
        inspect: |_| false,
    }
}

#[test]
fn two_cpus_of_multi_queue() {
    let layout = Layout::MultiQueue(Comparison::Scan);
    let seen = goodness(layout, ordinary).check();
    // What was offered was gone, or its lock was held, in some of them.
    assert!(seen.skipped.load(Ordering::Relaxed) > 0);
    assert!(seen.recalculations.load(Ordering::Relaxed) > 0);
}

#[test]
fn two_cpus_of_multi_queue_with_a_tournament() {
    let layout = Layout::MultiQueue(Comparison::Tournament);
    let seen = goodness(layout, ordinary).check();
    assert!(seen.skipped.load(Ordering::Relaxed) > 0);
}

#[test]
fn two_cpus_of_multi_queue_with_real_time() {
    let layout = Layout::MultiQueue(Comparison::Scan);
    goodness(layout, with_real_time).check();
}

#[test]
fn passes_on_two_cpus_of_multi_queue() {
    let layout = Layout::MultiQueue(Comparison::Scan);
    let seen = pass(|| Pass::new(TICK_NS).unwrap(), layout).check();
    assert!(seen.skipped.load(Ordering::Relaxed) > 0);
}

/// The first task of each ring is worth more than a CPU beside the others.
fn heavy(index: TaskIndex) -> Task {
    let mut task = ordinary(index);
    if index.0.is_multiple_of(THREADS) {
        task.tickets = Tickets::new(100).unwrap();
    }
    task
}

/// All who are in queues go by what is feasible of the weights of just these.
/// Whether somebody goes by less than its tickets.
fn check_tickets(machine: &Machine<Pass, Modelled>) -> bool {
    let shared = machine.shared();
    let afresh = weighted();
    let mut weights = shared.weights();
    let mut in_force = Vec::new();
    for (lock, cpu) in machine.locks().zip((0..shared.cpus()).map(Cpu)) {
        for (task, _) in lock.lock().iter().flat_map(|queue| queue.tasks()) {
            let weights = &mut weights[shared.pool_of(cpu) as usize];
            let kept = afresh.feasible().unwrap();
            weights.set(task.index, Some(task.tickets), kept).unwrap();
            in_force.push((task.index, task.tickets, shared.ranking().in_force(task)));
        }
    }
    let mut some_are_cut = false;
    for (task, tickets, in_force) in in_force {
        assert_eq!(Some(in_force), afresh.feasible().unwrap().get(task));
        some_are_cut |= in_force.parts() < tickets.get() * TICKET_PARTS;
    }
    some_are_cut
}

fn weighted() -> Pass {
    Pass::weighted(TICK_NS, 3 * THREADS).unwrap()
}

#[test]
fn weights_on_two_cpus_of_multi_queue() {
    let model = Model {
        task: heavy,
        inspect: check_tickets,
        ..pass(weighted, Layout::MultiQueue(Comparison::Scan))
    };
    let seen = model.check();
    assert!(seen.skipped.load(Ordering::Relaxed) > 0);
    assert!(seen.inspected.load(Ordering::Relaxed) > 0);
}

#[test]
fn weights_on_three_cpus_in_two_pools() {
    let model = Model {
        task: heavy,
        inspect: check_tickets,
        cpus: 3,
        turns: 2,
        preemptions: 1,
        ..pass(weighted, Layout::Pools(vec![0, 1, 0], Comparison::Scan))
    };
    let seen = model.check();
    assert!(seen.moves.load(Ordering::Relaxed) > 0);
    // Nobody is worth more than the only CPU of a pool.
    assert!(seen.inspected.load(Ordering::Relaxed) > 0);
}

/// One that was worth more than a CPU is given a single ticket while it runs,
/// waits, blocks, sleeps or wakes.
#[test]
fn weights_that_change_on_two_cpus_of_multi_queue() {
    let model = Model {
        task: heavy,
        adjusted: Some(TaskIndex(0)),
        inspect: check_tickets,
        ..pass(weighted, Layout::MultiQueue(Comparison::Scan))
    };
    let seen = model.check();
    assert!(seen.adjusted.load(Ordering::Relaxed) > 0);
}

#[test]
fn three_cpus_of_multi_queue() {
    let model = Model {
        cpus: 3,
        turns: 2,
        preemptions: 1,
        ..goodness(Layout::MultiQueue(Comparison::Scan), ordinary)
    };
    model.check();
}

#[test]
fn three_cpus_in_two_pools() {
    let model = Model {
        cpus: 3,
        turns: 2,
        preemptions: 1,
        ..goodness(
            Layout::Pools(vec![0, 1, 0], Comparison::Scan),
            with_real_time,
        )
    };
    let seen = model.check();
    assert!(seen.moves.load(Ordering::Relaxed) > 0);
}

#[test]
fn two_cpus_in_two_pools() {
    let model = goodness(Layout::Pools(vec![0, 1], Comparison::Scan), ordinary);
    let seen = model.check();
    assert!(seen.moves.load(Ordering::Relaxed) > 0);
}

#[test]
fn three_cpus_in_three_pools() {
    let model = Model {
        cpus: 3,
        turns: 2,
        preemptions: 2,
        ..goodness(Layout::Pools(vec![0, 1, 2], Comparison::Scan), ordinary)
    };
    let seen = model.check();
    assert!(seen.moves.load(Ordering::Relaxed) > 0);
}

/// What a pool of three offers, and who is available there, are tournaments of two
/// rounds.
#[test]
fn four_cpus_in_two_pools_by_tournament() {
    let model = Model {
        cpus: 4,
        turns: 2,
        preemptions: 1,
        ..goodness(
            Layout::Pools(vec![0, 1, 0, 0], Comparison::Tournament),
            ordinary,
        )
    };
    let seen = model.check();
    assert!(seen.moves.load(Ordering::Relaxed) > 0);
    assert!(seen.skipped.load(Ordering::Relaxed) > 0);
}
