//! A daemon of the demo's own, with an open timetable. Dropping it ends it.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;
use prorata_bulletin::{FILE_NAME, Reader};
use prorata_protocol::slots::{
    Cell, Fraction, Level, Runs, SlotRequest, SlotsReport, SlotsRequest,
};
use prorata_protocol::{Connection, DaemonPaths, READY, Request};
use prorata_report::slot_table::SlotTable;
use prorata_user::{CLIENT_MARKER, SOCKET_MARKER};
use tempfile::TempDir;

use super::players::end_with_demo;
use super::{COLUMNS, SLOT_NS, check_start};
use crate::args::values::CpuList;
use crate::caller::{Caller, ask as ask_daemon, clients};
use crate::commands::slots::show::{draw, name_of, names};
use crate::commands::slots::{ask, table};

/// Much shorter than the default, so that shares are exact after some seconds: the error is of a
/// quantum or two.
const QUANTUM_NS: u64 = SLOT_NS;

/// The mechanism by which slots hold against programs that are no clients, too.
pub const RAISE: &str = "raise";

/// Between two looks.
const LOOK: Duration = Duration::from_millis(10);

pub struct House {
    connection: Connection,
    paths: DaemonPaths,
    // Dropped in this order.
    _daemon: Daemon,
    _directory: TempDir,
}

impl House {
    /// Starts the daemon for these CPUs and opens the table.
    pub fn open(cpus: &[u32], mask: &SigSet) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("prorata-demo-").tempdir();
        let directory = directory.context("cannot make a directory for the daemon")?;
        let caller = Caller::own(Some(&directory.path().join("socket")))?;
        let daemon = Daemon::start(cpus, mask, caller.paths())?;
        let mut connection = caller.open_running()?.context("the daemon has ended")?;
        let settings = Request::Configure {
            quantum_ns: Some(QUANTUM_NS),
            policy: None,
            hybrid: None,
            stay: false,
            users: false,
        };
        ask_daemon(&mut connection, &settings)?;
        let request = SlotsRequest::Open {
            columns: COLUMNS,
            slot_ns: SLOT_NS,
            // One slot of each period stays unclaimed on each CPU.
            reserve: Fraction {
                numerator: 1,
                denominator: COLUMNS,
            },
            // A held table ends with this connection, also in a daemon that a client of a killed
            // demo starts.
            hold: true,
        };
        ask(&mut connection, request)?;
        Ok(Self {
            connection,
            paths: caller.paths().clone(),
            _daemon: daemon,
            _directory: directory,
        })
    }

    pub fn socket(&self) -> &Path {
        self.paths.socket.path()
    }

    /// Waits until so many slots are claimed, at most until a time on the monotonic clock.
    pub fn wait_for_claims(&mut self, count: usize, until_ns: u64) -> Result<()> {
        while table(&mut self.connection)?.claimed < count {
            check_start(until_ns)?;
            sleep(LOOK);
        }
        Ok(())
    }

    /// Claims one more slot for a client, as `prorata slots claim` does.
    pub fn claim(&mut self, client: &str, cell: Cell) -> Result<()> {
        let request = SlotRequest {
            cell,
            runs: Runs::Client(client.to_owned()),
            level: Level::BestEffort,
            expires_ns: None,
        };
        let request = SlotsRequest::Claim {
            requests: vec![request],
            all: true,
            generation: None,
        };
        ask(&mut self.connection, request).map(drop)
    }

    /// Whether schedulees are raised above all programs, and nothing else is held down.
    pub fn raises(&mut self) -> Result<bool> {
        Ok(self.report()?.mechanism.as_deref() == Some(RAISE))
    }

    /// The pid of a client, once that is there; at most until a time on the monotonic clock.
    pub fn pid_of(&mut self, name: &str, until_ns: u64) -> Result<u32> {
        loop {
            let clients = clients(&mut self.connection)?;
            if let Some(client) = clients.iter().find(|client| client.name == name) {
                return Ok(client.pid);
            }
            check_start(until_ns)?;
            sleep(LOOK);
        }
    }

    /// The table as it is now.
    pub fn draw(&mut self) -> Result<SlotTable> {
        let reader = Reader::open(&self.paths.runtime.join(FILE_NAME))?;
        let names = names(Some(&mut self.connection))?;
        let snapshot = reader.snapshot();
        let snapshot = snapshot.context("the table changes too fast to be copied")?;
        Ok(draw(&reader, &snapshot.claims, None, &|claim| {
            name_of(claim.schedulee, &names)
        }))
    }

    /// How the engine enforces the table.
    pub fn report(&mut self) -> Result<SlotsReport> {
        table(&mut self.connection)
    }
}

/// The daemon's process.
struct Daemon(Child);

impl Daemon {
    fn start(cpus: &[u32], mask: &SigSet, paths: &DaemonPaths) -> Result<Self> {
        let log = File::create(paths.log()).context("cannot write the daemon's log")?;
        let program = std::env::current_exe().context("cannot find this program")?;
        let cpus = CpuList(cpus.to_vec()).to_string();
        let mut command = Command::new(program);
        command
            .args(["daemon", "--engine", "user", "--cpus", &cpus])
            .env_remove(CLIENT_MARKER)
            .env(SOCKET_MARKER, paths.socket.path())
            .current_dir("/")
            // A key on the terminal ends the demo, which ends the daemon.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log);
        end_with_demo(&mut command, mask);
        let mut daemon = Daemon(command.spawn().context("cannot start the daemon")?);
        let mut answer = String::new();
        if let Some(out) = daemon.0.stdout.take() {
            let read = BufReader::new(out).read_line(&mut answer);
            read.context("cannot hear the daemon")?;
        }
        if answer != READY {
            let told = fs::read_to_string(paths.log()).unwrap_or_default();
            bail!("the daemon did not start: {}{}", answer.trim(), told.trim());
        }
        Ok(daemon)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended.
        let _ = kill(Pid::from_raw(self.0.id() as i32), Signal::SIGTERM);
        let _ = self.0.wait();
    }
}
