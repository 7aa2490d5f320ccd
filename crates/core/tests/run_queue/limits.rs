//! What a caller may hand in, at each limit and one past it.

use prorata_core::run_queue::{
    Counter, Cpu, CpuSet, Goodness, InForce, Layout, LimitError, MAX_COUNTER, MAX_CPUS,
    MAX_QUANTUM_NS, MAX_TICKETS, MAX_WEIGHTED_TASKS, MIN_QUANTUM_NS, Nice, Pass, Ranking,
    Sequential, TICKET_PARTS, Task, TaskIndex, Tickets, Weights,
};

#[test]
fn nice_values() {
    for nice in [-20, 19] {
        assert_eq!(Nice::new(nice).map(Nice::get), Ok(nice));
    }
    for nice in [-21, 20, i8::MIN, i8::MAX] {
        assert_eq!(Nice::new(nice), Err(LimitError::Nice(nice)));
    }
}

/// The longest is what the most important task is given again and again.
#[test]
fn time_slices() {
    assert_eq!(Counter::new(0), Ok(Counter::ZERO));
    let longest = Counter::new(MAX_COUNTER).unwrap();
    let mut task = Task::new(TaskIndex(0), Cpu(0));
    (task.nice, task.counter) = (Nice::new(-20).unwrap(), longest);
    Goodness::X86.recalculate(&mut task, 1);
    assert_eq!(task.counter, longest);
    let past = MAX_COUNTER + 1;
    assert_eq!(Counter::new(past), Err(LimitError::Counter(past)));
}

#[test]
fn tickets() {
    for tickets in [1, MAX_TICKETS] {
        assert_eq!(Tickets::new(tickets).map(Tickets::get), Ok(tickets));
    }
    for tickets in [0, MAX_TICKETS + 1, u32::MAX] {
        assert_eq!(Tickets::new(tickets), Err(LimitError::Tickets(tickets)));
    }
}

#[test]
fn quanta() {
    for quantum_ns in [MIN_QUANTUM_NS, MAX_QUANTUM_NS] {
        assert!(Pass::new(quantum_ns).is_ok());
    }
    for quantum_ns in [0, MIN_QUANTUM_NS - 1, MAX_QUANTUM_NS + 1] {
        let refused = LimitError::Quantum(quantum_ns);
        assert_eq!(Pass::new(quantum_ns).err(), Some(refused));
        assert_eq!(Pass::weighted(quantum_ns, 1).err(), Some(refused));
    }
}

#[test]
fn weights() {
    assert!(Weights::new(1).is_ok() && Weights::new(MAX_CPUS).is_ok());
    for cpus in [0, MAX_CPUS + 1] {
        assert_eq!(Weights::new(cpus).err(), Some(LimitError::Cpus(cpus)));
    }
    let feasible = |tasks| Pass::weighted(MIN_QUANTUM_NS, tasks);
    let past = MAX_WEIGHTED_TASKS + 1;
    assert_eq!(feasible(past).err(), Some(LimitError::WeightedTasks(past)));
    let ranking = feasible(MAX_WEIGHTED_TASKS).unwrap();
    let kept = ranking.feasible().unwrap();
    let mut weights = Weights::new(1).unwrap();
    let task = TaskIndex(MAX_WEIGHTED_TASKS - 1);
    assert_eq!(weights.set(task, Some(Tickets::ONE), kept), Ok(&[][..]));
    assert_eq!(kept.get(task).map(InForce::parts), Some(TICKET_PARTS));
    let task = TaskIndex(MAX_WEIGHTED_TASKS);
    let tasks = MAX_WEIGHTED_TASKS;
    let refused = Err(LimitError::Task { task, tasks });
    assert_eq!(weights.set(task, Some(Tickets::ONE), kept), refused);
}

/// The longest turn in the shortest quanta, of a single ticket: passes end, and
/// who comes there still gets its turns.
#[test]
fn passes_stay_at_their_end() {
    use prorata_core::run_queue::{End, Turn};
    let ranking = Pass::new(MIN_QUANTUM_NS).unwrap();
    let mut queues = Sequential::new(ranking, &Layout::GlobalList, 1).unwrap();
    for index in 0..2 {
        queues.wake(Task::new(TaskIndex(index), Cpu(0))).unwrap();
    }
    let mut turns = [0; 2];
    for _ in 0..100 {
        let turn = Turn {
            end: End::Yields,
            used_ns: u64::MAX,
        };
        let next = queues.schedule(Cpu(0), turn, 0).next.unwrap();
        turns[next.0 as usize] += 1;
    }
    assert_eq!(queues.shared().clock(Cpu(0)), i64::MAX as u64);
    assert!(turns.iter().all(|&turns| turns > 0), "{turns:?}");
}

#[test]
fn tasks_that_a_machine_is_not_made_for() {
    let ranking = Pass::weighted(MIN_QUANTUM_NS, 3).unwrap();
    let mut queues = Sequential::new(ranking, &Layout::GlobalList, 2).unwrap();
    let mut wake = |index: u32, cpu: u32, allowed: &[u32]| {
        let mut task = Task::new(TaskIndex(index), Cpu(cpu));
        task.allowed = CpuSet::only(allowed.iter().copied().map(Cpu));
        queues.wake(task).map_err(|error| error.to_string())
    };
    assert_eq!(wake(2, 1, &[0]), Ok(()));
    let refused = |text: &str| Err(text.to_owned());
    assert_eq!(
        wake(3, 0, &[0]),
        refused("task 3 has no weight here: number tasks below 3, or keep more weights")
    );
    assert_eq!(
        wake(0, 2, &[0]),
        refused("task 0 cannot have run on CPU 2: the machine has 2 CPUs")
    );
    assert_eq!(
        wake(0, 1, &[2]),
        refused("task 0 may run on none of 2 CPUs: allow one of them")
    );
}
