//! What it costs to find a CPU for who wakes on 1,024 CPUs, beside the same on 8.

use prorata_core::run_queue::{
    Comparison, Cpu, CpuSet, End, Layout, Nice, Place, Sequential, Task, TaskIndex, Turn,
};

use super::machine::WITHOUT_MM;

/// Where a task may run that begins on a CPU of so many.
type Bound = fn(cpu: u32, cpus: u32) -> CpuSet;

const EVERYWHERE: Bound = |_, _| CpuSet::All;
const ONE_CPU: Bound = |cpu, _| CpuSet::only([Cpu(cpu)]);
const TWO_CPUS: Bound = |cpu, cpus| CpuSet::only([cpu, (cpu + cpus / 2) % cpus].map(Cpu));
const HALF: Bound = |cpu, cpus| {
    let first = cpu / (cpus / 2) * (cpus / 2);
    CpuSet::only((first..first + cpus / 2).map(Cpu))
};
const ALL_BUT_ONE: Bound = |cpu, cpus| {
    let other = (cpu + 1) % cpus;
    CpuSet::only((0..cpus).filter(|&cpu| cpu != other).map(Cpu))
};
const EVERY_OTHER: Bound = |cpu, cpus| CpuSet::only((cpu % 2..cpus).step_by(2).map(Cpu));

/// A machine where so many tasks a CPU run on, yield, block and wake in turns.
/// Tasks and words looked at for one that wakes on average, and at most.
fn cost(cpus: u32, tasks: u32, bound: Bound) -> (f64, u64) {
    let layout = Layout::MultiQueue(Comparison::Tournament);
    let mut queues = Sequential::new(WITHOUT_MM, &layout, cpus).unwrap();
    for index in 0..tasks * cpus {
        let mut task = Task::new(TaskIndex(index), Cpu(index % cpus));
        task.nice = Nice::new((index * 7 % 11) as i8 - 5).unwrap();
        task.allowed = bound(index % cpus, cpus);
        queues.wake(task).unwrap();
    }
    let (mut all, mut most, mut wakes) = (0, 0, 0);
    let mut asleep = Vec::new();
    for round in 0..12 {
        for cpu in (0..cpus).map(Cpu) {
            let end = [End::Runnable, End::Yields, End::Blocks][(round + cpu.0 as usize) % 3];
            asleep.extend(queues.schedule(cpu, Turn { end, used_ns: 0 }, 0).blocked);
            for told in queues.take_told() {
                let end = End::Runnable;
                queues.schedule(told, Turn { end, used_ns: 0 }, 0);
            }
            if asleep.len() > cpus as usize / 4 {
                let next = (round + cpu.0 as usize * 7) % asleep.len();
                let mut place = Place::woken(asleep.swap_remove(next));
                queues.run(&mut place, |_| true);
                let (tasks, words) = queues.examined();
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

const BOUNDS: [(&str, Bound); 5] = [
    ("everywhere", EVERYWHERE),
    ("one CPU", ONE_CPU),
    ("two CPUs", TWO_CPUS),
    ("half", HALF),
    ("all but one", ALL_BUT_ONE),
];

#[test]
fn a_wake_on_1024_busy_cpus_looks_at_no_more_than_twice_what_it_does_on_8() {
    for (name, bound) in BOUNDS {
        let found = [8, 1024].map(|cpus| cost(cpus, 4, bound));
        println!("{name}: (mean, most) on 8 and on 1,024 CPUs {found:.1?}");
        assert!(found[1].0 <= 2.0 * found[0].0, "{name}: {found:?}");
        assert!(found[1].1 <= 30, "{name}: {found:?}");
    }
}

/// Where most CPUs idle, who wakes changes the best of all, and all matches above
/// its CPU: ten for what is offered and ten for who is available, instead of
/// three and three.
#[test]
fn a_wake_on_1024_idle_cpus_is_two_matches_more_for_each_doubling() {
    for (name, bound) in BOUNDS {
        let found = [8, 1024].map(|cpus| cost(cpus, 1, bound));
        println!("{name}: (mean, most) on 8 and on 1,024 CPUs {found:.1?}");
        assert!(found[1].0 <= 14.0 + found[0].0, "{name}: {found:?}");
        assert!(found[1].1 <= 30, "{name}: {found:?}");
    }
}

/// Who may run on CPUs that are strewn among others, none of which is as available
/// as these, looks at each of its own: that is given up.
#[test]
fn who_may_run_on_strewn_cpus_only_looks_at_less_than_three_words_for_each() {
    for tasks in [1, 4] {
        let found = [8, 1024].map(|cpus| cost(cpus, tasks, EVERY_OTHER));
        println!("{tasks} tasks a CPU: (mean, most) on 8 and on 1,024 CPUs {found:.1?}");
        assert!(found[1].1 <= 3 * 512 + 30, "{found:?}");
    }
}
