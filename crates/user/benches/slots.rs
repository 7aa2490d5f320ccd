//! Slots on real processes: how late schedulees start, how far apart the threads of a gang start, how
//! many slots are lost, and what a switch costs (2005, Table 4.1), beside plain `SCHED_FIFO` threads
//! that wake on the same CPU in the same run, at boundaries of the same table where no slot begins.
//!
//! Two schedulees take turns of two slots of 10 ms on one CPU. They read the clock all the time, so
//! their first reading in a slot is their start. Needs root.
//!
//! Some starts are milliseconds late on a virtual machine. So each run counts how often a schedulee
//! lost its CPU in mid-slot for longer than half a millisecond, and the time that the host says it took:
//! no keeper acts there, and no ordinary program may have the CPU.
//!
//! `cargo bench -p prorata-user --bench slots -- 10` takes runs of ten seconds, `-- 600 lost` only counts
//! lost slots for ten minutes, and `-- 10 switches` only times switches.

#[path = "../tests/support/mod.rs"]
mod support;

use prorata_report::figures::{self, Figure, Quantity};
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
    /// What of them was lost while the peer waited for its CPU, too: for a thread of a higher class, or
    /// for the host.
    lost_to_others: usize,
    slots: usize,
    /// Times without the CPU in the middle of slots.
    gaps_ns: Vec<u64>,
    /// That the host took of the CPU, as it says.
    steal_ms: u64,
}

/// Times without the CPU of at least so long count.
const LONG_GAP_NS: u64 = 500_000;
/// A switch takes no longer. Later, another program has had the CPU in between.
const LONGEST_SWITCH_NS: u64 = 300_000;
/// So far from boundaries.
const MARGIN_NS: u64 = 500_000;

/// Time that the host took of a CPU, in ms.
fn steal_ms(cpu: usize) -> u64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let name = format!("cpu{cpu} ");
    let line = stat.lines().find(|line| line.starts_with(&name));
    let steal = line.and_then(|line| line.split_ascii_whitespace().nth(8)?.parse().ok());
    steal.map_or(0, |ticks: u64| ticks * 10)
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

/// What a peer prints.
fn lateness_of(line: &str) -> Vec<u64> {
    let words = line.split_ascii_whitespace();
    words.map(|word| word.parse().expect("a number")).collect()
}

impl Run {
    /// Looks at each slot of these ticks, of which the first `last` columns are claimed. `waits` are those
    /// of the peer.
    fn judge(
        &mut self,
        gaps: &[Vec<Gap>; 2],
        waits: &[(u64, u64)],
        epoch_ns: u64,
        ticks: std::ops::Range<u64>,
        last: u32,
    ) {
        for tick in ticks {
            let column = (tick % 10) as u32;
            if column >= last {
                continue;
            }
            let player = (column / 2 % 2) as usize;
            let begin_ns = epoch_ns + tick * SLOT_NS;
            self.slots += 1;
            let Some(start_ns) = start_ns(&gaps[player], begin_ns) else {
                self.lost += 1;
                let end_ns = begin_ns + SLOT_NS;
                let overlaps = |&(due_ns, late_ns): &(u64, u64)| {
                    late_ns > LONG_GAP_NS && due_ns < end_ns && due_ns + late_ns > begin_ns
                };
                self.lost_to_others += usize::from(waits.iter().any(overlaps));
                continue;
            };
            let middle = begin_ns + MARGIN_NS..begin_ns + SLOT_NS - MARGIN_NS;
            let first = gaps[player].partition_point(|&(stop, _)| stop < middle.start);
            let inside = gaps[player][first..].iter();
            let inside = inside.take_while(|&&(_, start)| start < middle.end);
            let lengths = inside.map(|&(stop, start)| start - stop);
            self.gaps_ns.extend(lengths.filter(|&ns| ns >= LONG_GAP_NS));
            if !column.is_multiple_of(2) {
                continue;
            }
            self.late_ns.push(start_ns - begin_ns);
            // Where the other one had the slot before.
            let other = &gaps[1 - player];
            let stops = other.partition_point(|&(stop, _)| stop < start_ns);
            if column > 0
                && let Some(&(stop, _)) = stops.checked_sub(1).map(|last| &other[last])
                && stop + LONGEST_SWITCH_NS > start_ns
            {
                self.switch_ns.push(start_ns - stop);
            }
        }
    }
}

/// Two schedulees on a CPU, and so many slots that are nobody's.
fn alternate(seconds: u64, hogs: usize, free: u32, expected: &[SlotMechanism]) -> Run {
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
    let mechanism = mechanism.expect("starts").expect("there is a table");
    assert!(expected.contains(&mechanism), "{mechanism:?}");
    let begin = (now_ns() + WARM_UP_NS - epoch_ns) / (SLOT_NS * 10) * 10;
    let periods = seconds * 1000 * MS / SLOT_NS / 10;
    // Five wakes a period, at odd ticks.
    let first_ns = epoch_ns + (begin + 1) * SLOT_NS;
    let (interval, count) = (2 * SLOT_NS, periods * 5);
    let arguments = [first_ns, interval, count].map(|number| number.to_string());
    let steal_before_ms = steal_ms(shared_cpu());
    let mut peer = Program::start(&["peer", &arguments[0], &arguments[1], &arguments[2]]);
    let mut peer_ns = lateness_of(&peer.hear());
    let dues_ns = (0..).map(|wake| first_ns + wake * interval);
    let waits: Vec<(u64, u64)> = dues_ns.zip(peer_ns.iter().copied()).collect();
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
        lost_to_others: 0,
        slots: 0,
        gaps_ns: Vec::new(),
        steal_ms: steal_ms(shared_cpu()) - steal_before_ms,
    };
    run.judge(&gaps, &waits, epoch_ns, begin..begin + periods * 10, last);
    run.late_ns.sort_unstable();
    peer_ns.sort_unstable();
    run.peer_ns = peer_ns;
    run
}

/// From each last reading of one program to the next first one of the other, in order.
fn switches_ns(one: &[Gap], other: &[Gap]) -> Vec<u64> {
    let switches = one.iter().filter_map(|&(stop, _)| {
        let next = other.partition_point(|&(_, start)| start < stop);
        let start = other.get(next)?.1;
        (start < stop + LONGEST_SWITCH_NS).then_some(start - stop)
    });
    switches.collect()
}

/// Two programs take turns of a slot's length: by tickets under the engine, or under plain Linux.
fn ordinary_switches_ns(seconds: u64, under_engine: bool) -> Vec<u64> {
    let length = seconds.to_string();
    let mut spinners = [0, 1].map(|_| Program::start(&["spinner", &length]));
    let _world = under_engine.then(|| {
        let world = World::new(None, SLOT_NS);
        world.enter_all(&[1, 1], &spinners);
        world
    });
    let [one, other] = spinners.each_mut().map(|spinner| gaps_of(&spinner.hear()));
    switches_ns(&one, &other)
}

/// The mean of 100 switches, as in Table 4.1: the median over all hundreds, and the least and most.
fn means_of_100(switches_ns: &[u64]) -> [f64; 3] {
    let hundreds = switches_ns.chunks_exact(100);
    let means = hundreds.map(|hundred| hundred.iter().sum::<u64>() / 100);
    let mut means: Vec<u64> = means.collect();
    means.sort_unstable();
    [50, 1, 100].map(|p| microseconds(percentile(&means, p)))
}

/// Table 4.1 of 2005: a slot switch beside an ordinary one of Linux, 29 us over 9 us in the paper.
fn judge_switches(seconds: u64, slot_switches_ns: &[u64], reached: &mut Vec<Figure>) {
    let engine = means_of_100(&ordinary_switches_ns(seconds, true));
    let linux = means_of_100(&ordinary_switches_ns(seconds, false));
    let slot = means_of_100(slot_switches_ns);
    if linux[0] == 0.0 {
        println!("other programs run in between most switches: no hundred to compare with");
        return;
    }
    for (name, [mean, least, most]) in [("slot", slot), ("engine's", engine), ("Linux's", linux)] {
        println!("{name} switch: mean of 100 {mean:.1} us ({least:.1} to {most:.1})");
    }
    let (ratio, lost_us) = (slot[0] / linux[0], slot[0] - linux[0]);
    let name = "slot switch over Linux's switch";
    reached.push(Figure {
        paper: Some(Quantity::Number(3.2)),
        ..Figure::at_most(name, ratio, "times", 3.2)
    });
    // 2 % of a slot of 1 ms.
    let name = "slot switch beyond Linux's switch";
    reached.push(Figure {
        paper: Some(Quantity::Number(20.0)),
        ..Figure::at_most(name, lost_us, "us", 20.0)
    });
}

/// How far apart two schedulees start in the same column on two CPUs, in two of ten slots, and how far
/// apart two peers wake there.
fn gang(seconds: u64) -> Option<[Vec<u64>; 2]> {
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
    let periods = (seconds - 1) * 10;
    // In slots that are nobody's.
    let first_ns = epoch_ns + (begin + 5) * SLOT_NS;
    let arguments = [first_ns, 10 * SLOT_NS, periods].map(|number| number.to_string());
    let arguments = ["peer", &arguments[0], &arguments[1], &arguments[2]];
    let mut peers = cpus.map(|cpu| Program::start_on(&[cpu], &arguments));
    let gaps = spinners.each_mut().map(|spinner| gaps_of(&spinner.hear()));
    let [one, other] = peers.each_mut().map(|peer| lateness_of(&peer.hear()));
    let both = one.iter().zip(&other);
    let mut apart: Vec<u64> = both.map(|(one, other)| one.abs_diff(*other)).collect();
    apart.sort_unstable();
    let skews = (0..periods).filter_map(|period| {
        let begin_ns = epoch_ns + (begin + period * 10) * SLOT_NS;
        let one = start_ns(&gaps[0], begin_ns)?;
        Some(one.abs_diff(start_ns(&gaps[1], begin_ns)?))
    });
    let mut skews: Vec<u64> = skews.collect();
    skews.sort_unstable();
    Some([skews, apart])
}

fn judge(name: &str, run: &Run, reached: &mut Vec<Figure>) {
    let of = |sorted: &[u64]| [50, 99, 100].map(|p| microseconds(percentile(sorted, p)));
    let (ours, peer) = (of(&run.late_ns), of(&run.peer_ns));
    println!(
        "{name}: start lateness p50 {:.0}, p99 {:.0}, most {:.0} us of {}; peer {:.0}, {:.0}, {:.0} us of {}; \
         {} of {} slots lost whole, {} of them while the peer waited; {} gaps of {:.0} us at most in mid-slot, {} ms stolen by the host",
        ours[0],
        ours[1],
        ours[2],
        run.late_ns.len(),
        peer[0],
        peer[1],
        peer[2],
        run.peer_ns.len(),
        run.lost,
        run.slots,
        run.lost_to_others,
        run.gaps_ns.len(),
        microseconds(run.gaps_ns.iter().copied().max().unwrap_or(0)),
        run.steal_ms
    );
    let most = (2.0 * peer[1]).min(500.0);
    let lateness = Figure::at_most(format!("start lateness p99, {name}"), ours[1], "us", most);
    reached.push(lateness.beside(format!("SCHED_FIFO thread {:.0}", peer[1])));
}

const RAISED: &[SlotMechanism] = &[SlotMechanism::Raise];

/// Where nothing may be raised.
const BY_HAND: &[SlotMechanism] = &[SlotMechanism::Lower, SlotMechanism::Stop];

const NOBODY: &str = "65534";

/// Repeats the first run as an ordinary user, with no programs but the clients. Returns the 99th
/// percentile of the start lateness, in us.
fn clients_only(seconds: u64) -> f64 {
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join("slots");
    let everyone = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path(), everyone).expect("the directory is ours");
    std::fs::copy("/proc/self/exe", &program).expect("there is room for a copy");
    let output = std::process::Command::new("setpriv")
        .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"])
        .arg(&program)
        .args(["clients", &seconds.to_string()])
        .current_dir("/")
        .stderr(std::process::Stdio::inherit())
        .output();
    let output = output.expect("setpriv (util-linux) is installed");
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    let last = text.lines().last();
    last.and_then(|line| line.parse().ok())
        .expect("its last line is a number")
}

fn main() {
    prorata_user::guardian_entry();
    support::helper::helper_entry();
    if std::env::args().any(|word| word == "clients") {
        let seconds = std::env::args().find_map(|word| word.parse().ok());
        let run = alternate(seconds.unwrap_or(SECONDS), 0, 1, BY_HAND);
        judge("clients only, no root", &run, &mut Vec::new());
        println!("{}", microseconds(percentile(&run.late_ns, 99)));
        return;
    }
    if !rustix::process::geteuid().is_root() {
        println!("skipped: it needs root");
        return;
    }
    let seconds = std::env::args().find_map(|word| word.parse().ok());
    let seconds = seconds.unwrap_or(SECONDS).max(4);
    let mut reached = Vec::new();
    if std::env::args().any(|word| word == "switches") {
        let run = alternate(seconds, 0, 1, RAISED);
        judge_switches(seconds, &run.switch_ns, &mut reached);
        return;
    }
    if std::env::args().any(|word| word == "lost") {
        let loaded = alternate(seconds, 3, 1, RAISED);
        judge("loaded machine, 1 slot in 10 free", &loaded, &mut reached);
        return;
    }
    let idle = alternate(seconds, 0, 1, RAISED);
    judge("idle machine, 1 slot in 10 free", &idle, &mut reached);
    let loaded = alternate(seconds, 3, 1, RAISED);
    judge("loaded machine, 1 slot in 10 free", &loaded, &mut reached);
    let lost = loaded.lost as f64;
    reached.push(Figure::at_most(
        "slots lost whole, 1 in 10 free",
        lost,
        "",
        0.0,
    ));
    let full = alternate(seconds, 3, 0, RAISED);
    judge("loaded machine, no slot free", &full, &mut reached);
    let clients = clients_only(seconds);
    reached.push(Figure::at_most(
        "start lateness p99, clients only, no root",
        clients,
        "us",
        1_000.0,
    ));
    judge_switches(seconds, &idle.switch_ns, &mut reached);
    if let Some([skews, peers]) = gang(seconds) {
        let of = |sorted: &[u64]| [50, 99, 100].map(|p| microseconds(percentile(sorted, p)));
        let (ours, peers) = (of(&skews), of(&peers));
        println!(
            "gang of two: skew p50 {:.0}, p99 {:.0}, most {:.0} us of {}; peers {:.0}, {:.0}, {:.0} us",
            ours[0],
            ours[1],
            ours[2],
            skews.len(),
            peers[0],
            peers[1],
            peers[2]
        );
        let most = (2.0 * peers[1]).max(microseconds(percentile(&idle.late_ns, 99)));
        let skew = Figure::at_most("gang skew p99", ours[1], "us", most);
        reached.push(skew.beside(format!("two SCHED_FIFO threads {:.0}", peers[1])));
    }
    figures::keep(env!("CARGO_TARGET_TMPDIR"), "slots", &reached);
}
