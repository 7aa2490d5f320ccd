//! Run queues behind real locks, with real threads: nobody runs twice at a
//! time and nobody is lost, in every layout, by either ranking.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{scope, yield_now};

use prorata_core::run_queue::{
    Class, Comparison, Counter, Cpu, Goodness, Layout, Nice, Pass, Ranking, Task, TaskIndex,
    Tickets,
};
use prorata_load::run_queues::{Audit, Counts, Lock, Machine, Metered, Plain, Tokens, Worker};

const CPUS: u32 = 4;
const RINGS: u32 = 9;
const THREADS: u32 = 3;
const TURNS: u32 = 20_000;
const QUANTUM_NS: u64 = 20_000_000;

/// Tasks of all kinds: some of real time, some of other nice values and
/// tickets.
fn task(index: TaskIndex) -> Task {
    let mut task = Task::new(index, Cpu(index.0 % CPUS));
    task.nice = Nice::new((index.0 % 7) as i8 * 3).unwrap();
    task.counter = Counter::new(1).unwrap();
    task.tickets = Tickets::new(1 + index.0 % 5).unwrap();
    if index.0 / THREADS == 4 {
        task.class = Class::RoundRobin;
        task.rt_priority = 7;
    }
    task
}

fn layouts() -> Vec<Layout> {
    let pools = vec![0, 0, 1, 1];
    vec![
        Layout::GlobalList,
        Layout::PriorityLevels,
        Layout::MultiQueue(Comparison::Scan),
        Layout::MultiQueue(Comparison::Tournament),
        Layout::Pools(pools.clone(), Comparison::Scan),
        Layout::Pools(pools, Comparison::Tournament),
    ]
}

/// Only tasks that use up time slices.
fn ordinary(index: TaskIndex) -> Task {
    let mut task = task(index);
    task.class = Class::Other;
    task
}

fn run<R: Ranking + Sync, L: Lock>(
    ranking: R,
    layout: &Layout,
    task: fn(TaskIndex) -> Task,
) -> Counts {
    let machine = Machine::<R, L>::new(ranking, layout, CPUS).unwrap();
    run_on(&machine, task)
}

/// All CPUs at work until so many turns are over.
fn run_on<R: Ranking + Sync, L: Lock>(
    machine: &Machine<R, L>,
    task: fn(TaskIndex) -> Task,
) -> Counts {
    run_beside(machine, task, |_, _, _| ())
}

/// The same, and before each turn of a CPU something else: its number is given.
fn run_beside<R: Ranking + Sync, L: Lock>(
    machine: &Machine<R, L>,
    task: fn(TaskIndex) -> Task,
    beside: impl Fn(&Tokens, Cpu, u32) + Sync,
) -> Counts {
    let tokens = Tokens::new(RINGS, THREADS, task);
    tokens.start(&mut machine.processor(Cpu(0)));
    let turns = AtomicU32::new(0);
    let work = |cpu| {
        // Half a tick a turn, so that there are many recalculations.
        let mut now_ns = 0;
        let clock = move || {
            now_ns += prorata_load::run_queues::TICK_NS / 4;
            now_ns
        };
        let mut worker = Worker::new(machine, &tokens, cpu, clock);
        while turns.load(Ordering::Relaxed) < TURNS {
            beside(&tokens, cpu, turns.load(Ordering::Relaxed));
            if worker.turn() {
                turns.fetch_add(1, Ordering::Relaxed);
            } else {
                yield_now();
            }
        }
        worker.counts()
    };
    let counts = scope(|scope| {
        let work = &work;
        let workers: Vec<_> = (0..CPUS)
            .map(|cpu| scope.spawn(move || work(Cpu(cpu))))
            .collect();
        let mut sum = Counts::default();
        for worker in workers {
            sum += worker.join().unwrap();
        }
        sum
    });
    let audit = tokens.audit(machine);
    let asleep = RINGS * (THREADS - 1);
    let queued = RINGS;
    assert_eq!(audit, Audit { queued, asleep });
    counts
}

#[test]
fn nobody_is_lost_by_goodness() {
    for layout in layouts() {
        let counts = run::<_, Plain>(Goodness::X86, &layout, task);
        assert!(counts.schedules >= u64::from(TURNS), "{layout:?}");
    }
}

/// Who of the threads is given time here is not known: where one has all of it,
/// its CPU never comes to the end of what can run as long as a real-time task
/// can.
#[test]
fn time_slices_are_recalculated_where_nobody_is_of_real_time() {
    for layout in layouts() {
        let counts = run::<_, Plain>(Goodness::X86, &layout, ordinary);
        assert!(counts.recalculations > 0, "{layout:?}");
    }
}

#[test]
fn nobody_is_lost_by_pass() {
    for layout in layouts() {
        let pass = Pass::new(QUANTUM_NS).unwrap();
        let counts = run::<_, Metered>(pass, &layout, task);
        assert!(counts.schedules >= u64::from(TURNS), "{layout:?}");
    }
}

/// One task of each ring is worth more than a CPU, so tickets change with every
/// token that is passed.
fn heavy(index: TaskIndex) -> Task {
    let mut task = ordinary(index);
    if index.0.is_multiple_of(THREADS) {
        task.tickets = Tickets::new(1000).unwrap();
    }
    task
}

#[test]
fn weights_are_feasible_whoever_came_first() {
    for layout in layouts() {
        let pass = Pass::weighted(QUANTUM_NS, RINGS * THREADS).unwrap();
        let machine = Machine::<_, Plain>::new(pass, &layout, CPUS).unwrap();
        run_on(&machine, heavy);
        check_tickets(&machine);
    }
}

/// All who are in queues go by what is feasible of the weights of just these.
fn check_tickets(machine: &Machine<Pass, Plain>) {
    let shared = machine.shared();
    let fresh = Pass::weighted(QUANTUM_NS, RINGS * THREADS).unwrap();
    let mut weights = shared.weights();
    let mut in_force = Vec::new();
    for (lock, cpu) in machine.locks().zip((0..CPUS).map(Cpu)) {
        for (task, _) in lock.lock().iter().flat_map(|queue| queue.tasks()) {
            let weights = &mut weights[shared.pool_of(cpu) as usize];
            let kept = fresh.feasible().unwrap();
            weights.set(task.index, Some(task.tickets), kept).unwrap();
            in_force.push((task.index, shared.ranking().in_force(task)));
        }
    }
    assert_eq!(in_force.len() as u32, RINGS);
    for (task, tickets) in in_force {
        assert_eq!(Some(tickets), fresh.feasible().unwrap().get(task));
    }
}

/// Each CPU gives its part of the tasks other tickets all the time, wherever
/// they are: what was given last is what they go by.
#[test]
fn tickets_that_change_are_those_in_force() {
    for layout in layouts() {
        let pass = Pass::weighted(QUANTUM_NS, RINGS * THREADS).unwrap();
        let machine = Machine::<_, Plain>::new(pass, &layout, CPUS).unwrap();
        let tasks = 0..RINGS * THREADS;
        let given: Vec<_> = tasks.clone().map(|_| AtomicU32::new(0)).collect();
        run_beside(&machine, heavy, |tokens, Cpu(cpu), turn| {
            let task = turn / 8 % tasks.end;
            if task % CPUS != cpu || turn % 8 != 0 {
                return;
            }
            let weight = 1 + turn % 1000;
            let tickets = Tickets::new(weight).unwrap();
            if tokens.set_tickets(TaskIndex(task), tickets, &mut machine.processor(Cpu(cpu))) {
                given[task as usize].store(weight, Ordering::Relaxed);
            }
        });
        check_tickets(&machine);
        let queues: Vec<_> = machine.locks().map(|lock| lock.lock()).collect();
        let queued = queues.iter().flat_map(|queue| queue.iter());
        for (task, _) in queued.flat_map(|queue| queue.tasks()) {
            let given = given[task.index.0 as usize].load(Ordering::Relaxed);
            let tickets = match given {
                0 => heavy(task.index).tickets,
                given => Tickets::new(given).unwrap(),
            };
            assert_eq!(task.tickets, tickets, "{layout:?}");
        }
        let changed = given
            .iter()
            .filter(|given| given.load(Ordering::Relaxed) > 0);
        assert!(changed.count() > tasks.len() / 2, "{layout:?}");
    }
}
