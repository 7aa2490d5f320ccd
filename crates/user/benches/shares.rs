//! Shares of real programs.

#[path = "../tests/support/mod.rs"]
mod support;
use prorata_user::Mechanism;
use std::time::Duration;
use support::*;

fn main() {
    prorata_user::guardian_entry();
    support::helper::helper_entry();
    let args: Vec<String> = std::env::args().collect();
    let mech = match args.get(1).map(String::as_str) {
        Some("stop") => Some(Mechanism::Stop),
        _ => None,
    };
    let q: u64 = args.get(2).map_or(20, |s| s.parse().unwrap());
    let secs: u64 = args.get(3).map_or(5, |s| s.parse().unwrap());
    let tickets: Vec<u32> = args[4..].iter().map(|s| s.parse().unwrap()).collect();
    let hogs: Vec<Program> = tickets.iter().map(|_| Program::hog()).collect();
    let world = World::new(mech, q * MS);
    let ids: Vec<_> = hogs
        .iter()
        .zip(&tickets)
        .enumerate()
        .map(|(i, (h, &t))| world.enter(&format!("h{i}"), t, h))
        .collect();
    std::thread::sleep(Duration::from_millis(500));
    let s0 = world.engine().status();
    let t0: Vec<u64> = hogs.iter().map(|h| h.cpu_ns()).collect();
    let mut last = t0.clone();
    for w in 0..(secs / 2) {
        std::thread::sleep(Duration::from_secs(2));
        let t1: Vec<u64> = hogs.iter().map(|h| h.cpu_ns()).collect();
        let d: Vec<u64> = t1.iter().zip(&last).map(|(a, b)| a - b).collect();
        if hogs.len() <= 4 {
            println!(
                "window {w}: {:?} ratio {:.3}",
                d.iter().map(|x| x / 1000).collect::<Vec<_>>(),
                d[0] as f64 / d[1] as f64
            );
        }
        last = t1;
    }
    let s1 = world.engine().status();
    let d: Vec<u64> = last.iter().zip(&t0).map(|(a, b)| a - b).collect();
    let total: u64 = d.iter().sum();
    let tt: u32 = tickets.iter().sum();
    for (i, x) in d.iter().enumerate().take(6) {
        println!(
            "client {i} tickets {} got {:.3}% should {:.3}% err {:+.2}% = {:+.2} quanta; usage {:?}",
            tickets[i],
            *x as f64 * 100.0 / total as f64,
            tickets[i] as f64 * 100.0 / tt as f64,
            (*x as f64 / total as f64) / (tickets[i] as f64 / tt as f64) * 100.0 - 100.0,
            (*x as f64 - total as f64 * tickets[i] as f64 / tt as f64) / (q * MS) as f64,
            world.usage(ids[i])
        );
    }
    println!(
        "{:?} own cpu {:.3}% decisions/s {:.1} total {:.3}",
        s1.mechanism,
        (s1.own_cpu_ns - s0.own_cpu_ns) as f64 * 100.0 / (s1.uptime_ns - s0.uptime_ns) as f64,
        (s1.decisions - s0.decisions) as f64 * 1e9 / (s1.uptime_ns - s0.uptime_ns) as f64,
        total as f64 / 1e9 / (secs / 2 * 2) as f64
    );
}
