//! Instructions per context switch, and instructions to finish a fixed amount of work. The
//! bench runs Linux's own scheduler, the minimal one and ours, one after another in the same
//! micro-VM, whose clock counts instructions (one a nanosecond). Its one CPU is never idle, so
//! time equals instructions.
//!
//! With `--measure` the bench measures on this host.

mod machine;

use std::io::{Read as _, Write as _};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use prorata_core::slots::geometry::Geometry;
use prorata_kernel::Floor;
use prorata_kernel::scheduler::{Mechanisms, Options, Policy, Queues, Scope};
use prorata_report::figures::{self, Figure, Quantity};

/// The oldest supported series, so that figures stay comparable.
const KERNEL: &str = "6.18";
/// Time until switches are as cheap as usual after a boot. (One second of the
/// micro-VM is 10^9 instructions, and takes some ten seconds.)
const WARM_UP: Duration = Duration::from_secs(2);
/// Switches per batch, and batches. In the cheapest batch the kernel did nothing
/// else.
const SWITCHES: u32 = 4000;
const BATCHES: u32 = 9;

/// Messaging like hackbench's: numbers of senders and receivers, and of messages
/// from each sender to each receiver.
const GROUP: usize = 8;
const MESSAGES: usize = 40;

/// Number of computing programs, and the loops of each.
const COMPUTING: usize = 3;
const ROUNDS: u64 = 20_000_000;

/// A measured quantity.
struct What {
    name: &'static str,
    /// Its peer among [`UNDER`].
    peer: usize,
    /// Largest ratio of our cost to the peer's.
    limit: f64,
}

const EEVDF: usize = 0;
const MINIMAL: usize = 1;
const WHAT: [What; 4] = [
    What {
        name: "pipe round trip",
        peer: MINIMAL,
        limit: 1.10,
    },
    What {
        name: "yield to another",
        peer: MINIMAL,
        limit: 1.10,
    },
    What {
        name: "message in a group",
        peer: MINIMAL,
        limit: 1.10,
    },
    What {
        name: "work of three that compute",
        peer: EEVDF,
        limit: 1.01,
    },
];
const STRIDE: usize = 2;
const UNDER: [&str; 5] = [
    "EEVDF",
    "the minimal scheduler",
    "stride scheduling",
    "lottery scheduling",
    "hybrid stride scheduling",
];

/// Largest ratio of a round trip beside an empty timetable to one without a timetable.
const EMPTY_TABLE: f64 = 1.001;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("--measure") => measure_all(),
        Some("--echo") => echo(),
        Some("--yield") => give_way(),
        _ => return compare(),
    }
    ExitCode::SUCCESS
}

/// Measures in a micro-VM and compares the results.
fn compare() -> ExitCode {
    let Some((counted, beside_table)) = in_machine() else {
        eprintln!("no kernel for a micro-VM: run `prorata vm fetch`");
        return ExitCode::FAILURE;
    };
    let mut all = Vec::new();
    for (index, what) in WHAT.into_iter().enumerate() {
        let What { name, peer, limit } = what;
        let counted = counted.map(|under| under[index]);
        let least = counted[peer];
        println!("{name}, in instructions:");
        for (number, (under, measured)) in UNDER.into_iter().zip(counted).enumerate() {
            let ratio = measured / least;
            println!(
                "  {measured:.0} under {under}: {ratio:.3} of {}",
                UNDER[peer]
            );
            if number <= MINIMAL {
                continue;
            }
            all.push(Figure {
                name: format!("{name} under {under}"),
                paper: None,
                peer: Some(Quantity::Words(format!("{}: {least:.0}", UNDER[peer]))),
                measured,
                unit: "instructions".to_owned(),
                target: Some(Quantity::Number((least * limit).round())),
                ok: ratio <= limit,
            });
        }
    }
    let without = counted[STRIDE][0];
    println!(
        "pipe round trip beside an empty timetable: {:.4}",
        beside_table / without
    );
    all.push(Figure {
        name: "pipe round trip beside an empty timetable".to_owned(),
        paper: None,
        peer: Some(Quantity::Words(format!("without one: {without:.0}"))),
        measured: beside_table,
        unit: "instructions".to_owned(),
        target: Some(Quantity::Number((without * EMPTY_TABLE).round())),
        ok: beside_table <= without * EMPTY_TABLE,
    });
    figures::keep(env!("CARGO_TARGET_TMPDIR"), "switches", &all);
    ExitCode::SUCCESS
}

/// Measures and prints inside the micro-VM: everything, and a round trip beside an empty timetable.
fn in_machine() -> Option<([[f64; WHAT.len()]; UNDER.len()], f64)> {
    let text = machine::said_in(&["--icount", "--kernel", KERNEL], &["--measure"])?;
    let mut figures = text.split_whitespace().map(str::parse);
    let mut counted = [[0.0; WHAT.len()]; UNDER.len()];
    for figure in counted.as_flattened_mut() {
        *figure = figures.next()?.ok()?;
    }
    Some((counted, figures.next()?.ok()?))
}

fn measure_all() {
    warm_up();
    measure();
    let floor = Floor::load().expect("it loads");
    measure();
    floor.report().expect("it was not unloaded");
    drop(floor);
    for (policy, hybrid) in [
        (Policy::Stride, Mechanisms::NONE),
        (Policy::Lottery, Mechanisms::NONE),
        (Policy::Stride, Mechanisms::ALL),
    ] {
        machine::under(&options(policy, hybrid), |_| measure());
    }
    machine::under(&options(Policy::Stride, Mechanisms::NONE), |scheduler| {
        let geometry = Geometry::new(1, Geometry::DEFAULT_COLUMNS, Geometry::DEFAULT_SLOT_NS, 0);
        let geometry = geometry.expect("it is a shape");
        scheduler
            .open_timetable(&geometry, &[0])
            .expect("there is memory");
        measure_round_trip();
    });
}

fn options(policy: Policy, hybrid: Mechanisms) -> Options {
    Options {
        policy,
        quantum_ns: 20_000_000,
        scope: Scope::All,
        queues: Queues::One,
        hybrid,
    }
}

fn warm_up() {
    let begin = Instant::now();
    let mut echo = Partner::start("--echo");
    while begin.elapsed() < WARM_UP {
        echo.round_trips(SWITCHES);
    }
}

/// Prints the instructions of a pipe round trip, of a pair of yields between two
/// processes, and of a message.
fn measure() {
    measure_round_trip();
    let mut partner = Partner::start("--yield");
    partner.await_byte();
    let yields = || (0..SWITCHES).for_each(|_| thread::yield_now());
    yields();
    println!("{:.0}", cheapest(SWITCHES, yields));
    drop(partner);
    let messages = (GROUP * GROUP * MESSAGES) as u32;
    send_messages();
    println!("{:.0}", cheapest(messages, send_messages));
    println!("{:.0}", cheapest(1, compute));
}

fn measure_round_trip() {
    let mut echo = Partner::start("--echo");
    echo.round_trips(SWITCHES);
    println!("{:.1}", cheapest(SWITCHES, || echo.round_trips(SWITCHES)));
}

/// Runs computing programs until all have finished.
fn compute() {
    let go_round = || {
        for round in 0..ROUNDS {
            std::hint::black_box(round);
        }
    };
    thread::scope(|scope| {
        for _ in 0..COMPUTING {
            scope.spawn(go_round);
        }
    });
}

/// Runs threads that send messages through pipes until all have arrived.
fn send_messages() {
    let pipes = (0..GROUP).map(|_| std::io::pipe().expect("there are pipes"));
    let (outputs, inputs): (Vec<_>, Vec<_>) = pipes.unzip();
    thread::scope(|scope| {
        for mut output in outputs {
            scope.spawn(move || {
                let mut message = [0; 100];
                for _ in 0..GROUP * MESSAGES {
                    output.read_exact(&mut message).expect("it is sent");
                }
            });
        }
        for _ in 0..GROUP {
            scope.spawn(|| {
                for mut input in inputs.iter().cycle().take(GROUP * MESSAGES) {
                    input.write_all(&[0; 100]).expect("it is received");
                }
            });
        }
    });
}

/// Nanoseconds per operation in the cheapest batch.
fn cheapest(count: u32, mut batch: impl FnMut()) -> f64 {
    let mut times = (0..BATCHES).map(|_| {
        let begin = Instant::now();
        batch();
        begin.elapsed().as_nanos() as f64 / f64::from(count)
    });
    let first = times.next().expect("there are batches");
    times.fold(first, f64::min)
}

/// This program in another role.
struct Partner(Child);

impl Partner {
    fn start(role: &str) -> Self {
        let program = std::env::current_exe().expect("it runs");
        let child = Command::new(program)
            .arg(role)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        Self(child.expect("it runs"))
    }

    /// A process that has not started yet would not take part in the yields.
    fn await_byte(&mut self) {
        let output = self.0.stdout.as_mut().expect("it is a pipe");
        output.read_exact(&mut [0]).expect("it begins");
    }

    fn round_trips(&mut self, count: u32) {
        let input = self.0.stdin.as_mut().expect("it is a pipe");
        let output = self.0.stdout.as_mut().expect("it is a pipe");
        for _ in 0..count {
            input.write_all(b"x").expect("it listens");
            output.read_exact(&mut [0]).expect("it answers");
        }
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reports that it has started, then yields for ever.
fn give_way() -> ! {
    let _ = rustix::io::write(rustix::stdio::stdout(), b"x");
    loop {
        thread::yield_now();
    }
}

/// Returns every byte. The standard library's streams would buffer.
fn echo() {
    let mut byte = [0];
    while rustix::io::read(rustix::stdio::stdin(), &mut byte) == Ok(1) {
        if rustix::io::write(rustix::stdio::stdout(), &byte) != Ok(1) {
            return;
        }
    }
}
