//! Daemons in processes of their own, and processes for them to manage.
//!
//! A daemon refuses to manage its own descendants, and tests kill and limit
//! daemons. So a daemon is this program, run again.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use prorata_protocol::{
    ClientReport, Connection, DaemonPaths, EngineChoice, Funding, KernelChoice, Request, Response,
    SocketPath, StatusReport, TransferPortion,
};
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

use crate::Timing;
use crate::daemon::{DaemonOptions, serve};
use crate::host::{CpuUse, Host, Linux, Listed, Origin, Stamp, UserAccount};
use crate::process::{ProcessId, ProcessInfo};
use crate::testing::FakeEngine;

const DIRECTORY: &str = "PRORATA_TEST_DAEMON_DIRECTORY";
const LINGER_MS: &str = "PRORATA_TEST_DAEMON_LINGER_MS";
const PATIENCE_MS: &str = "PRORATA_TEST_DAEMON_PATIENCE_MS";

/// Set for a daemon whose starter demands the kernel engine.
pub(super) const DEMANDS_KERNEL: &str = "PRORATA_TEST_DAEMON_DEMANDS_KERNEL";

/// Set for a daemon in which the kernel engine does not start.
pub(super) const REFUSES_KERNEL: &str = "PRORATA_TEST_DAEMON_REFUSES_KERNEL";

/// Set for a daemon whose engine starts once there is a file named [`GATE`].
pub(super) const WAITS_TO_START: &str = "PRORATA_TEST_DAEMON_WAITS_TO_START";

/// See [`WAITS_TO_START`].
pub(super) const GATE: &str = "gate";

/// Longest wait for anything in these tests. No test waits for its end.
pub(super) const LONG: Duration = Duration::from_secs(60);

/// How long an impatient daemon waits for slow clients.
pub(super) const PATIENCE: Duration = Duration::from_millis(300);

/// A directory for a daemon, gone with the last copy.
pub(super) fn directory() -> Arc<tempfile::TempDir> {
    Arc::new(tempfile::tempdir().unwrap())
}

pub(super) fn paths(directory: &Path) -> DaemonPaths {
    let runtime = directory.join("run");
    let socket = SocketPath::new(runtime.join("socket")).unwrap();
    DaemonPaths {
        state: directory.join("state"),
        runtime,
        socket,
        is_homeless: false,
    }
}

/// Not a test: the process of a [`Daemon`].
#[test]
#[ignore = "this is the daemon that other tests start"]
fn daemon_process() {
    let Some(directory) = std::env::var_os(DIRECTORY) else {
        return;
    };
    std::thread::spawn(|| {
        // The pipe closes when the tests end in any way.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::exit(4);
    });
    let time = |name| Duration::from_millis(std::env::var(name).unwrap().parse().unwrap());
    let timing = Timing {
        linger: time(LINGER_MS),
        patience: time(PATIENCE_MS),
    };
    let paths = paths(directory.as_ref());
    let refuses = std::env::var_os(REFUSES_KERNEL).is_some();
    let gate = std::env::var_os(WAITS_TO_START).map(|_| paths.runtime.join(GATE));
    let make: crate::MakeEngine<'_> = &|choice, setup| {
        while gate.as_ref().is_some_and(|gate| !gate.exists()) {
            std::thread::sleep(Duration::from_millis(5));
        }
        if refuses && choice != EngineChoice::User {
            return Err("there is no sched_ext".into());
        }
        let note = setup.directory.with_file_name("released");
        Ok(Box::new(FakeEngine::noting_its_end(note)))
    };
    let kernel = EngineChoice::Kernel(KernelChoice::default());
    let options = DaemonOptions {
        engine: std::env::var_os(DEMANDS_KERNEL).map(|_| kernel),
        timing,
        ..DaemonOptions::default()
    };
    let code = serve(&paths, &options, make, || ()).map_or(3, |()| 0);
    std::process::exit(code);
}

/// This machine's users, with its processes or made-up ones, and without the
/// daemon's.
#[derive(Clone, Default)]
pub(super) struct Elsewhere {
    pub processes: Option<BTreeMap<u32, ProcessInfo>>,
}

impl Elsewhere {
    /// Adds a real process, which never ends here.
    pub fn add(&mut self, sleeper: &Sleeper) -> ProcessId {
        let process = ProcessInfo::read(sleeper.pid()).unwrap();
        let id = process.id;
        let processes = self.processes.get_or_insert_default();
        processes.insert(sleeper.pid(), process);
        id
    }
}

impl Host for Elsewhere {
    fn nice(&self, pid: u32) -> Option<i32> {
        Linux.nice(pid)
    }

    fn process(&self, pid: u32) -> Option<ProcessInfo> {
        match &self.processes {
            Some(processes) => processes.get(&pid).cloned(),
            None => Linux.process(pid),
        }
    }
    fn processes(&self) -> Vec<Listed> {
        Linux.processes()
    }
    fn origin(&self, pid: u32) -> Option<Origin> {
        Linux.origin(pid)
    }
    fn run_same_program(&self, one: u32, other: u32) -> bool {
        Linux.run_same_program(one, other)
    }
    fn command(&self, pid: u32) -> String {
        Linux.command(pid)
    }
    fn cpu_use(&self, pid: u32) -> Option<CpuUse> {
        Linux.cpu_use(pid)
    }
    fn may_run(&self, process: ProcessId) -> bool {
        Linux.may_run(process)
    }

    fn text(&self, path: &'static str) -> String {
        Linux.text(path)
    }
    fn stamp(&self, path: &'static str) -> Option<Stamp> {
        Linux.stamp(path)
    }
    fn account_named(&self, name: &str) -> Option<UserAccount> {
        Linux.account_named(name)
    }
    fn account_of(&self, uid: u32) -> Option<UserAccount> {
        Linux.account_of(uid)
    }
    fn thread(&self, tid: u32) -> Option<(u32, u64)> {
        Linux.thread(tid)
    }
    fn now_ns(&self) -> u64 {
        Linux.now_ns()
    }
    fn own_pid(&self) -> u32 {
        u32::MAX
    }
    fn own_uid(&self) -> u32 {
        Linux.own_uid()
    }
}

/// A daemon with the fake engine.
pub(super) struct Daemon {
    child: Child,
    pub paths: DaemonPaths,
    pub directory: Arc<tempfile::TempDir>,
}

impl Daemon {
    /// Starts one that stays as long as the test needs it.
    pub fn start(directory: &Arc<tempfile::TempDir>) -> Daemon {
        let daemon = Self::spawn(directory, LONG);
        daemon.connect();
        daemon
    }

    /// The same; the daemon waits for slow clients no longer than [`PATIENCE`].
    pub fn start_impatient(directory: &Arc<tempfile::TempDir>) -> Daemon {
        let linger = LONG;
        let patience = PATIENCE;
        let daemon = Self::spawn_as(directory, Timing { linger, patience }, &[]);
        daemon.connect();
        daemon
    }

    /// Starts one and does not wait for it.
    pub fn spawn(directory: &Arc<tempfile::TempDir>, linger: Duration) -> Daemon {
        let patience = LONG;
        Self::spawn_as(directory, Timing { linger, patience }, &[])
    }

    /// Starts one with these variables set in its environment.
    pub fn start_with(directory: &Arc<tempfile::TempDir>, variables: &[&str]) -> Daemon {
        let daemon = Self::spawn_with(directory, variables);
        daemon.connect();
        daemon
    }

    /// The same, and does not wait for it.
    pub fn spawn_with(directory: &Arc<tempfile::TempDir>, variables: &[&str]) -> Daemon {
        let (linger, patience) = (LONG, LONG);
        Self::spawn_as(directory, Timing { linger, patience }, variables)
    }

    fn spawn_as(directory: &Arc<tempfile::TempDir>, timing: Timing, variables: &[&str]) -> Daemon {
        let child = Command::new(std::env::current_exe().unwrap())
            .envs(variables.iter().map(|name| (name, "1")))
            .args([
                "--exact",
                "tests::harness::daemon_process",
                "--ignored",
                "--nocapture",
            ])
            .env(DIRECTORY, directory.path())
            .env(LINGER_MS, timing.linger.as_millis().to_string())
            .env(PATIENCE_MS, timing.patience.as_millis().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Daemon {
            child,
            paths: paths(directory.path()),
            directory: Arc::clone(directory),
        }
    }

    pub fn connect(&self) -> Connection {
        eventually(|| Connection::open(&self.paths.socket).ok())
    }

    pub fn status(&self) -> StatusReport {
        let Response::Status(status) = self.ask(Request::Status) else {
            panic!("no status")
        };
        status
    }

    pub fn ask(&self, request: Request) -> Response {
        self.connect().call(&request).unwrap()
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    pub fn wait(&mut self) -> ExitStatus {
        eventually(|| self.child.try_wait().unwrap())
    }

    /// Kills it and starts another one with the same paths.
    pub fn succeed(mut self) -> Daemon {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        Daemon::start(&self.directory)
    }

    /// Whether it still serves.
    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
            && matches!(self.ask(Request::Status), Response::Status(_))
    }

    /// Registers a process with 100 tickets.
    pub fn register(&self, process: &Sleeper, name: &str) -> ClientReport {
        let response = self.ask(Request::Register {
            pid: process.pid(),
            name: Some(name.to_owned()),
            funding: tickets(100),
            quantum_ns: None,
            max: None,
            adopts: false,
        });
        let Response::Client(report) = response else {
            panic!("{response:?}")
        };
        report
    }

    /// Names of all clients.
    pub fn client_names(&self) -> Vec<String> {
        let response = self.ask(Request::Clients);
        let Response::Clients(clients) = response else {
            panic!("{response:?}")
        };
        clients.into_iter().map(|client| client.name).collect()
    }

    pub fn transfers(&self) -> usize {
        let response = self.ask(Request::Transfers);
        let Response::Transfers(transfers) = response else {
            panic!("{response:?}")
        };
        transfers.len()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process that sleeps until it is dropped.
pub(super) struct Sleeper(Child);

impl Sleeper {
    pub fn start() -> Sleeper {
        let mut sleep = Command::new("sleep");
        sleep.arg("600");
        // SAFETY: between fork and exec there is one system call. The signal comes
        // when the starting thread ends, which is its test's.
        unsafe {
            sleep.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
        }
        Sleeper(sleep.spawn().unwrap())
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// So many tickets of the user's own currency.
pub(super) fn tickets(amount: u32) -> Funding {
    Funding {
        amount,
        currency: None,
    }
}

/// Lends 10 of the client "giver"'s tickets to "receiver", bound to the
/// connection or not.
pub(super) fn lend_ten(hold: bool) -> Request {
    Request::Transfer {
        from: "giver".into(),
        portion: TransferPortion::Part {
            currency: None,
            shares: vec![("receiver".into(), 10)],
        },
        hold,
    }
}

/// Why a request was refused.
pub(super) fn refusal(response: Response) -> String {
    let (Response::Refused { message } | Response::NotKept { message }) = response else {
        panic!("{response:?}")
    };
    message
}

/// Repeats the attempt until it succeeds.
pub(super) fn eventually<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + LONG;
    loop {
        if let Some(result) = attempt() {
            return result;
        }
        assert!(Instant::now() < deadline, "not within {LONG:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A raw connection, for bytes that no [`Connection`] sends.
pub(super) fn raw(paths: &DaemonPaths) -> std::os::unix::net::UnixStream {
    let connect = || std::os::unix::net::UnixStream::connect(paths.socket.path());
    let stream = eventually(|| connect().ok());
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream
}

/// One response from a raw connection; `None` at its end.
pub(super) fn read_response(mut stream: impl io::Read) -> Option<Response> {
    let mut header = [0; 4];
    match stream.read_exact(&mut header) {
        Ok(()) => {}
        Err(_) => return None,
    }
    let mut body = vec![0; u32::from_le_bytes(header) as usize];
    stream.read_exact(&mut body).unwrap();
    Some(serde_json::from_slice(&body).unwrap())
}
