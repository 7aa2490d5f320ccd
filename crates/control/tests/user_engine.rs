//! The daemon with the user engine, on real processes.
//!
//! Daemons here are this program, run again and started as `prorata` starts
//! them. So it has its own `main`.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};
use prorata_control::{DaemonOptions, Mechanism, daemon_main};
use prorata_protocol::{
    ClientReport, ClientState, Connection, DaemonPaths, Funding, Request, Response, SocketPath,
    open_or_start, start_daemon,
};
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

/// The mechanism of a daemon; set only in a daemon's process.
const MECHANISM: &str = "PRORATA_TEST_MECHANISM";

/// Longest wait for anything. No test waits for its end.
const LONG: Duration = Duration::from_secs(60);

fn main() {
    prorata_user::guardian_entry();
    if let Ok(mechanism) = std::env::var(MECHANISM) {
        return daemon(&mechanism);
    }
    let trials = ["trial", "stop"]
        .into_iter()
        .flat_map(|mechanism| {
            [
                test(mechanism, "crash", programs_survive_a_crash_unharmed),
                test(mechanism, "stop", a_stopped_daemon_leaves_programs_alone),
            ]
        })
        .chain([Trial::test("second_daemon", || {
            a_daemon_that_does_not_start_tells_its_starter();
            Ok(())
        })]);
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}

fn test(mechanism: &'static str, name: &str, body: fn(&Setting)) -> Trial {
    Trial::test(
        format!("{name}_{mechanism}"),
        move || -> Result<(), Failed> {
            body(&Setting::new(mechanism));
            Ok(())
        },
    )
}

fn daemon(mechanism: &str) {
    let paths = DaemonPaths::of_user(None).expect("PRORATA_SOCKET is set");
    let options = DaemonOptions {
        mechanism: (mechanism == "stop").then_some(Mechanism::Stop),
        ..DaemonOptions::default()
    };
    // The starter and the log get its messages.
    let code = daemon_main(paths, options).map_or(1, |()| 0);
    std::process::exit(code);
}

/// Directories for daemons, and two programs that only compute.
struct Setting {
    mechanism: &'static str,
    paths: DaemonPaths,
    programs: [Program; 2],
    _directory: tempfile::TempDir,
}

impl Setting {
    fn new(mechanism: &'static str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let runtime = directory.path().join("run");
        let paths = DaemonPaths {
            state: runtime.join("state"),
            socket: SocketPath::new(runtime.join("socket")).unwrap(),
            runtime,
            is_homeless: false,
        };
        let programs = [Program::start(), Program::start()];
        Self {
            mechanism,
            paths,
            programs,
            _directory: directory,
        }
    }

    fn connect(&self) -> Connection {
        let start = || start_daemon(&self.paths, self.daemon(), &|_| ());
        open_or_start(&self.paths, &start, &|_| ()).unwrap()
    }

    fn daemon(&self) -> Command {
        let mut daemon = Command::new(std::env::current_exe().unwrap());
        daemon.env(MECHANISM, self.mechanism);
        daemon
    }

    fn register_all(&self, connection: &mut Connection) {
        for (program, name) in self.programs.iter().zip(["three", "one"]) {
            let request = Request::Register {
                pid: program.0.id(),
                name: Some(name.to_owned()),
                funding: Funding {
                    amount: 100,
                    currency: None,
                },
                quantum_ns: None,
                max: None,
                adopts: false,
            };
            let response = connection.call(&request).unwrap();
            assert!(matches!(response, Response::Client(_)), "{response:?}");
        }
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        // The daemon that the test has left.
        if let Ok(mut connection) = Connection::open(&self.paths.socket) {
            let _ = connection.call(&Request::Stop);
        }
    }
}

struct Program(Child);

impl Program {
    fn start() -> Program {
        let compute = "while :; do :; done";
        let mut command = Command::new("sh");
        command.args(["-c", compute]).stdin(Stdio::null());
        // SAFETY: between fork and exec one system call is made. The signal
        // comes when the thread that starts it ends, which is its test.
        unsafe {
            command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
        }
        Program(command.spawn().unwrap())
    }

    /// Whether it runs as if never managed.
    fn is_free(&self) -> bool {
        let fields = stat(self.0.id());
        // State and scheduling policy, the third and 41st of proc(5).
        fields[0] != "T" && fields[38] == "0"
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Fields of `/proc/PID/stat` behind the name; none if there is no process.
fn stat(pid: u32) -> Vec<String> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = line.rsplit_once(") ").map_or("", |(_, fields)| fields);
    fields.split_whitespace().map(str::to_owned).collect()
}

/// Whether a process has ended, reaped or not.
fn has_ended(pid: u32) -> bool {
    stat(pid).first().is_none_or(|state| state == "Z")
}

fn clients(connection: &mut Connection) -> Vec<ClientReport> {
    match connection.call(&Request::Clients).unwrap() {
        Response::Clients(clients) => clients,
        other => panic!("{other:?}"),
    }
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG;
    while !holds() {
        assert!(Instant::now() < deadline, "not within {LONG:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn programs_survive_a_crash_unharmed(machine: &Setting) {
    let mut connection = machine.connect();
    machine.register_all(&mut connection);
    let competes = |client: &ClientReport| {
        matches!(client.state, ClientState::Running | ClientState::Waiting)
            && client.value > 0.0
            && client.share > 0.0
            && client.received_ns > 0
            && client.specified_ns > 0
    };
    eventually("both compete, and have received and should have", || {
        clients(&mut connection).iter().all(competes)
    });
    let before = clients(&mut connection);
    let suspend = Request::Suspend {
        client: "one".into(),
    };
    assert!(matches!(
        connection.call(&suspend),
        Ok(Response::Suspended { .. })
    ));

    let Ok(Response::Status(status)) = connection.call(&Request::Status) else {
        panic!()
    };
    assert_eq!((status.engine.as_str(), status.clients), ("user", 2));
    assert!(status.decisions > 0 && !status.cpus.is_empty());
    kill_process(Pid::from_raw(status.pid as i32).unwrap(), Signal::KILL).unwrap();
    eventually("both programs are free", || {
        machine.programs.iter().all(Program::is_free)
    });

    let mut connection = machine.connect();
    let after = clients(&mut connection);
    let identity = |client: &ClientReport| {
        (
            client.id.clone(),
            client.name.clone(),
            client.pid,
            client.tickets.clone(),
        )
    };
    assert!(
        before.iter().map(identity).eq(after.iter().map(identity)),
        "{after:?}"
    );
    assert_eq!(after[1].state, ClientState::Suspended);
    let resume = Request::Resume {
        client: "one".into(),
    };
    assert_eq!(connection.call(&resume).unwrap(), Response::Done);
    eventually("both receive CPU time again", || {
        clients(&mut connection)
            .iter()
            .all(|client| client.received_ns > 0)
    });
}

fn a_stopped_daemon_leaves_programs_alone(machine: &Setting) {
    let mut connection = machine.connect();
    machine.register_all(&mut connection);
    eventually("both receive CPU time", || {
        clients(&mut connection)
            .iter()
            .all(|client| client.received_ns > 0)
    });
    let Ok(Response::Status(status)) = connection.call(&Request::Status) else {
        panic!()
    };
    assert_eq!(connection.call(&Request::Stop).unwrap(), Response::Done);
    eventually("the daemon is gone", || has_ended(status.pid));
    assert!(machine.programs.iter().all(Program::is_free));
    assert!(clients(&mut machine.connect()).is_empty());
}

fn a_daemon_that_does_not_start_tells_its_starter() {
    let machine = Setting::new("trial");
    // Without a connection the daemon would end after a while.
    let _guest = machine.connect();
    let error = start_daemon(&machine.paths, machine.daemon(), &|_| ()).unwrap_err();
    assert!(error.to_string().starts_with("a daemon uses"), "{error}");
}
