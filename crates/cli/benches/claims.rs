//! Claims and frees of a slot by socket, beside the smallest request that a daemon answers: its status.
//! A claim that ends within ten seconds waits for no disk; a lasting one is in the journal before the
//! answer.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use prorata_protocol::{Connection, DaemonPaths, Request};
use prorata_report::figures::{self, Figure};
use prorata_slots::{Cell, Level, Runs, SlotRequest, Slots};

/// Calls of each kind in a batch, and batches, of which the median counts.
const CALLS: u32 = 200;
const BATCHES: usize = 15;
/// Largest ratio of a call about a slot to a status.
const LIMIT: f64 = 2.0;
/// The client whose slots they are.
const CLIENT: &str = "schedulee";
const CELL: Cell = Cell { row: 0, column: 5 };
/// How long a short claim holds.
const SHORT_NS: u64 = 5_000_000_000;

fn main() {
    let directory = tempfile::tempdir().expect("there is room");
    let socket = directory.path().join("socket");
    let daemon = Daemon::start(&socket);
    let mut slots = Slots::open(Some(&socket)).expect("a table is open");
    let begun = (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        slots.claim(vec![request(Some(SHORT_NS))]).is_ok()
    });
    assert!(begun, "the client does not begin");
    slots.free(vec![CELL]).expect("it answers");
    let paths = DaemonPaths::to_ask(Some(&socket)).expect("it is a path");
    let mut connection = Connection::open(&paths.socket).expect("it runs");
    let mut times: [Vec<f64>; 3] = Default::default();
    for _ in 0..BATCHES {
        times[0].push(mean_us(|| {
            connection.call(&Request::Status).expect("it answers");
        }));
        times[1].push(mean_us(|| claim_and_free(&mut slots, Some(SHORT_NS))) / 2.0);
        times[2].push(mean_us(|| claim_and_free(&mut slots, None)) / 2.0);
    }
    let [status, short, lasting] = times.map(median);
    println!(
        "status {status:.1} us, claim or free of a short claim {short:.1} us, of a lasting one {lasting:.1} us"
    );
    let figure = |name: &str, measured| Figure::at_most(name, measured, "times a status", LIMIT);
    let figures = [
        figure("claim or free that waits for no disk", short / status),
        figure("claim or free in the journal", lasting / status),
    ];
    figures::keep(env!("CARGO_TARGET_TMPDIR"), "claims", &figures);
    drop(daemon);
}

fn claim_and_free(slots: &mut Slots, expires_ns: Option<u64>) {
    let claimed = slots.claim(vec![request(expires_ns)]).expect("it answers");
    assert_eq!(claimed.claimed, [CELL], "{claimed:?}");
    slots.free(vec![CELL]).expect("it answers");
}

fn request(expires_ns: Option<u64>) -> SlotRequest {
    SlotRequest {
        cell: CELL,
        runs: Runs::Client(CLIENT.to_owned()),
        level: Level::BestEffort,
        expires_ns,
    }
}

fn mean_us(mut call: impl FnMut()) -> f64 {
    let begin = Instant::now();
    (0..CALLS).for_each(|_| call());
    begin.elapsed().div_f64(f64::from(CALLS)).as_secs_f64() * 1e6
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// A daemon with an open table, and a client that reads until its input ends.
struct Daemon<'a> {
    socket: &'a Path,
    client: Option<Child>,
}

impl<'a> Daemon<'a> {
    fn start(socket: &'a Path) -> Self {
        let run = |arguments: &[&str]| {
            let done = command(socket, arguments).status().expect("it runs");
            assert!(done.success(), "{arguments:?}");
        };
        run(&["start"]);
        // From here on, a failure stops the daemon.
        let mut daemon = Self {
            socket,
            client: None,
        };
        run(&["slots", "open"]);
        let mut client = command(socket, &["run", "-n", CLIENT, "--", "cat"]);
        let client = client.stdin(Stdio::piped()).spawn();
        daemon.client = Some(client.expect("it runs"));
        daemon
    }
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        if let Some(client) = &mut self.client {
            drop(client.stdin.take());
            let _ = client.wait();
        }
        let _ = command(self.socket, &["stop"]).status();
    }
}

fn command(socket: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_prorata"));
    command.args(arguments).env("PRORATA_SOCKET", socket);
    command.stdout(Stdio::null());
    command
}
