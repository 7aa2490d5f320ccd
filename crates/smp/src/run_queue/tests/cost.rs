//! What a decision looks at on 1,024 CPUs, beside the same on 8.

use prorata_core::hybrid::nice::Nice;

use super::super::{Comparison, Cpu, Placement, QueueLayout, Task, TaskIndex, TurnEnd};
use super::machine::{Sequential, WITHOUT_MM};

/// A machine with so many tasks a CPU, some with more ticks left than others.
fn filled(cpus: u32, tasks: u32, comparison: Comparison) -> Sequential {
    let layout = QueueLayout::MultiQueue(comparison);
    let mut queues = Sequential::new(WITHOUT_MM, &layout, cpus).unwrap();
    for index in 0..tasks * cpus {
        let task = Task::new(TaskIndex(index), Nice::default(), Cpu(index % cpus));
        let counter = 1 + index * 7 % 11;
        queues.wake(Task { counter, ..task });
    }
    queues
}

const ENDS: [TurnEnd; 3] = [TurnEnd::Runnable, TurnEnd::Yields, TurnEnd::Blocks];

/// Tasks and words that a `schedule()` looks at on average, and at most, where
/// four tasks a CPU run on, yield, block and wake in turns.
fn schedule(cpus: u32, comparison: Comparison) -> (f64, u64) {
    let mut queues = filled(cpus, 4, comparison);
    let (mut all, mut most, mut decisions) = (0, 0, 0);
    for round in 0..12 {
        for cpu in (0..cpus).map(Cpu) {
            let end = ENDS[(round + cpu.0 as usize) % 3];
            let clock = queues.shared.clock(cpu);
            let outcome = queues.schedule(cpu, end);
            // A recalculation visits all tasks, whatever the layout.
            if queues.shared.clock(cpu) == clock {
                let (tasks, words) = queues.examined;
                all += tasks + words;
                most = most.max(tasks + words);
                decisions += 1;
            }
            if let Some(task) = outcome.blocked {
                queues.wake(task);
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
    let scan = [8, 1024].map(|cpus| schedule(cpus, Comparison::Scan));
    let tournament = [8, 1024].map(|cpus| schedule(cpus, Comparison::Tournament));
    println!("scan (mean, most) {scan:?}, tournament {tournament:?}");
    assert!(tournament[1].0 <= 2.0 * tournament[0].0, "{tournament:?}");
    assert!(
        tournament[1].0 <= 2.0 * scan[0].0,
        "{tournament:?} {scan:?}"
    );
    // Not so by a scan, which looks at every CPU.
    assert!(scan[1].0 > 1024.0);
}

/// Tasks and words that a `reschedule_idle()` looks at on average, and at most,
/// where so many tasks a CPU run on, yield, block and wake in turns.
fn wake(cpus: u32, tasks: u32) -> (f64, u64) {
    let mut queues = filled(cpus, tasks, Comparison::Tournament);
    let (mut all, mut most, mut wakes) = (0, 0, 0);
    let mut asleep = Vec::new();
    for round in 0..12 {
        for cpu in (0..cpus).map(Cpu) {
            let end = ENDS[(round + cpu.0 as usize) % 3];
            asleep.extend(queues.schedule(cpu, end).blocked);
            for told in queues.take_told() {
                queues.schedule(told, TurnEnd::Runnable);
            }
            if asleep.len() > cpus as usize / 4 {
                let next = (round + cpu.0 as usize * 7) % asleep.len();
                let mut placement = Placement::woken(asleep.swap_remove(next));
                queues.run(&mut placement, |_| true);
                let (tasks, words) = queues.examined;
                all += tasks + words;
                most = most.max(tasks + words);
                wakes += 1;
            }
            queues.tick(cpu);
        }
    }
    assert!(wakes > cpus);
    (all as f64 / f64::from(wakes), most)
}

#[test]
fn a_wake_on_1024_busy_cpus_looks_at_no_more_than_twice_what_it_does_on_8() {
    let found = [8, 1024].map(|cpus| wake(cpus, 4));
    println!("(mean, most) on 8 and on 1,024 CPUs {found:.1?}");
    assert!(found[1].0 <= 2.0 * found[0].0, "{found:?}");
    assert!(found[1].1 <= 30, "{found:?}");
}

/// Where most CPUs idle, each wake changes the best of all, and plays all
/// matches above its CPU: ten for the offer and ten for the availability,
/// instead of three and three.
#[test]
fn a_wake_on_1024_idle_cpus_is_two_matches_more_for_each_doubling() {
    let found = [8, 1024].map(|cpus| wake(cpus, 1));
    println!("(mean, most) on 8 and on 1,024 CPUs {found:.1?}");
    assert!(found[1].0 <= 14.0 + found[0].0, "{found:?}");
    assert!(found[1].1 <= 30, "{found:?}");
}
