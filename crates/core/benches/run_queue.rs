//! What a decision costs, by layout and ranking, on 8 and on 1,024 CPUs with
//! four tasks each: who runs yields, and the next is chosen. Without locks, so
//! this is the code alone; real locks and threads are another bench's.

#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use prorata_core::run_queue::{
    Comparison, Cpu, End, Goodness, Layout, Pass, Ranking, Sequential, Task, TaskIndex, Turn,
};

fn filled<R: Ranking>(ranking: R, layout: &Layout, cpus: u32) -> Sequential<R> {
    let mut queues = Sequential::new(ranking, layout, cpus).expect("within the limits");
    for index in 0..4 * cpus {
        let task = Task::new(TaskIndex(index), Cpu(index % cpus));
        queues.wake(task).expect("within the limits");
    }
    queues.take_told();
    queues
}

fn decisions<R: Ranking>(criterion: &mut Criterion, name: &str, ranking: impl Fn() -> R) {
    let mut group = criterion.benchmark_group(name);
    for cpus in [8, 1024] {
        let pools = (0..cpus).map(|cpu| cpu / 8).collect();
        let layouts = [
            ("list", Layout::GlobalList),
            ("levels", Layout::PriorityLevels),
            ("queues, scan", Layout::MultiQueue(Comparison::Scan)),
            (
                "queues, tournament",
                Layout::MultiQueue(Comparison::Tournament),
            ),
            ("pools of 8", Layout::Pools(pools, Comparison::Tournament)),
        ];
        for (layout_name, layout) in layouts {
            let mut queues = filled(ranking(), &layout, cpus);
            let mut cpu = 0;
            let turn = Turn {
                end: End::Yields,
                used_ns: 1000,
            };
            let id = BenchmarkId::new(layout_name, cpus);
            group.bench_function(id, |bencher| {
                bencher.iter(|| {
                    cpu = (cpu + 1) % cpus;
                    queues.schedule(Cpu(cpu), turn, 0).next
                });
            });
        }
    }
    group.finish();
}

fn all(criterion: &mut Criterion) {
    decisions(criterion, "goodness", || Goodness::X86);
    decisions(criterion, "pass", || {
        Pass::new(10_000_000).expect("within the limits")
    });
}

criterion_group!(benches, all);
criterion_main!(benches);
