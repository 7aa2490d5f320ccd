//! Instructions of a switch from one slot's schedulee to the next one's, beside those of an ordinary
//! switch at the end of a turn (2005, Table 4.1). The bench runs Linux's own scheduler and ours in a
//! micro-VM, whose clock counts instructions (one a nanosecond). Two programs that read the clock all
//! the time take turns on its one CPU: what they miss between two readings is a switch, with all that
//! the kernel does for it, the timer's interrupt included.
//!
//! With `--measure` the bench measures on this host.

mod machine;

use std::hint::black_box;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use prorata_core::slots::geometry::Geometry;
use prorata_core::slots::word::Word;
use prorata_kernel::scheduler::{
    BASE, InSlot, Mechanisms, Options, Policy, Queues, Scheduler, Scope, Ticket,
};
use prorata_report::figures::{self, Figure, Quantity};
use rustix::time::{ClockId, clock_gettime};

/// The oldest supported series, so that figures stay comparable.
const KERNEL: &str = "6.18";
const MEMORY: &str = "4096";
const SLOT_NS: u64 = 10_000_000;
const OPTIONS: Options = Options {
    policy: Policy::Stride,
    quantum_ns: SLOT_NS,
    scope: Scope::All,
    queues: Queues::One,
    hybrid: Mechanisms::ALL,
};
/// A period of ten slots, and a table as large as tables may be.
const SMALL: (u32, u32) = (1, 10);
const LARGE: (u32, u32) = (25, 4_096);
/// Processes that sleep beside the two.
const CROWD: usize = 10_000;
/// Times without the CPU that are noted, and the shortest one.
const MOST_GAPS: usize = 100_000;
const SHORTEST_NS: u64 = 1_000;
/// How long the two take turns. (One second of the micro-VM is 10^9 instructions.)
const TURNS: Duration = Duration::from_secs(3);
const UNDER: [&str; 5] = [
    "at the end of a turn under EEVDF",
    "at the end of a turn under hybrid stride scheduling",
    "of slots, 9 claimed",
    "of slots, 92,160 claimed",
    "of slots, beside 10,000 processes",
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("--measure") => measure_all(),
        Some("--spin") => spin(),
        Some("--crowd") => crowd(),
        _ => return compare(),
    }
    ExitCode::SUCCESS
}

/// Measures in a micro-VM and compares the results.
fn compare() -> ExitCode {
    let options = [
        "--icount", "--kernel", KERNEL, "--memory", MEMORY, "--limit", "1200",
    ];
    let Some(text) = machine::said_in(&options, &["--measure"]) else {
        eprintln!("no kernel for a micro-VM: run `prorata vm fetch`");
        return ExitCode::FAILURE;
    };
    let counted: Vec<f64> = text
        .split_whitespace()
        .map_while(|word| word.parse().ok())
        .collect();
    let &[_, ordinary, small, _, _] = counted.as_slice() else {
        eprintln!("the micro-VM has failed: {text}");
        return ExitCode::FAILURE;
    };
    let mut all = Vec::new();
    for (number, (under, measured)) in UNDER.into_iter().zip(counted).enumerate() {
        let (peer, name, limit) = match number {
            ..=2 => (ordinary, UNDER[1], 1.5),
            _ => (small, UNDER[2], 1.01),
        };
        println!(
            "switch {under}: {measured:.0} instructions, {:.3} of {name}",
            measured / peer
        );
        if number < 2 {
            continue;
        }
        all.push(Figure {
            name: format!("switch {under}"),
            paper: (number == 2).then(|| Quantity::Words("3.2 ordinary ones".to_owned())),
            peer: Some(Quantity::Words(format!("{name}: {peer:.0}"))),
            measured,
            unit: "instructions".to_owned(),
            target: Some(Quantity::Number((peer * limit).round())),
            ok: measured <= peer * limit,
        });
    }
    figures::keep(env!("CARGO_TARGET_TMPDIR"), "slot_switches", &all);
    ExitCode::SUCCESS
}

fn measure_all() {
    report(&switches_ns(None));
    machine::under(&OPTIONS, |scheduler| {
        report(&switches_ns(Some((scheduler, None))))
    });
    for (shape, crowd) in [(SMALL, 0), (LARGE, 0), (SMALL, CROWD)] {
        let crowd = (crowd > 0).then(Crowd::start);
        machine::under(&OPTIONS, |scheduler| {
            report(&switches_ns(Some((scheduler, Some(shape)))));
        });
        drop(crowd);
    }
}

/// Prints the median of all switches.
fn report(switches_ns: &[u64]) {
    let mut sorted = switches_ns.to_vec();
    sorted.sort_unstable();
    let count = sorted.len();
    assert!(count > 100, "{count} switches");
    eprintln!(
        "{count} switches, {} to {} instructions",
        sorted[0],
        sorted[count - 1]
    );
    println!("{}", sorted[count / 2]);
}

/// Two programs take turns: what passes from the last reading of one to the first one of the other.
fn switches_ns(under: Option<(&Scheduler, Option<(u32, u32)>)>) -> Vec<u64> {
    let mut players = [Player::start(), Player::start()];
    if let Some((scheduler, table)) = under {
        for (node, player) in (1..).zip(&players) {
            let tickets = [Ticket {
                amount: 100,
                currency: BASE,
            }];
            scheduler
                .set_tickets(node, &tickets)
                .expect("there is room");
            scheduler.give(node, player.0.id()).expect("it runs");
        }
        if let Some(shape) = table {
            claim_all(scheduler, shape);
        }
    }
    let [one, other] = players.each_mut().map(Player::gaps);
    let switches = one.iter().filter_map(|&(stop, _)| {
        let next = other.partition_point(|&(_, start)| start < stop);
        let start = other.get(next)?.1;
        // Else another program ran in between.
        (start - stop < SLOT_NS / 10).then_some(start - stop)
    });
    switches.collect()
}

/// The two have nine of ten slots in turn, on the only CPU and on those of further rows, which do not
/// exist.
fn claim_all(scheduler: &Scheduler, (rows, columns): (u32, u32)) {
    let geometry = Geometry::new(rows, columns, SLOT_NS, now_ns()).expect("it is a shape");
    let cpus: Vec<u32> = (0..rows).collect();
    scheduler
        .open_timetable(&geometry, &cpus)
        .expect("there is memory");
    for node in [1, 2] {
        scheduler
            .name_schedulee(node, InSlot::Node(node))
            .expect("a table is open");
    }
    let words = (0..geometry.cells() as u32).map(|cell| {
        let word = Word {
            schedulee: 1 + cell % 2,
            distance: 1,
            expiry: 0,
        };
        if cell % 10 == 9 { 0 } else { word.pack() }
    });
    let words: Vec<u64> = words.collect();
    scheduler.publish_slots(&words, 0).expect("a table is open");
}

/// A program that reads the clock all the time.
struct Player(Child);

impl Player {
    fn start() -> Self {
        Self(role("--spin"))
    }

    /// When it was without the CPU: from the last reading before to the first one after.
    fn gaps(&mut self) -> Vec<(u64, u64)> {
        let output = self.0.stdout.take().expect("it is a pipe");
        let lines = BufReader::new(output).lines();
        let gaps = lines.map(|line| {
            let line = line.expect("it writes text");
            let (stop, start) = line.split_once(' ').expect("there are two");
            (
                stop.parse().expect("a time"),
                start.parse().expect("a time"),
            )
        });
        let gaps = gaps.collect();
        let _ = self.0.wait();
        gaps
    }
}

/// Reads the clock, and prints when it could not.
fn spin() {
    let end_ns = now_ns() + TURNS.as_nanos() as u64;
    // All pages are there before.
    let mut gaps = black_box(vec![(1, 1); MOST_GAPS]);
    let mut count = 0;
    let mut last_ns = now_ns();
    while last_ns < end_ns {
        let now_ns = now_ns();
        if now_ns - last_ns > SHORTEST_NS && count < MOST_GAPS {
            gaps[count] = (last_ns, now_ns);
            count += 1;
        }
        last_ns = now_ns;
    }
    for (stop, start) in &gaps[..count] {
        println!("{stop} {start}");
    }
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Many processes that sleep until this value ends.
struct Crowd(Child);

impl Crowd {
    fn start() -> Self {
        let mut child = role("--crowd");
        let output = child.stdout.as_mut().expect("it is a pipe");
        output.read_exact(&mut [0]).expect("all have begun");
        Self(child)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the crowd. Each process ends with this one.
fn crowd() {
    for _ in 0..CROWD {
        // SAFETY: the child calls nothing but system calls until it ends.
        let forked = unsafe { libc::fork() };
        assert!(forked >= 0, "there is no room for {CROWD} processes");
        if forked == 0 {
            // SAFETY: these calls touch no memory.
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                loop {
                    libc::pause();
                }
            }
        }
    }
    let _ = rustix::io::write(rustix::stdio::stdout(), b"x");
    loop {
        std::thread::park();
    }
}

/// This program in another role.
fn role(role: &str) -> Child {
    let program = std::env::current_exe().expect("it runs");
    let child = Command::new(program)
        .arg(role)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn();
    child.expect("it runs")
}
