//! Real programs at 3:1 beside two loops, under each mechanism of the user engine that can be had
//! here: their shares beside what they are due, and the throughput of a database beside a rival in
//! `SCHED_IDLE`. Programs that are not installed are left out, and named.
//!
//! Arguments: names of programs, if not all; `--seconds N` for each measurement (12).

#[path = "../tests/cli/support/delegated.rs"]
mod delegated;

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use delegated::Delegated;
use prorata_protocol::ClientReport;
use prorata_report::figures::{self, Figure};
use prorata_report::table::{Side, Table};
use tempfile::TempDir;

/// An ordinary user of every Linux.
const NOBODY: u32 = 65_534;
/// Tickets of the programs; their rival has 100.
const TICKETS: &str = "300";
/// Largest difference from what is due, in per cent of it.
const TOLERANCE: f64 = 1.0;
/// Pairs of measurements of throughput.
const PAIRS: usize = 5;
/// At least this part of the throughput beside a rival in `SCHED_IDLE`.
const THROUGHPUT: f64 = 0.88;

/// A program, what must be installed for it, and the script that prepares and runs it in an empty
/// directory until it is killed.
struct Program {
    name: &'static str,
    needs: &'static [&'static str],
    script: &'static str,
}

const PROGRAMS: [Program; 8] = [
    Program {
        name: "ffmpeg",
        needs: &["ffmpeg"],
        script: "exec ffmpeg -v error -nostdin -f lavfi -i testsrc=size=640x360:rate=25 \
                 -c:v mpeg4 -threads 2 -f null -",
    },
    Program {
        name: "make",
        needs: &["make", "gcc"],
        script: "for n in $(seq 60); do echo \"int f$n(int x) { return x * $n; }\" > $n.c; done
                 echo 'all: $(patsubst %.c,%.o,$(wildcard *.c))' > Makefile
                 while :; do make -s -j4; rm -f *.o; done",
    },
    Program {
        name: "pool",
        needs: &["python3"],
        script: "exec python3 -c 'from multiprocessing import Pool
def work(n): return sum(i * i for i in range(n))
with Pool(4) as pool:
    for _ in pool.imap_unordered(work, iter(lambda: 20000, 0)): pass'",
    },
    Program {
        name: "bomb",
        needs: &["sh"],
        script: "while :; do for n in $(seq 20); do sh -c 'for i in $(seq 300); do :; done' &
                 done; wait; done",
    },
    Program {
        name: "stress-ng",
        needs: &["stress-ng"],
        script: "exec stress-ng --quiet --matrix 2 --pipe 1 --switch 1 --timeout 0",
    },
    Program {
        name: "nginx",
        needs: &["nginx", "wrk"],
        script: "echo \"daemon off; pid $PWD/pid; error_log stderr crit; worker_processes 2;
                 events {} http { access_log off; server { listen unix:$PWD/s; listen 127.0.0.1:8327;
                 location / { return 200 hello; } } }\" > conf
                 nginx -p $PWD -c conf & sleep 0.5
                 exec wrk -t2 -c32 -d3600 http://127.0.0.1:8327/",
    },
    Program {
        name: "chat",
        needs: &[],
        script: "while :; do prorata load chat --rooms 2 --users 5 --messages 500; done",
    },
    Program {
        name: "pgbench",
        needs: &["pgbench"],
        script: "$DATABASE; exec pgbench -n -S -c 4 -j 2 -T 3600 -h $PWD bench",
    },
];

/// Starts a database in the present directory. Postgres refuses root.
const DATABASE: &str = r#"
    as=; [ "$(id -u)" -ne 0 ] || { as="setpriv --reuid=65534 --regid=65534 --clear-groups";
        chown 65534:65534 .; }
    bin=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
    $as "$bin/initdb" -D data -A trust -U "$(id -un)" > /dev/null
    $as "$bin/postgres" -D "$PWD/data" -k "$PWD" -c listen_addresses= -c fsync=off &
    server=$!
    until $as "$bin/pg_isready" -q -h "$PWD"; do sleep 0.1; done
    createdb -h "$PWD" bench && pgbench -q -i -s 10 -h "$PWD" bench
"#;

/// Times pgbench for `$SECONDS_TO_RUN` and writes each transaction's time to a log.
const TIMED: &str = r#"eval "$DATABASE"; rm -f log*
    pgbench -n -S -c 4 -j 2 -T "$SECONDS_TO_RUN" -l --log-prefix=log -h "$PWD" bench > said
    kill -INT "$server"; wait"#;
const LOOPS: &str = "while :; do :; done & while :; do :; done";

/// A daemon of a user, in a directory of its own, and what its programs inherit.
struct World {
    directory: TempDir,
    uid: Option<u32>,
    group: Option<Delegated>,
}

impl World {
    fn new(uid: Option<u32>, group: Option<Delegated>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        chown(path, uid, uid).unwrap();
        fs::copy(env!("CARGO_BIN_EXE_prorata"), path.join("prorata")).unwrap();
        let world = Self {
            directory,
            uid,
            group,
        };
        assert!(world.prorata(&["start"]).status.success());
        world
    }

    /// Root's daemon, and those of an ordinary user with and without a control group.
    fn all() -> Vec<Self> {
        if !rustix::process::getuid().is_root() {
            return vec![Self::new(None, None)];
        }
        let delegated = Delegated::to(NOBODY);
        let grouped = delegated.map(|group| Self::new(Some(NOBODY), Some(group)));
        let mut worlds = vec![Self::new(None, None)];
        worlds.extend(grouped);
        worlds.push(Self::new(Some(NOBODY), None));
        worlds
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let own = std::iter::once(self.path().to_owned());
        let paths = own.chain(std::env::split_paths(&path));
        command
            .env("PATH", std::env::join_paths(paths).unwrap())
            .env("PRORATA_SOCKET", self.path().join("socket"))
            .env("HOME", self.path())
            .env("LC_ALL", "C")
            .env("DATABASE", DATABASE)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if let Some(uid) = self.uid {
            command.uid(uid).gid(uid);
        }
        if let Some(group) = &self.group {
            group.admit(&mut command);
        }
        command
    }

    fn prorata(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(self.path().join("prorata"));
        command.args(arguments).stdout(Stdio::piped());
        command.output().unwrap()
    }

    /// Runs a script as a client until it is dropped.
    fn client(&self, name: &'static str, tickets: &str, script: &str) -> Client<'_> {
        let directory = self.path().join(name);
        fs::create_dir_all(&directory).unwrap();
        chown(&directory, self.uid, self.uid).unwrap();
        let mut command = self.command(self.path().join("prorata"));
        command.current_dir(directory);
        command.args(["run", "-t", tickets, "-n", name, "--", "sh", "-c", script]);
        let wrapper = command.spawn().unwrap();
        Client {
            world: self,
            name,
            wrapper,
        }
    }

    fn report(&self, name: &str) -> Option<ClientReport> {
        let clients = self.prorata(&["ps", "--json"]).stdout;
        let clients: Vec<ClientReport> = serde_json::from_slice(&clients).ok()?;
        clients.into_iter().find(|client| client.name == name)
    }

    fn mechanism(&self) -> String {
        let status = self.prorata(&["status", "--json"]).stdout;
        let status: serde_json::Value = serde_json::from_slice(&status).unwrap();
        status["mechanism"].as_str().unwrap_or("none").to_owned()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.prorata(&["stop"]);
    }
}

struct Client<'a> {
    world: &'a World,
    name: &'static str,
    wrapper: Child,
}

impl Drop for Client<'_> {
    fn drop(&mut self) {
        self.world.prorata(&["kill", "--signal", "KILL", self.name]);
        let _ = self.wrapper.wait();
        let _ = fs::remove_dir_all(self.world.path().join(self.name));
    }
}

fn is_installed(program: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .stdout(Stdio::null())
        .status();
    found.is_ok_and(|status| status.success())
}

/// What a program received, in per cent of what it was due, and the mechanism.
fn share(world: &World, program: &Program, time: Duration) -> Option<(f64, f64, String)> {
    let _rival = world.client("rival", "100", LOOPS);
    let script = program.script.replace("$DATABASE", "eval \"$DATABASE\"");
    let _client = world.client(program.name, TICKETS, &script);
    // A database is made first.
    sleep(Duration::from_secs(if program.name == "pgbench" {
        10
    } else {
        3
    }));
    let before = world.report(program.name)?;
    sleep(time);
    let after = world.report(program.name)?;
    let received = after.received_ns.saturating_sub(before.received_ns) as f64;
    let specified = after.specified_ns.saturating_sub(before.specified_ns) as f64;
    let cpus = received / time.as_nanos() as f64;
    Some((received / specified * 100.0, cpus, world.mechanism()))
}

/// Transactions a second, and the 99th percentile of their times in milliseconds.
fn timed(directory: &Path) -> Option<(f64, f64)> {
    let said = fs::read_to_string(directory.join("said")).ok()?;
    let rate = said.lines().find_map(|line| line.strip_prefix("tps = "))?;
    let rate: f64 = rate.split(' ').next()?.parse().ok()?;
    let mut times_us: Vec<u64> = Vec::new();
    for entry in fs::read_dir(directory).ok()?.flatten() {
        if entry.file_name().to_string_lossy().starts_with("log") {
            let log = fs::read_to_string(entry.path()).ok()?;
            let times = log.lines().filter_map(|line| line.split(' ').nth(2));
            times_us.extend(times.filter_map(|time| time.parse::<u64>().ok()));
        }
    }
    times_us.sort_unstable();
    let worst_us = *times_us.get(times_us.len() * 99 / 100)?;
    Some((rate, worst_us as f64 / 1e3))
}

/// The database beside loops in `SCHED_IDLE`, without prorata.
fn plain(world: &World, time: Duration) -> Option<(f64, f64)> {
    let directory = world.path().join("plain");
    fs::create_dir_all(&directory).unwrap();
    chown(&directory, world.uid, world.uid).unwrap();
    let mut loops = world.command("chrt");
    let mut loops = loops
        .args(["-i", "0", "timeout", "120", "sh", "-c", LOOPS])
        .spawn()
        .ok()?;
    let mut script = world.command("sh");
    script.current_dir(&directory).args(["-c", TIMED]);
    script.env("SECONDS_TO_RUN", time.as_secs().to_string());
    let done = script.status().is_ok_and(|status| status.success());
    let pid = nix::unistd::Pid::from_raw(loops.id().cast_signed());
    let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
    let _ = loops.wait();
    let result = timed(&directory).filter(|_| done);
    let _ = fs::remove_dir_all(directory);
    result
}

/// The database at 9:1 beside loops.
fn shared(world: &World, time: Duration) -> Option<(f64, f64)> {
    let _rival = world.client("rival", "100", LOOPS);
    let script = format!("export SECONDS_TO_RUN={}; {TIMED}", time.as_secs());
    let mut client = world.client("pgbench", "900", &script);
    let _ = client.wrapper.wait();
    timed(&world.path().join("pgbench"))
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Medians of throughput and of the slowest of a hundred transactions, each as a part of what it
/// is without prorata. Prints each pair.
fn throughput(world: &World, time: Duration) -> Option<(f64, f64)> {
    let (mut rates, mut slowest) = (Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        let (alone, ours) = (plain(world, time)?, shared(world, time)?);
        println!(
            "pgbench, {}: {:.0} transactions/s, p99 {:.2} ms; beside SCHED_IDLE {:.0}, {:.2} ms",
            world.mechanism(),
            ours.0,
            ours.1,
            alone.0,
            alone.1
        );
        rates.push(ours.0 / alone.0);
        slowest.push(ours.1 / alone.1);
    }
    Some((median(&mut rates), median(&mut slowest)))
}

/// The measurements that the arguments choose.
struct Chosen {
    names: Vec<String>,
    time: Duration,
}

impl Chosen {
    fn read() -> Self {
        let mut arguments = std::env::args().skip(1);
        let (mut names, mut seconds) = (Vec::new(), 12);
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--seconds" => {
                    let number = arguments.next().and_then(|number| number.parse().ok());
                    seconds = number.expect("--seconds takes a number");
                }
                // `cargo bench` passes it on.
                "--bench" => {}
                name => names.push(name.to_owned()),
            }
        }
        Self {
            names,
            time: Duration::from_secs(seconds),
        }
    }

    fn has(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|chosen| chosen == name)
    }
}

fn measure_shares(world: &World, chosen: &Chosen, table: &mut Table) -> Vec<Figure> {
    let mut kept = Vec::new();
    for program in PROGRAMS.iter().filter(|program| chosen.has(program.name)) {
        let name = program.name;
        if let Some(missing) = program.needs.iter().find(|needed| !is_installed(needed)) {
            println!("{name}: left out, since {missing} is not installed");
            continue;
        }
        let Some((percent, cpus, mechanism)) = share(world, program, chosen.time) else {
            println!("{name}: ended too early");
            continue;
        };
        let error = (percent - 100.0).abs();
        kept.push(Figure::at_most(
            format!("{name} at 3:1, {mechanism}, off what is due"),
            error,
            "%",
            TOLERANCE,
        ));
        table.row(vec![
            name.to_owned(),
            mechanism,
            format!("{cpus:.2}"),
            format!("{percent:.2}"),
        ]);
    }
    kept
}

fn measure_throughput(world: &World, chosen: &Chosen) -> Vec<Figure> {
    if !chosen.has("throughput") || !is_installed("pgbench") {
        return Vec::new();
    }
    let Some((rate, slowest)) = throughput(world, chosen.time) else {
        println!("throughput: the database failed");
        return Vec::new();
    };
    let name = |what: &str| {
        format!(
            "pgbench at 9:1, {}, {what} beside SCHED_IDLE",
            world.mechanism()
        )
    };
    vec![
        Figure::at_least(name("transactions"), rate, "", THROUGHPUT),
        Figure::at_most(name("p99"), slowest, "", 1.0),
    ]
}

fn main() -> ExitCode {
    let chosen = Chosen::read();
    let columns = ["program", "mechanism", "CPUs", "received of due, %"];
    let mut table = Table::new(&columns.map(|name| (name, Side::Left)));
    let mut kept = Vec::new();
    for world in World::all() {
        kept.extend(measure_shares(&world, &chosen, &mut table));
        kept.extend(measure_throughput(&world, &chosen));
    }
    if !table.is_empty() {
        println!("{}", table.lines(None).join("\n"));
    }
    figures::keep(env!("CARGO_TARGET_TMPDIR"), "programs", &kept);
    ExitCode::SUCCESS
}
