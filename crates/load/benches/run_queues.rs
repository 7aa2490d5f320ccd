//! Decisions a second on this machine's CPUs, by layout and ranking, with the
//! statistics of their locks in the form of the paper (2001, Table 6).
//!
//! Each CPU has a thread bound to it that makes one decision after another:
//! Reflex without processes (`prorata_load::run_queues::Tokens`), so that all
//! time goes to decisions and locks are asked for as often as can be. Rates are
//! measured without statistics of locks, which cost time; these come from runs
//! of their own.
//!
//! Pools are the CPUs that share a last-level cache, as the machine tells; with
//! `-- --pools-of N` they are of N CPUs each.
//!
//! Where a virtual machine's CPU is taken away while it holds a lock, the
//! longest hold and wait show that and not the code; judge by the means.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use prorata_core::run_queue::{
    Comparison, Cpu, Goodness, Layout, Pass, Ranking, Task, TaskIndex, Tickets,
};
use prorata_core::topology::{PoolsBy, Topology};
use prorata_load::run_queues::{
    Counts, Lock, LockStatistics, Machine, Metered, Plain, Tokens, Worker,
};
use prorata_load::topology;
use prorata_report::figures::{self, Figure, Quantity};
use rustix::thread::{CpuSet, sched_setaffinity};
use serde::Serialize;

/// Rings, and so tasks that are runnable at a time.
const RUNNABLE: [u32; 2] = [16, 256];
/// Of passes.
const QUANTUM_NS: u64 = 20_000_000;
/// Where some are rich, every so manyth task has so many tickets, which is more
/// than a CPU is worth, so what is feasible changes with each wake and block.
const RICH: (u32, u32) = (8, 1000);
/// Tasks of a ring.
const THREADS: u32 = 4;
/// Before and while decisions are counted.
const WARM_UP: Duration = Duration::from_millis(100);
const MEASURED: Duration = Duration::from_millis(500);
/// Rounds, in each of which every combination has its turn.
const ROUNDS: usize = 3;

fn main() {
    let topology = topology::of_this_thread().unwrap();
    let cpus: Vec<_> = topology.cpus().iter().map(|place| place.cpu).collect();
    let pools_by = pools_by();
    let mut rows = Vec::new();
    for runnable in RUNNABLE {
        for (name, layout) in layouts(&topology, &pools_by) {
            let combination = Combination {
                layout: &layout,
                name: name.clone(),
                runnable,
                cpus: &cpus,
            };
            let weighted = || Pass::weighted(QUANTUM_NS, runnable * THREADS).unwrap();
            rows.push(combination.measure("goodness", || Goodness::X86, equal));
            rows.push(combination.measure("pass", || Pass::new(QUANTUM_NS).unwrap(), equal));
            rows.push(combination.measure("weighted", weighted, equal));
            rows.push(combination.measure("weighted, some rich", weighted, some_rich));
        }
    }
    print(&rows, cpus.len());
    let place = figures::directory(env!("CARGO_TARGET_TMPDIR"));
    let locks = place.join("locks");
    std::fs::create_dir_all(&locks).unwrap();
    let json = serde_json::to_string_pretty(&rows).unwrap();
    std::fs::write(locks.join("run_queues.json"), json).unwrap();
    let reached: Vec<Figure> = rows.iter().flat_map(|row| row.figures(&rows)).collect();
    figures::write(&place.join("run_queues.json"), &reached).unwrap();
}

/// All have a single ticket.
fn equal(_: TaskIndex) -> Tickets {
    Tickets::ONE
}

fn some_rich(TaskIndex(index): TaskIndex) -> Tickets {
    let (every, tickets) = RICH;
    match index % every {
        0 => Tickets::new(tickets).unwrap(),
        _ => Tickets::ONE,
    }
}

/// What makes a pool: the cache, unless the arguments say how many CPUs. cargo
/// gives arguments of its own.
fn pools_by() -> PoolsBy {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--pools-of");
    match arguments.nth(1) {
        Some(size) => PoolsBy::Size(size.parse().expect("pools of a number of CPUs")),
        None => PoolsBy::LastLevelCache,
    }
}

fn layouts(topology: &Topology, pools_by: &PoolsBy) -> Vec<(String, Layout)> {
    let pools = topology.pools(pools_by).unwrap();
    let number = pools.iter().max().map_or(0, |last| last + 1);
    let layouts = [
        ("DSS", Layout::GlobalList),
        ("PLS", Layout::PriorityLevels),
        ("MQ", Layout::MultiQueue(Comparison::Scan)),
        ("MQ, tournament", Layout::MultiQueue(Comparison::Tournament)),
    ];
    let named = layouts.map(|(name, layout)| (name.to_owned(), layout));
    let pools = (
        format!("pools: {number}"),
        Layout::Pools(pools, Comparison::Scan),
    );
    named.into_iter().chain([pools]).collect()
}

/// What is measured at a time.
struct Combination<'a> {
    layout: &'a Layout,
    name: String,
    runnable: u32,
    cpus: &'a [u32],
}

/// What came out.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Row {
    layout: String,
    ranking: &'static str,
    runnable: u32,
    cpus: usize,
    /// Median of the rounds.
    decisions_per_second: f64,
    /// Of the runs with statistics, all rounds together.
    #[serde(flatten)]
    counts: Counts,
    /// Of the queues' locks, in these.
    locks: LockStatistics,
    contention: f64,
    nf_contention: f64,
    mean_hold_ns: f64,
    mean_wait_ns: f64,
}

impl Combination<'_> {
    fn measure<R: Ranking + Sync>(
        &self,
        ranking: &'static str,
        new: impl Fn() -> R,
        tickets: fn(TaskIndex) -> Tickets,
    ) -> Row {
        let mut rates = Vec::new();
        let (mut counts, mut locks) = (Counts::default(), LockStatistics::default());
        for _ in 0..ROUNDS {
            let plain = self.run(&self.machine::<R, Plain>(new()), tickets);
            rates.push(plain.decisions() as f64 / MEASURED.as_secs_f64());
            let machine = self.machine::<R, Metered>(new());
            counts += self.run(&machine, tickets);
            machine.locks().for_each(|lock| locks += lock.statistics());
        }
        rates.sort_by(f64::total_cmp);
        Row {
            layout: self.name.clone(),
            ranking,
            runnable: self.runnable,
            cpus: self.cpus.len(),
            decisions_per_second: rates[ROUNDS / 2],
            counts,
            locks,
            contention: locks.contention(),
            nf_contention: locks.nf_contention(),
            mean_hold_ns: locks.mean_hold_ns(),
            mean_wait_ns: locks.mean_wait_ns(),
        }
    }

    fn machine<R: Ranking, L: Lock>(&self, ranking: R) -> Machine<R, L> {
        Machine::new(ranking, self.layout, self.cpus.len() as u32).unwrap()
    }

    /// Decisions of all CPUs within the time that is measured.
    fn run<R: Ranking + Sync, L: Lock>(
        &self,
        machine: &Machine<R, L>,
        tickets: fn(TaskIndex) -> Tickets,
    ) -> Counts {
        let cpus = self.cpus.len() as u32;
        let tokens = Tokens::new(self.runnable, THREADS, |index| {
            let mut task = Task::new(index, Cpu(index.0 / THREADS % cpus));
            task.tickets = tickets(index);
            task
        });
        tokens.start(&mut machine.processor(Cpu(0)));
        let barrier = Barrier::new(self.cpus.len() + 1);
        let [is_measured, is_over] = [const { AtomicBool::new(false) }; 2];
        let begin = Instant::now();
        let work = |cpu: u32, place: u32| {
            let mut set = CpuSet::new();
            set.set(place as usize);
            sched_setaffinity(None, &set).unwrap();
            let clock = || begin.elapsed().as_nanos() as u64;
            let mut worker = Worker::new(machine, &tokens, Cpu(cpu), clock);
            barrier.wait();
            while !is_measured.load(Ordering::Relaxed) {
                worker.turn();
            }
            let before = worker.counts();
            while !is_over.load(Ordering::Relaxed) {
                worker.turn();
            }
            worker.counts() - before
        };
        let sum = scope(|scope| {
            let work = &work;
            let workers: Vec<_> = (0..)
                .zip(self.cpus)
                .map(|(cpu, &place)| scope.spawn(move || work(cpu, place)))
                .collect();
            barrier.wait();
            sleep(WARM_UP);
            is_measured.store(true, Ordering::Relaxed);
            sleep(MEASURED);
            is_over.store(true, Ordering::Relaxed);
            let mut sum = Counts::default();
            for worker in workers {
                sum += worker.join().unwrap();
            }
            sum
        });
        tokens.audit(machine);
        sum
    }
}

fn print(rows: &[Row], cpus: usize) {
    println!(
        "decisions on {cpus} CPUs; locks of run queues, holds and waits in us, mean (longest)"
    );
    println!(
        "{:<16}{:<20}{:>8} {:>12} {:>11} {:>8}  {:<18}{:<18}",
        "layout", "ranking", "runnable", "decisions/s", "contention", "NF", "hold", "wait"
    );
    for row in rows {
        let us = |mean_ns: f64, longest_ns: u64| {
            format!("{:.2} ({:.0})", mean_ns / 1e3, longest_ns as f64 / 1e3)
        };
        println!(
            "{:<16}{:<20}{:>8} {:>12.0} {:>10.1}% {:>7.1}%  {:<18}{:<18}",
            row.layout,
            row.ranking,
            row.runnable,
            row.decisions_per_second,
            row.contention * 100.0,
            row.nf_contention * 100.0,
            us(row.mean_hold_ns, row.locks.longest_hold_ns),
            us(row.mean_wait_ns, row.locks.longest_wait_ns),
        );
    }
}

impl Row {
    /// The rate beside that of DSS; the lock's contention beside the paper's,
    /// which has it for 2 CPUs and 16 runnable tasks (2001, Table 6).
    fn figures(&self, rows: &[Row]) -> Vec<Figure> {
        let name = format!(
            "run queues, {}, {}, {} runnable, {} CPUs",
            self.layout, self.ranking, self.runnable, self.cpus
        );
        let dss = rows.iter().find(|row| {
            (&*row.layout, row.ranking, row.runnable) == ("DSS", self.ranking, self.runnable)
        });
        let figure = |what: &str, measured: f64, unit: &str| Figure {
            name: format!("{name}: {what}"),
            paper: None,
            peer: None,
            measured,
            unit: unit.to_owned(),
            target: None,
            ok: true,
        };
        let millions = |row: &Row| row.decisions_per_second / 1e6;
        let rate = Figure {
            peer: dss.map(|dss| Quantity::Words(format!("DSS {:.2}", millions(dss)))),
            ..figure("decisions", millions(self), "million a second")
        };
        let percent = match (&*self.layout, self.runnable, self.cpus, self.ranking) {
            ("DSS", 16, 2, "goodness") => Some(27.3),
            ("PLS", 16, 2, "goodness") => Some(32.7),
            ("MQ", 16, 2, "goodness") => Some(2.3),
            _ => None,
        };
        let contention = percent.map(|percent| Figure {
            paper: Some(Quantity::Number(percent)),
            ..figure("contention", self.contention * 100.0, "%")
        });
        [rate].into_iter().chain(contention).collect()
    }
}
