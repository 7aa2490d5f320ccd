//! Slots on real processes: how late schedulees start, how far apart the threads of a gang start, how
//! many slots are lost, and what a switch costs (2005, Table 4.1), beside plain `SCHED_FIFO` threads
//! that wake on the same CPU in the same run, at boundaries of the same table where no slot begins.
//!
//! Two schedulees take turns of two slots of 10 ms on one CPU. They read the clock all the time, so
//! their first reading in a slot is their start. Needs root.
//!
//! `cargo bench -p prorata-user --bench slots -- 10` takes runs of ten seconds.

#[path = "../tests/support/mod.rs"]
mod support;

use prorata_report::figures::{self, Figure};
use prorata_user::SlotMechanism;
use support::spinner::{Gap, gaps_of};
use support::timetable::{Bulletin, now_ns, process};
use support::{MS, Program, World, shared_cpu};

const SECONDS: u64 = 30;
const SLOT_NS: u64 = 10 * MS;
const COLUMNS: u32 = 10;
/// Before it, schedulees start and are raised for the first time.
const WARM_UP_NS: u64 = 1_000 * MS;

/// What a run shows, in nanoseconds.
struct Run {
    late_ns: Vec<u64>,
    peer_ns: Vec<u64>,
    /// From the last reading of one schedulee to the first one of the next.
    switch_ns: Vec<u64>,
    lost: usize,
    slots: usize,
}

fn percentile(sorted: &[u64], percent: usize) -> u64 {
    match sorted.len() {
        0 => 0,
        count => sorted[(count - 1) * percent / 100],
    }
}

fn microseconds(ns: u64) -> f64 {
    ns as f64 / 1e3
}

/// The start of a program that begins to run at a boundary; `None` if it had no CPU for a slot.
fn start_ns(gaps: &[Gap], begin_ns: u64) -> Option<u64> {
    let next = gaps.partition_point(|&(_, start)| start < begin_ns);
    match gaps.get(next) {
        Some(&(stop, start)) if stop < begin_ns => (start < begin_ns + SLOT_NS).then_some(start),
        _ => Some(begin_ns),
    }
}

/// Two schedulees on a CPU, and so many slots that are nobody's.
fn alternate(seconds: u64, hogs: usize, free: u32) -> Run {
    let world = World::new(None, 20 * MS);
    let length = (seconds + 3).to_string();
    let mut spinners = [0, 1].map(|_| Program::start(&["spinner", &length]));
    let _load: Vec<Program> = (0..hogs).map(|_| Program::hog()).collect();
    world.enter_all(&[1, 1], &spinners);
    let mut bulletin = Bulletin::open(world.directory.path(), &[shared_cpu() as u32], COLUMNS, 10);
    let epoch_ns = bulletin.reader().geometry().begin_ns(0);
    let last = COLUMNS - free;
    for first in (0..last).step_by(2) {
        let schedulee = process(spinners[(first / 2 % 2) as usize].pid());
        bulletin.claim(0, first..(first + 2).min(last), schedulee);
    }
    let mechanism = world.engine().set_timetable(Some(bulletin.reader()));
    assert_eq!(mechanism.expect("starts"), Some(SlotMechanism::Raise));
    let begin = (now_ns() + WARM_UP_NS - epoch_ns) / (SLOT_NS * 10) * 10;
    let periods = seconds * 1000 * MS / SLOT_NS / 10;
    // Five wakes a period, at odd ticks.
    let first_ns = epoch_ns + (begin + 1) * SLOT_NS;
    let (interval, count) = (2 * SLOT_NS, periods * 5);
    let arguments = [first_ns, interval, count].map(|number| number.to_string());
    let mut peer = Program::start(&["peer", &arguments[0], &arguments[1], &arguments[2]]);
    let line = peer.hear();
    let mut peer_ns: Vec<u64> = line
        .split_ascii_whitespace()
        .map(|word| word.parse().expect("a number"))
        .collect();
    let gaps = spinners.each_mut().map(|spinner| gaps_of(&spinner.hear()));
    println!(
        "  {:?}",
        world.engine().slot_report().expect("it is enforced").rows[0]
    );
    let mut run = Run {
        late_ns: Vec::new(),
        peer_ns: Vec::new(),
        switch_ns: Vec::new(),
        lost: 0,
        slots: 0,
    };
    for tick in begin..begin + periods * 10 {
        let column = (tick % 10) as u32;
        if column >= last {
            continue;
        }
        let player = (column / 2 % 2) as usize;
        let begin_ns = epoch_ns + tick * SLOT_NS;
        run.slots += 1;
        let Some(start_ns) = start_ns(&gaps[player], begin_ns) else {
            run.lost += 1;
            continue;
        };
        if !column.is_multiple_of(2) {
            continue;
        }
        run.late_ns.push(start_ns - begin_ns);
        // Where the other one had the slot before.
        let other = &gaps[1 - player];
        let stops = other.partition_point(|&(stop, _)| stop < start_ns);
        if column > 0
            && let Some(&(stop, _)) = stops.checked_sub(1).map(|last| &other[last])
            && stop + 300_000 > start_ns
        {
            run.switch_ns.push(start_ns - stop);
        }
    }
    run.late_ns.sort_unstable();
    peer_ns.sort_unstable();
    run.peer_ns = peer_ns;
    run.switch_ns.sort_unstable();
    run
}

/// The time between two programs that take turns under plain Linux.
fn ordinary_switch_ns(seconds: u64) -> u64 {
    let length = seconds.to_string();
    let mut spinners = [0, 1].map(|_| Program::start(&["spinner", &length]));
    let [one, other] = spinners.each_mut().map(|spinner| gaps_of(&spinner.hear()));
    let mut switch_ns: Vec<u64> = one
        .iter()
        .filter_map(|&(stop, _)| {
            let next = other.partition_point(|&(_, start)| start < stop);
            let start = other.get(next)?.1;
            (start < stop + 300_000).then_some(start - stop)
        })
        .collect();
    switch_ns.sort_unstable();
    percentile(&switch_ns, 50)
}

/// How far apart two schedulees start in the same column on two CPUs, in two of ten slots.
fn gang(seconds: u64) -> Option<Vec<u64>> {
    let cpus = [0, shared_cpu()];
    if cpus[1] == 0 {
        return None;
    }
    let world = World::with_cpus(None, 20 * MS, &cpus.map(|cpu| cpu as u32));
    let length = (seconds + 2).to_string();
    let mut spinners = [0, 1].map(|_| Program::start_on(&cpus, &["spinner", &length]));
    // Rivals, so that the spinners have no CPU of their own before the slots.
    let hogs = [0, 1].map(|_| Program::start_on(&cpus, &["hog"]));
    world.enter_all(&[1, 1], &spinners);
    for (name, hog) in ["one", "another"].into_iter().zip(&hogs) {
        world.enter(name, 1000, hog);
    }
    let rows = cpus.map(|cpu| cpu as u32);
    let mut bulletin = Bulletin::open(world.directory.path(), &rows, COLUMNS, 10);
    let epoch_ns = bulletin.reader().geometry().begin_ns(0);
    for (row, spinner) in (0..).zip(&spinners) {
        bulletin.claim(row, 0..2, process(spinner.pid()));
    }
    let mechanism = world.engine().set_timetable(Some(bulletin.reader()));
    assert_eq!(mechanism.expect("starts"), Some(SlotMechanism::Raise));
    let begin = (now_ns() + WARM_UP_NS - epoch_ns) / (SLOT_NS * 10) * 10;
    let gaps = spinners.each_mut().map(|spinner| gaps_of(&spinner.hear()));
    let periods = (seconds - 1) * 10;
    let skews = (0..periods).filter_map(|period| {
        let begin_ns = epoch_ns + (begin + period * 10) * SLOT_NS;
        let one = start_ns(&gaps[0], begin_ns)?;
        Some(one.abs_diff(start_ns(&gaps[1], begin_ns)?))
    });
    let mut skews: Vec<u64> = skews.collect();
    skews.sort_unstable();
    Some(skews)
}

fn judge(name: &str, run: &Run, reached: &mut Vec<Figure>) {
    let of = |sorted: &[u64]| [50, 99, 100].map(|p| microseconds(percentile(sorted, p)));
    let (ours, peer) = (of(&run.late_ns), of(&run.peer_ns));
    println!(
        "{name}: start lateness p50 {:.0}, p99 {:.0}, most {:.0} us of {}; peer {:.0}, {:.0}, {:.0} us of {}; \
         {} of {} slots lost whole",
        ours[0],
        ours[1],
        ours[2],
        run.late_ns.len(),
        peer[0],
        peer[1],
        peer[2],
        run.peer_ns.len(),
        run.lost,
        run.slots
    );
    let most = (2.0 * peer[1]).min(500.0);
    let lateness = Figure::at_most(format!("start lateness p99, {name}"), ours[1], "us", most);
    reached.push(lateness.beside(format!("SCHED_FIFO thread {:.0}", peer[1])));
}

fn main() {
    prorata_user::guardian_entry();
    support::helper::helper_entry();
    if !rustix::process::geteuid().is_root() {
        println!("skipped: it needs root");
        return;
    }
    let seconds = std::env::args().find_map(|word| word.parse().ok());
    let seconds = seconds.unwrap_or(SECONDS).max(4);
    let mut reached = Vec::new();
    let idle = alternate(seconds, 0, 1);
    judge("idle machine, 1 slot in 10 free", &idle, &mut reached);
    let loaded = alternate(seconds, 3, 1);
    judge("loaded machine, 1 slot in 10 free", &loaded, &mut reached);
    let lost = loaded.lost as f64;
    reached.push(Figure::at_most(
        "slots lost whole, 1 in 10 free",
        lost,
        "",
        0.0,
    ));
    let full = alternate(seconds, 3, 0);
    judge("loaded machine, no slot free", &full, &mut reached);
    let ordinary = microseconds(ordinary_switch_ns(seconds.min(10)));
    let switch = microseconds(percentile(&idle.switch_ns, 50));
    println!("switch at a boundary {switch:.1} us, ordinary switch {ordinary:.1} us (medians)");
    reached.push(Figure::at_most(
        "slot switch over ordinary switch",
        switch / ordinary,
        "",
        3.2,
    ));
    if let Some(skews) = gang(seconds) {
        let [p50, p99, most] = [50, 99, 100].map(|p| microseconds(percentile(&skews, p)));
        println!(
            "gang of two: skew p50 {p50:.0}, p99 {p99:.0}, most {most:.0} us of {}",
            skews.len()
        );
        let bound = microseconds(percentile(&idle.late_ns, 99));
        reached.push(Figure::at_most("gang skew p99", p99, "us", bound));
    }
    figures::keep(env!("CARGO_TARGET_TMPDIR"), "slots", &reached);
}
