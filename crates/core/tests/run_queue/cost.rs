//! What a decision looks at on 1,024 CPUs, beside the same on 8.

use prorata_core::run_queue::{
    Comparison, Cpu, End, Layout, Nice, Sequential, Task, TaskIndex, Turn,
};

use super::machine::WITHOUT_MM;

/// Tasks and words looked at in a decision on average, and at most, with four
/// tasks a CPU that yield, block and wake in turns.
fn cost(cpus: u32, comparison: Comparison) -> (f64, u64) {
    let layout = Layout::MultiQueue(comparison);
    let mut queues = Sequential::new(WITHOUT_MM, &layout, cpus).unwrap();
    for index in 0..4 * cpus {
        let mut task = Task::new(TaskIndex(index), Cpu(index % cpus));
        task.nice = Nice::new((index * 7 % 11) as i8 - 5).unwrap();
        queues.wake(task).unwrap();
    }
    let (mut all, mut most, mut decisions) = (0, 0, 0);
    for round in 0..12 {
        for cpu in (0..cpus).map(Cpu) {
            let end = [End::Runnable, End::Yields, End::Blocks][(round + cpu.0 as usize) % 3];
            let turn = Turn { end, used_ns: 0 };
            let outcome = queues.schedule(cpu, turn, 0);
            // A recalculation is by all tasks, whatever the layout.
            if !outcome.recalculated {
                let (tasks, words) = queues.examined();
                all += tasks + words;
                most = most.max(tasks + words);
                decisions += 1;
            }
            if let Some(task) = outcome.blocked {
                queues.wake(task).unwrap();
            }
            queues.tick(cpu);
            queues.take_told();
        }
    }
    assert!(decisions > 4 * cpus);
    (all as f64 / f64::from(decisions), most)
}

#[test]
fn a_decision_on_1024_cpus_looks_at_no_more_than_twice_what_it_does_on_8() {
    let scan = [8, 1024].map(|cpus| cost(cpus, Comparison::Scan));
    let tournament = [8, 1024].map(|cpus| cost(cpus, Comparison::Tournament));
    println!("scan (mean, most) {scan:?}, tournament {tournament:?}");
    assert!(tournament[1].0 <= 2.0 * tournament[0].0, "{tournament:?}");
    assert!(
        tournament[1].0 <= 2.0 * scan[0].0,
        "{tournament:?} {scan:?}"
    );
    // Not so by a scan, which looks at every CPU.
    assert!(scan[1].0 > 1024.0);
}
