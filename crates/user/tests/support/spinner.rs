//! A program that says when it had a CPU, and one that says how late it wakes.

use std::time::{Duration, Instant};

use super::timetable::now_ns;

/// A time without the CPU, on the monotonic clock.
pub type Gap = (u64, u64);

/// The shortest that is noted.
const SHORTEST_NS: u64 = 3_000;

/// Most that are noted.
const MOST: usize = 2_000_000;

/// Reads the clock for so long, and prints when it could not.
pub fn spin(seconds: u64) {
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut gaps: Vec<Gap> = Vec::with_capacity(MOST);
    // No page is new later.
    gaps.resize(MOST, (0, 0));
    gaps.clear();
    let mut last_ns = now_ns();
    while Instant::now() < end {
        for _ in 0..1000 {
            let now_ns = now_ns();
            if now_ns - last_ns > SHORTEST_NS && gaps.len() < MOST {
                gaps.push((last_ns, now_ns));
            }
            last_ns = now_ns;
        }
    }
    let words: Vec<String> = gaps
        .iter()
        .flat_map(|(stop, start)| [stop.to_string(), start.to_string()])
        .collect();
    println!("{}", words.join(" "));
}

/// What [`spin`] prints.
pub fn gaps_of(line: &str) -> Vec<Gap> {
    let mut numbers = line
        .split_ascii_whitespace()
        .map(|word| word.parse().expect("a number"));
    let pair = || Some((numbers.next()?, numbers.next()?));
    std::iter::from_fn(pair).collect()
}

/// Above all threads of an engine.
const PEER_PRIORITY: libc::c_int = 50;

/// Wakes so often at an interval, as `SCHED_FIFO` where that is permitted, and prints how late each
/// wake was.
pub fn wake(first_ns: u64, interval_ns: u64, count: u64) {
    let parameter = libc::sched_param {
        sched_priority: PEER_PRIORITY,
    };
    // SAFETY: `parameter` outlives the call, which only reads it.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameter) };
    let late: Vec<String> = (0..count)
        .map(|wake| {
            let due_ns = first_ns + wake * interval_ns;
            let due = rustix::time::Timespec {
                tv_sec: (due_ns / 1_000_000_000) as i64,
                tv_nsec: (due_ns % 1_000_000_000) as i64,
            };
            let clock = rustix::thread::ClockId::Monotonic;
            let _ = rustix::thread::clock_nanosleep_absolute(clock, &due);
            now_ns().saturating_sub(due_ns).to_string()
        })
        .collect();
    println!("{}", late.join(" "));
}
