//! `reschedule_idle()`: which CPU is told, in every layout; and what sleeping
//! does to a time slice, and migration to a pass.

use prorata_core::run_queue::{
    Comparison, Cpu, End, Goodness, Layout, Nice, Pass, Place, Queue, Ranking, Schedule,
    Sequential, Task, TaskIndex, Tickets, Turn,
};

use super::machine::{CPUS, Machine, Nature, TASKS, WITHOUT_MM};

fn layouts() -> [Layout; 4] {
    [
        Layout::GlobalList,
        Layout::PriorityLevels,
        Layout::MultiQueue(Comparison::Scan),
        Layout::MultiQueue(Comparison::Tournament),
    ]
}

/// Every CPU runs the task of its number; the others are blocked.
fn busy(layout: &Layout, change: impl FnOnce(&mut Vec<Nature>)) -> Machine<Goodness> {
    let mut natures = vec![(0, 1, 0, 0, 0); TASKS as usize];
    change(&mut natures);
    let mut machine = Machine::new(WITHOUT_MM, layout, &natures);
    for cpu in 0..CPUS {
        machine.wake(cpu);
        assert_eq!(machine.queues.take_told(), [Cpu(cpu)], "{layout:?}");
        let next = machine.decide(cpu, End::Runnable).next;
        assert_eq!(next, Some(TaskIndex(cpu)));
    }
    machine
}

/// Who is told when a task wakes that ran last on CPU `index % CPUS`.
fn told(machine: &mut Machine<Goodness>, index: u32) -> Vec<Cpu> {
    assert!(machine.wake(index));
    machine.queues.take_told()
}

#[test]
fn where_it_ran_last_if_idle_else_who_is_idle_longest() {
    for layout in &layouts() {
        let mut machine = busy(layout, |_| {});
        for cpu in [2, 3, 1] {
            machine.decide(cpu, End::Blocks);
        }
        assert_eq!(told(&mut machine, 7), [Cpu(3)], "{layout:?}");
        // CPU 3 was told and does not count any more.
        assert_eq!(told(&mut machine, 4), [Cpu(2)], "{layout:?}");
        assert_eq!(told(&mut machine, 8), [Cpu(1)], "{layout:?}");
        assert_eq!(told(&mut machine, 11), [], "{layout:?}");
    }
}

#[test]
fn where_locks_are_held_an_idle_cpu_is_told_that_may_run_it() {
    let layouts = layouts()
        .into_iter()
        .filter(|layout| matches!(layout, Layout::MultiQueue(_)));
    for layout in layouts {
        // The task that wakes ran last on CPU 0 and may run on CPU 2, too.
        let mut machine = busy(&layout, |natures| natures[4].4 = 0b101);
        for cpu in [3, 2, 1] {
            machine.decide(cpu, End::Blocks);
        }
        // Whoever is only tried to be locked is held by somebody.
        machine.grants = vec![false];
        assert_eq!(told(&mut machine, 4), [Cpu(2)], "{layout:?}");
    }
}

#[test]
fn else_who_runs_the_lowest_goodness_if_that_gains_more_than_one() {
    for layout in &layouts() {
        let mut machine = busy(layout, |_| {});
        machine.queues.tick(Cpu(2));
        // On CPU 2 it would gain a single point.
        assert_eq!(told(&mut machine, 6), [], "{layout:?}");
        machine.queues.tick(Cpu(2));
        assert_eq!(told(&mut machine, 10), [Cpu(2)], "{layout:?}");

        // Where it ran last a real-time task runs; of the others CPU 3 has the
        // least to lose.
        let mut machine = busy(layout, |natures| {
            natures[0].0 = 1;
            natures[4].2 = -20;
        });
        machine.queues.tick(Cpu(3));
        assert_eq!(told(&mut machine, 4), [Cpu(3)], "{layout:?}");
    }
}

/// A machine where nothing but the first task, alone on CPU 0, was to be
/// recalculated so often.
fn recalculated(layout: &Layout, times: u64, asleep: u32) -> Machine<Goodness> {
    let natures = vec![(0, 1, 0, 0, 0); TASKS as usize];
    let mut machine = Machine::new(WITHOUT_MM, layout, &natures);
    if asleep != 0 {
        machine.wake(asleep);
        machine.decide(asleep, End::Runnable);
        machine.decide(asleep, End::Blocks);
    }
    machine.wake(0);
    machine.decide(0, End::Runnable);
    let mut recalculations = 0;
    while recalculations < times {
        machine.queues.take_told();
        if machine.queues.tick(Cpu(0)) {
            let outcome = machine.decide(0, End::Runnable);
            recalculations += u64::from(outcome.recalculated);
        }
    }
    assert_eq!(machine.queues.shared().clock(Cpu(0)), times);
    machine
}

/// The ticks that are left to a task in a queue.
fn counter(machine: &Machine<Goodness>, index: u32) -> u32 {
    let mut tasks = machine.queues.queues().iter().flat_map(|q| q.tasks());
    let (task, _) = tasks.find(|(task, _)| task.index.0 == index).unwrap();
    task.counter.get()
}

#[test]
fn who_sleeps_through_recalculations_has_been_through_them_when_it_wakes() {
    for layout in &layouts() {
        let mut machine = recalculated(layout, 3, 1);
        machine.wake(1);
        // 6, and then half of it and 6, three times.
        assert_eq!(counter(&machine, 1), 11, "{layout:?}");
    }
}

#[test]
fn who_begins_joins_as_of_now() {
    for layout in &layouts() {
        let mut machine = recalculated(layout, 3, 0);
        machine.wake(1);
        assert_eq!(counter(&machine, 1), 6, "{layout:?}");
    }
}

/// How far a task's pass is ahead of the virtual time of a CPU's pool.
fn lead(queues: &Sequential<Pass>, index: u32, cpu: Cpu) -> i64 {
    let shared = queues.shared();
    let mut all = queues.queues().iter().flat_map(|queue| queue.tasks());
    let (task, _) = all.find(|(task, _)| task.index.0 == index).unwrap();
    -shared.ranking().rank(task) - shared.clock(cpu) as i64
}

#[test]
fn a_sleep_and_a_migration_keep_what_remains() {
    let layout = Layout::Pools(vec![0, 0, 1], Comparison::Scan);
    let ranking = Pass::new(1000).unwrap();
    let mut queues = Sequential::new(ranking, &layout, 3).unwrap();
    for index in 0..6 {
        let mut task = Task::new(TaskIndex(index), Cpu(0));
        task.tickets = Tickets::new(1 + index).unwrap();
        queues.wake(task).unwrap();
    }
    let turn = |end| Turn { end, used_ns: 700 };
    for round in 0..50u64 {
        for cpu in [0, 1].map(Cpu) {
            queues.schedule(cpu, turn(End::Runnable), round);
        }
    }
    // Another pool takes somebody: its lead over the virtual time there is
    // what it was over the one here.
    let before: Vec<_> = (0..6).map(|index| lead(&queues, index, Cpu(0))).collect();
    assert_eq!(queues.shared().clock(Cpu(2)), 0);
    queues.wake(Task::new(TaskIndex(6), Cpu(2))).unwrap();
    queues.schedule(Cpu(2), turn(End::Runnable), 50);
    let TaskIndex(moved) = queues
        .balance(Cpu(2))
        .expect("five sixths are in the other pool");
    let after = lead(&queues, moved, Cpu(2));
    let tickets = i64::from(1 + moved);
    let lost = (after - before[moved as usize]) * tickets;
    assert!(lost.abs() <= tickets, "{lost}");
    // Who blocks and wakes while the virtual time stands still is where it was.
    let mut outcome = queues.schedule(Cpu(0), turn(End::Runnable), 51);
    let index = outcome.next.take().unwrap().0;
    let lead_before = lead(&queues, index, Cpu(0));
    let blocks = Turn {
        end: End::Blocks,
        used_ns: 0,
    };
    let clock = queues.shared().clock(Cpu(0));
    let outcome = queues.schedule(Cpu(0), blocks, 52);
    let moved_on = queues.shared().clock(Cpu(0)) - clock;
    queues.wake(outcome.blocked.unwrap()).unwrap();
    // What was ahead of the virtual time then is ahead of it now.
    assert_eq!(
        lead(&queues, index, Cpu(0)),
        lead_before,
        "clock moved on by {moved_on}"
    );
}

/// Where queues offer better tasks than one's own and so many of their locks are
/// held, on so many CPUs: the attempts that a CPU makes, and whom it takes.
fn refused(
    comparison: Comparison,
    cpus: u32,
    has_own: bool,
    end: End,
    held: u32,
) -> (u32, Option<TaskIndex>) {
    let layout = Layout::MultiQueue(comparison);
    let mut queues = Sequential::new(Goodness::X86, &layout, cpus).unwrap();
    let task = |index: u32, nice: i8| {
        let mut task = Task::new(TaskIndex(index), Cpu(index % cpus));
        task.nice = Nice::new(nice).unwrap();
        task
    };
    let turn = |end| Turn { end, used_ns: 0 };
    for index in 0..cpus {
        queues.wake(task(index, -20)).unwrap();
        queues.schedule(Cpu(index), turn(End::Runnable), 0);
    }
    // Nobody gains by preemption: all wait where they ran.
    for index in cpus + 1..2 * cpus {
        queues.wake(task(index, -20)).unwrap();
    }
    if has_own {
        queues.wake(task(cpus, 19)).unwrap();
    }
    let mut decision = Schedule::new(Cpu(0), turn(end), 0);
    let mut attempts = 0;
    queues.run(&mut decision, |_| {
        attempts += 1;
        attempts > held
    });
    (attempts, decision.outcome().next)
}

#[test]
fn who_is_refused_a_lock_goes_on_by_scan_and_is_content_by_tournament() {
    let all = |comparison, has_own| refused(comparison, 8, has_own, End::Blocks, u32::MAX);
    let weak = Some(TaskIndex(8));
    assert_eq!(all(Comparison::Scan, true), (7, weak));
    assert_eq!(all(Comparison::Tournament, true), (1, weak));
    // Nobody idles while somebody waits: it waits for a lock in the end.
    let (attempts, next) = all(Comparison::Scan, false);
    assert_eq!((attempts, next), (7, Some(TaskIndex(9))));
    let (attempts, next) = all(Comparison::Tournament, false);
    assert_eq!(attempts, 2);
    assert!(next.is_some_and(|next| next > TaskIndex(8)), "{next:?}");
}

#[test]
fn who_yields_and_is_refused_a_lock_goes_on_to_the_next_queue() {
    for comparison in [Comparison::Scan, Comparison::Tournament] {
        let (attempts, next) = refused(comparison, 3, false, End::Yields, 1);
        assert_eq!(attempts, 2, "{comparison:?}");
        assert_eq!(next, Some(TaskIndex(5)), "{comparison:?}");
    }
    // Another one's turn is what who yields asked for.
    let content = refused(Comparison::Tournament, 3, true, End::Yields, 1);
    assert_eq!(content, (1, Some(TaskIndex(3))));
    let all = |comparison| refused(comparison, 8, false, End::Yields, u32::MAX);
    let same = Some(TaskIndex(0));
    assert_eq!(all(Comparison::Scan), (7, same));
    assert_eq!(all(Comparison::Tournament), (2, same));
}

/// The others are refused the best of all, too: each goes for one nearby.
#[test]
fn who_is_refused_the_best_tries_the_nearest_that_is_better() {
    let (attempts, next) = refused(Comparison::Tournament, 8, false, End::Blocks, 1);
    assert_eq!((attempts, next), (2, Some(TaskIndex(10))));
}

/// A task that ran last on CPU 0 of eight, the only one that does not idle, wakes
/// while so many locks are held: the attempts that are made, in whose queue it
/// stands then, and who is told.
fn woken(comparison: Comparison, held: u32) -> (u32, usize, Vec<Cpu>) {
    let layout = Layout::MultiQueue(comparison);
    let mut queues = Sequential::new(WITHOUT_MM, &layout, 8).unwrap();
    let task = |index| Task::new(TaskIndex(index), Cpu(0));
    queues.wake(task(0)).unwrap();
    let turn = Turn {
        end: End::Runnable,
        used_ns: 0,
    };
    queues.schedule(Cpu(0), turn, 0);
    queues.take_told();
    let mut attempts = 0;
    queues.run(&mut Place::woken(task(1)), |_| {
        attempts += 1;
        attempts > held
    });
    let stands = |queue: &Queue| queue.tasks().any(|(task, _)| task.index == TaskIndex(1));
    let queue = queues.queues().iter().position(stands).unwrap();
    (attempts, queue, queues.take_told())
}

#[test]
fn who_wakes_and_is_refused_twice_waits_where_it_ran_and_an_idle_cpu_is_told() {
    for comparison in [Comparison::Scan, Comparison::Tournament] {
        assert_eq!(woken(comparison, 0), (1, 1, vec![Cpu(1)]));
        assert_eq!(woken(comparison, 1), (2, 2, vec![Cpu(2)]));
        assert_eq!(woken(comparison, 2), (2, 0, vec![Cpu(1)]));
        assert_eq!(woken(comparison, u32::MAX), (2, 0, vec![Cpu(1)]));
    }
}
