//! Instructions that a switch costs, counted in a machine whose clock counts
//! instructions (one a nanosecond), under Linux's own scheduler, under the
//! minimal one and under ours. On one CPU that is never idle, so that time is
//! nothing else.
//!
//! Run by hand with `--measure` it does the measurement where it is, with
//! `--measure-stride` or `--measure-lottery` under our scheduler.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use prorata_kernel::scheduler::{Options, Policy, Queues, Scheduler, Scope};
use prorata_report::figures::{self, Figure, Quantity};

/// The oldest series that is supported, so that figures can be compared for long.
const KERNEL: &str = "6.18";
/// Just after a boot a switch is dearer. (This is a time of the machine: one
/// second is 10^9 instructions, and takes some ten times as long.)
const WARM_UP: Duration = Duration::from_secs(2);
/// Switches in a batch, and batches. The cheapest batch is the one in which
/// the kernel did nothing else.
const SWITCHES: u32 = 4000;
const BATCHES: u32 = 9;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("--measure") => measure(),
        Some("--measure-stride") => measure_under(Policy::Stride),
        Some("--measure-lottery") => measure_under(Policy::Lottery),
        Some("--echo") => echo(),
        Some("--yield") => loop {
            thread::yield_now();
        },
        _ => return compare(),
    }
    ExitCode::SUCCESS
}

/// Starts two machines and sets what they count side by side.
fn compare() -> ExitCode {
    let runs = [
        in_machine(&[], "--measure"),
        in_machine(&["floor"], "--measure"),
        in_machine(&[], "--measure-stride"),
        in_machine(&[], "--measure-lottery"),
    ];
    let [Some(own), Some(floor), Some(stride), Some(lottery)] = runs else {
        eprintln!("no machine to measure in: see `prorata vm fetch`");
        return ExitCode::FAILURE;
    };
    let mut all = Vec::new();
    for (index, what) in ["pipe round trip", "yield to another and back"]
        .into_iter()
        .enumerate()
    {
        let (own, floor) = (own[index], floor[index]);
        println!("{what}: {own:.0} instructions under EEVDF");
        let others = [
            ("the minimal sched_ext scheduler", floor, None),
            ("stride scheduling", stride[index], Some(floor)),
            ("lottery scheduling", lottery[index], Some(floor)),
        ];
        for (under, measured, against) in others {
            let ratio = measured / floor;
            println!("  {measured:.0} under {under}: {ratio:.3} times the minimal one's");
            all.push(Figure {
                name: format!("{what} under {under}"),
                paper: None,
                peer: Some(Quantity::Words(match against {
                    None => format!("EEVDF: {own:.0}"),
                    Some(floor) => format!("minimal: {floor:.0}"),
                })),
                measured,
                unit: "instructions".to_owned(),
                target: None,
                ok: true,
            });
        }
    }
    // A bench runs in its package's directory, beside which the target
    // directory need not be; cargo makes the latter's `tmp` and says where.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .expect("it is below the target directory");
    figures::write(&target.join("bench/switches.json"), &all).expect("figures can be written");
    ExitCode::SUCCESS
}

/// What this program, told to measure, writes in a machine, run by `prorata`
/// with these arguments before it.
fn in_machine(under: &[&str], measure: &str) -> Option<[f64; 2]> {
    let prorata = env!("CARGO_BIN_EXE_prorata");
    let mut command = Command::new(prorata);
    command.args(["vm", "run", "--icount", "--kernel", KERNEL, "--"]);
    if !under.is_empty() {
        command.arg(prorata).args(under);
    }
    let output = command
        .arg(std::env::current_exe().ok()?)
        .arg(measure)
        .stderr(Stdio::inherit())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut figures = text.split_whitespace().map(str::parse);
    Some([figures.next()?.ok()?, figures.next()?.ok()?])
}

fn measure_under(policy: Policy) {
    let scheduler = Scheduler::load(&Options {
        policy,
        quantum_ns: 20_000_000,
        scope: Scope::All,
        queues: Queues::Global,
    })
    .expect("it loads");
    measure();
    if let Some(failure) = scheduler.failure() {
        panic!("{failure}");
    }
}

/// Writes the instructions of a pipe round trip and of a yield until the
/// next, with another process yielding in between.
fn measure() {
    let begin = Instant::now();
    let mut echo = Partner::start("--echo");
    while begin.elapsed() < WARM_UP {
        echo.round_trips(SWITCHES);
    }
    println!("{:.0}", cheapest(|| echo.round_trips(SWITCHES)));
    drop(echo);
    let _partner = Partner::start("--yield");
    let yields = || (0..SWITCHES).for_each(|_| thread::yield_now());
    yields();
    println!("{:.0}", cheapest(yields));
}

/// Nanoseconds that one of the switches takes in the cheapest batch.
fn cheapest(mut batch: impl FnMut()) -> f64 {
    let mut times = (0..BATCHES).map(|_| {
        let begin = Instant::now();
        batch();
        begin.elapsed().as_nanos() as f64 / f64::from(SWITCHES)
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

/// Gives every byte back. The standard library's streams would buffer.
fn echo() {
    let mut byte = [0];
    while rustix::io::read(rustix::stdio::stdin(), &mut byte) == Ok(1) {
        if rustix::io::write(rustix::stdio::stdout(), &byte) != Ok(1) {
            return;
        }
    }
}
