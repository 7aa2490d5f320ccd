//! The loads. Each waits for a byte, runs for a while, and prints its numbers and its share of
//! the CPUs.

use std::io::{Read as _, Write as _, pipe};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, available_parallelism, sleep};
use std::time::{Duration, Instant};

use prorata_load::wake::{self, WakeSettings};
use rustix::time::{ClockId, clock_gettime};

/// Time before the measurement, in which a scheduler can learn how the load behaves.
const WARM_UP: Duration = Duration::from_secs(2);
const TIME: Duration = Duration::from_secs(4);

/// Workers of requests, and the work of a request.
const WORKERS: usize = 2;
const REQUEST: Duration = Duration::from_micros(500);
/// A nap, and the work after each.
const NAPPERS: usize = 2;
const NAP: Duration = Duration::from_millis(5);
const WORK: Duration = Duration::from_millis(2);
/// Computing, and steps between two looks at the clock.
const COMPUTING: Duration = Duration::from_secs(2);
const STEPS_AT_ONCE: u64 = 100;
/// Sleep of an interactive program: two ticks of the paper's machine.
const SHORTEST_SLEEP: Duration = Duration::from_millis(20);

/// Wakes at fixed times, each with work, for a time.
#[derive(Clone, Copy)]
pub struct Wakes {
    pub period: Duration,
    pub work: Duration,
    time: Duration,
}

/// The period is none of the tick's, or all would come at the same place in it.
const USUAL: Wakes = Wakes {
    period: Duration::from_micros(3_100),
    work: Duration::from_micros(200),
    time: Duration::from_secs(8),
};
pub const SHORT: Wakes = Wakes {
    period: Duration::from_millis(2),
    work: Duration::from_micros(200),
    time: Duration::from_secs(8),
};
/// As an editor at each key.
pub const EDITOR: Wakes = Wakes {
    period: Duration::from_millis(100),
    work: Duration::from_millis(2),
    time: Duration::from_secs(20),
};

/// Runs in a role: a rival for ever, and a load when it is told to.
pub fn perform(role: &str) {
    match role {
        "--hog" => hog(),
        "--interactive" => interactive(),
        _ => {}
    }
    let mut byte = [0];
    std::io::stdin().read_exact(&mut byte).expect("it is sent");
    let found = match role {
        "--ping-pong" => ping_pong(),
        "--requests" => requests(),
        "--nappers" => nappers(),
        "--wakes" => wakes(USUAL),
        "--short" => wakes(SHORT),
        "--editor" => wakes(EDITOR),
        "--compute" => compute(),
        other => panic!("no such load: {other}"),
    };
    let found: Vec<String> = found.iter().map(f64::to_string).collect();
    println!("{}", found.join(" "));
}

/// A micro-VM that counts instructions executes one CPU at a time, until that CPU pauses or a
/// timer is due, while the clocks of all CPUs advance. Without pauses some CPUs would stand
/// still and count it as used time.
fn hog() -> ! {
    loop {
        step();
    }
}

/// Only wakes, as often as possible in the paper.
fn interactive() -> ! {
    loop {
        sleep(SHORTEST_SLEEP);
    }
}

fn step() {
    for number in 0..1000u32 {
        std::hint::black_box(number);
    }
    std::hint::spin_loop();
}

fn burn(work: Duration) {
    let begin = used(ClockId::ThreadCPUTime);
    while used(ClockId::ThreadCPUTime) - begin < work {
        step();
    }
}

fn used(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The share of the CPUs that this process receives while a load runs, and what the load finds.
fn with_share(load: impl FnOnce() -> Vec<f64>) -> Vec<f64> {
    sleep(WARM_UP);
    let cpus = available_parallelism().map_or(1, usize::from) as f64;
    let (begin, before) = (Instant::now(), used(ClockId::ProcessCPUTime));
    let mut found = load();
    let received = (used(ClockId::ProcessCPUTime) - before).as_secs_f64();
    found.push(received / begin.elapsed().as_secs_f64() / cpus);
    found
}

/// Two threads send one another a byte through pipes.
fn ping_pong() -> Vec<f64> {
    let (mut pong_reads, mut ping_writes) = pipe().expect("a pipe");
    let (mut ping_reads, mut pong_writes) = pipe().expect("a pipe");
    let trips = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&trips);
    thread::spawn(move || {
        let mut byte = [0];
        while ping_writes.write_all(&byte).is_ok() && ping_reads.read_exact(&mut byte).is_ok() {
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    thread::spawn(move || {
        let mut byte = [0];
        while pong_reads.read_exact(&mut byte).is_ok() && pong_writes.write_all(&byte).is_ok() {}
    });
    with_share(|| {
        let before = trips.load(Ordering::Relaxed);
        sleep(TIME);
        let made = trips.load(Ordering::Relaxed) - before;
        vec![made as f64 / TIME.as_secs_f64()]
    })
}

/// A request that a worker performs: when it was sent.
type Request = Instant;

/// As schbench: a thread of messages wakes workers, which each perform a request and wake that
/// thread. A request's latency ends when its worker runs.
fn requests() -> Vec<f64> {
    let (done, finished) = channel();
    let (latencies, counted) = channel();
    let workers: Vec<Sender<Request>> = (0..WORKERS)
        .map(|number| {
            let (to_worker, requests) = channel::<Request>();
            let (done, latencies) = (done.clone(), latencies.clone());
            thread::spawn(move || {
                for request in requests {
                    let _ = latencies.send(request.elapsed());
                    burn(REQUEST);
                    let _ = done.send(number);
                }
            });
            to_worker
        })
        .collect();
    thread::spawn(move || {
        for worker in &workers {
            let _ = worker.send(Instant::now());
        }
        for number in finished {
            let _ = workers[number].send(Instant::now());
        }
    });
    with_share(|| {
        counted.try_iter().for_each(drop);
        sleep(TIME);
        let mut latencies: Vec<Duration> = counted.try_iter().collect();
        latencies.sort();
        let at = |part: f64| {
            let latency = latencies.get((latencies.len() as f64 * part) as usize);
            latency.map_or(f64::INFINITY, |latency| latency.as_secs_f64() * 1e6)
        };
        let rate = latencies.len() as f64 / TIME.as_secs_f64();
        vec![rate, at(0.5), at(0.99)]
    })
}

/// The CPUs that all nappers receive together.
fn nappers() -> Vec<f64> {
    for _ in 0..NAPPERS {
        thread::spawn(|| {
            loop {
                burn(WORK);
                sleep(NAP);
            }
        });
    }
    with_share(|| {
        let before = used(ClockId::ProcessCPUTime);
        let begin = Instant::now();
        sleep(TIME);
        let received = used(ClockId::ProcessCPUTime) - before;
        vec![received.as_secs_f64() / begin.elapsed().as_secs_f64()]
    })
}

fn wakes(wakes: Wakes) -> Vec<f64> {
    let settings = |time: Duration| WakeSettings {
        period_ns: wakes.period.as_nanos() as u64,
        work_ns: wakes.work.as_nanos() as u64,
        wakes: (time.as_nanos() / wakes.period.as_nanos()) as u64,
    };
    let run = |time| wake::run(&settings(time), &mut ()).expect("it is within its limits");
    run(WARM_UP);
    with_share(|| {
        let latencies = run(wakes.time).latencies;
        let us = |ns: u64| ns as f64 / 1e3;
        vec![
            us(latencies.p50_ns),
            us(latencies.p99_ns),
            us(latencies.p999_ns),
        ]
    })
}

/// Steps a second.
fn compute() -> Vec<f64> {
    with_share(|| {
        let (begin, mut steps) = (Instant::now(), 0u64);
        while begin.elapsed() < COMPUTING {
            for _ in 0..STEPS_AT_ONCE {
                step();
            }
            steps += STEPS_AT_ONCE;
        }
        vec![steps as f64 / begin.elapsed().as_secs_f64()]
    })
}
