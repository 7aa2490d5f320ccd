//! `prorata start --users`: what each user runs unasked is a client of that user. Only root can test
//! that.

use std::io::Write as _;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use prorata_protocol::ClientState;

use super::support::fake::allowed_cpus;
use super::support::real::{Real, is_free};
use super::support::{OrdinaryUser, end_with_test, eventually, process_state};

/// Two users without an account, whom no other test has.
const ANN: u32 = 2_000_001;
const BEN: u32 = 2_000_002;

const HOG: &str = "while :; do :; done";

/// Two such daemons would both manage the users' processes.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Root's daemon with `--users`, and its program, which all users may run.
struct Machine {
    /// Dropped first, so that processes end before the daemon.
    processes: Mutex<Vec<Child>>,
    real: Real,
    program: OrdinaryUser,
    _alone: MutexGuard<'static, ()>,
}

impl Machine {
    /// `None` if the tests do not run as root.
    fn start() -> Option<Machine> {
        if !rustix::process::getuid().is_root() {
            let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
            assert!(!ci, "only root can act as other users");
            println!("not run: only root can act as other users");
            return None;
        }
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let program = OrdinaryUser::new();
        let real = Real::without_daemon_of(program.program());
        let place = real.socket().parent().unwrap().to_path_buf();
        std::fs::set_permissions(place, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
        let cpu = allowed_cpus().pop().unwrap().to_string();
        real.done(&["start", "--cpus", &cpu, "--users"]);
        Some(Machine {
            processes: Mutex::default(),
            real,
            program,
            _alone: alone,
        })
    }

    /// Starts a shell script of a user on the shared CPU. Returns its pid.
    fn script(&self, user: u32, script: &str) -> u32 {
        let cpu = allowed_cpus().pop().unwrap().to_string();
        let mut command = Command::new("taskset");
        command
            .args(["-c", &cpu, "sh", "-c", script])
            .env("PRORATA_SOCKET", self.real.socket())
            .env("PRORATA", self.program.program())
            .env_remove("PRORATA_CLIENT")
            .uid(user)
            .gid(user)
            .current_dir("/")
            // All of it ends at once.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = end_with_test(&mut command).spawn().unwrap();
        let pid = child.id();
        self.processes.lock().unwrap().push(child);
        pid
    }

    /// Writes a line to the standard input of one of these scripts.
    fn say(&self, pid: u32, line: &str) {
        let mut processes = self.processes.lock().unwrap();
        let script = processes.iter_mut().find(|child| child.id() == pid);
        let input = script.unwrap().stdin.as_mut().unwrap();
        writeln!(input, "{line}").unwrap();
    }

    /// Ends all of them.
    fn end_all(&self) {
        let mut processes = self.processes.lock().unwrap();
        processes
            .drain(..)
            .for_each(|mut child| end_all_of(&mut child));
    }

    /// Ends one of these scripts.
    fn end(&self, pid: u32) {
        let mut processes = self.processes.lock().unwrap();
        let index = processes.iter().position(|child| child.id() == pid);
        end_all_of(&mut processes.swap_remove(index.unwrap()));
    }

    /// Waits until a client has so many processes; without any there is no client.
    #[track_caller]
    fn wait_for(&self, name: &str, processes: u32) {
        eventually(&format!("{name} has {processes} processes"), || {
            let clients = self.real.clients();
            let client = clients.iter().find(|client| client.name == name);
            client.map_or(0, |client| client.processes) == processes
        });
    }

    fn share(&self, name: &str) -> f64 {
        self.real.client(name).share
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let mut processes = self
            .processes
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        processes.iter_mut().for_each(end_all_of);
    }
}

/// Ends a process with its whole group.
fn end_all_of(child: &mut Child) {
    let _ = killpg(Pid::from_raw(child.id() as i32), Signal::SIGKILL);
    let _ = child.wait();
}

#[test]
fn users_share_alike_however_many_processes_they_have() {
    let Some(machine) = Machine::start() else {
        return;
    };
    let one = machine.script(ANN, HOG);
    for _ in 0..5 {
        machine.script(BEN, HOG);
    }
    let [ann, ben] = ["rest-of-uid2000001", "rest-of-uid2000002"];
    machine.wait_for(ann, 1);
    machine.wait_for(ben, 5);
    let half = |name: &str| (machine.share(name) - 0.5).abs() < 1e-9;
    eventually("half each", || half(ann) && half(ben));
    machine.real.done(&["set-funding", "2000001", "3000"]);
    let is_three_quarters = || (machine.share(ann) - 0.75).abs() < 1e-9;
    eventually("three quarters", is_three_quarters);
    // The last process takes the client and the currency along, and the funding stays.
    machine.end(one);
    machine.wait_for(ann, 0);
    let currencies = machine.real.done(&["lscur"]);
    assert!(!currencies.contains("uid2000001"), "{currencies}");
    machine.script(ANN, HOG);
    machine.wait_for(ann, 1);
    eventually("three quarters again", is_three_quarters);
    let status = machine.real.done(&["status"]);
    assert!(status.contains("a client each"), "{status}");
}

#[test]
fn what_a_user_runs_unasked_can_be_given_a_share() {
    let Some(machine) = Machine::start() else {
        return;
    };
    let hogs = format!("({HOG}) & ({HOG}) & wait");
    let tree = machine.script(ANN, &hogs);
    machine.script(BEN, HOG);
    let (rest, of_ben) = ("rest-of-uid2000001", "rest-of-uid2000002");
    machine.wait_for(rest, 3);
    machine.wait_for(of_ben, 1);
    // A process that is named leaves with its descendants.
    let pid = tree.to_string();
    let set = machine.real.json(&["set", &pid, "300"]);
    machine.wait_for(rest, 0);
    let client = machine
        .real
        .clients()
        .into_iter()
        .find(|client| client.pid == tree);
    let client = client.expect("it is a client of its own");
    assert_eq!(
        (client.processes, set["created"].as_str()),
        (3, Some(&*client.id))
    );
    machine.real.done(&["release", &client.name]);
    machine.wait_for(rest, 3);
    machine.real.done(&["chuser", &pid, "2000002"]);
    machine.wait_for(rest, 0);
    let backed = machine
        .real
        .clients()
        .into_iter()
        .find(|client| client.pid == tree)
        .unwrap();
    assert_eq!(backed.tickets, [(100, "uid2000002".to_owned())]);
}

#[test]
fn prorata_run_works_for_a_user_whose_shell_is_in_such_a_client() {
    let Some(machine) = Machine::start() else {
        return;
    };
    let run = format!("read line; \"$PRORATA\" run -n mine -- sh -c '{HOG}' & wait");
    let shell = machine.script(ANN, &run);
    machine.script(ANN, HOG);
    machine.script(BEN, HOG);
    let rest = "rest-of-uid2000001";
    machine.wait_for(rest, 2);
    machine.say(shell, "go");
    machine.wait_for("mine", 1);
    // `prorata run` itself is in no client: it watches over the engine.
    machine.wait_for(rest, 2);
    let clients = machine.real.clients();
    let mine = clients.iter().find(|client| client.name == "mine").unwrap();
    assert_eq!(mine.owner, ANN);
    // Without a client, both are what the user runs unasked.
    machine.real.done(&["release", "mine"]);
    machine.wait_for(rest, 4);
}

/// The shell waits for `prorata run`, which waited for the job. What a job used is in the sums of both.
#[test]
fn a_job_is_not_charged_to_its_shells_client_too() {
    let Some(machine) = Machine::start() else {
        return;
    };
    let burn = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
    let shell = machine.script(
        ANN,
        &format!(
            "read line; for job in 1 2 3 4 5 6; do \"$PRORATA\" run -- sh -c '{burn}'; done; \
             read line; sleep 1000"
        ),
    );
    machine.script(BEN, HOG);
    let rest = "rest-of-uid2000001";
    machine.wait_for(rest, 1);
    machine.wait_for("rest-of-uid2000002", 1);
    machine.say(shell, "go");
    machine.say(shell, "go on");
    // The shell sleeps after all jobs, and is looked at all the same.
    let sleeps = || children_named(shell, "sleep") == 1;
    eventually("the jobs have ended", sleeps);
    machine.wait_for(rest, 2);
    std::thread::sleep(std::time::Duration::from_secs(2));
    let charged_ms = machine.real.client(rest).received_ns / 1_000_000;
    let waited_ms = waited_ms(shell);
    assert!(charged_ms < waited_ms / 2, "{charged_ms} of {waited_ms} ms");
}

/// How many children of a process run this program.
fn children_named(pid: u32, program: &str) -> usize {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.unwrap_or_default();
    let name = |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/comm"));
    let names = children.split_whitespace().filter_map(|pid| name(pid).ok());
    names.filter(|name| name.trim_end() == program).count()
}

/// CPU time of the children that a process waited for.
fn waited_ms(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let ticks = |index: usize| fields[index].parse::<u64>().unwrap();
    (ticks(13) + ticks(14)) * 10
}

#[test]
fn programs_of_a_stopped_prorata_run_that_go_on_compete_again() {
    let Some(machine) = Machine::start() else {
        return;
    };
    let run = format!("\"$PRORATA\" run -n mine -- sh -c '{HOG}'");
    machine.script(ANN, &run);
    machine.script(BEN, HOG);
    machine.wait_for("mine", 1);
    let hog = machine.real.client("mine").pid;
    let fields = std::fs::read_to_string(format!("/proc/{hog}/stat")).unwrap();
    let parent = fields
        .rsplit_once(") ")
        .unwrap()
        .1
        .split(' ')
        .nth(1)
        .unwrap();
    kill(Pid::from_raw(parent.parse().unwrap()), Signal::SIGTSTP).unwrap();
    let state = || machine.real.client("mine").state;
    eventually("it is suspended", || state() == ClientState::Suspended);
    kill(Pid::from_raw(hog as i32), Signal::SIGCONT).unwrap();
    eventually("it competes", || state() != ClientState::Suspended);
    assert_eq!(process_state(hog).map(|state| state != 'T'), Some(true));
}

/// Processes that end before they can be looked at, and that change their user meanwhile.
#[test]
fn storms_of_forks_and_of_users_leave_nothing_behind() {
    let Some(machine) = Machine::start() else {
        return;
    };
    // Each process of the relay has the next one as a child, and ends.
    let relay = "export TOP=$$ NEXT='[ -e /proc/$TOP ] && sh -c \"$NEXT\" &'; \
                 sh -c \"$NEXT\"; sleep 1000";
    machine.script(ANN, relay);
    let change = |user| format!("setpriv --reuid {user} --clear-groups true");
    let storm = format!("while :; do {} ; {} ; done", change(ANN), change(BEN));
    machine.script(0, &storm);
    machine.script(BEN, HOG);
    machine.wait_for("rest-of-uid2000002", 1);
    for _ in 0..5 {
        std::thread::sleep(std::time::Duration::from_secs(1));
        // It answers.
        machine.real.done(&["ps"]);
    }
    machine.end_all();
    machine.wait_for("rest-of-uid2000001", 0);
    machine.wait_for("rest-of-uid2000002", 0);
    let currencies = machine.real.done(&["lscur"]);
    assert!(!currencies.contains("uid200000"), "{currencies}");
}

#[test]
fn a_killed_daemon_leaves_users_processes_free_and_its_successor_takes_them_in() {
    let Some(machine) = Machine::start() else {
        return;
    };
    let pids = [ANN, BEN, BEN].map(|user| machine.script(user, HOG));
    machine.wait_for("rest-of-uid2000002", 2);
    kill(Pid::from_raw(machine.real.daemon() as i32), Signal::SIGKILL).unwrap();
    eventually("all are free", || pids.iter().all(|pid| is_free(*pid)));
    machine.real.done(&["start"]);
    machine.wait_for("rest-of-uid2000001", 1);
    machine.wait_for("rest-of-uid2000002", 2);
    machine.real.done(&["stop"]);
    eventually("all are free", || pids.iter().all(|pid| is_free(*pid)));
    // After a stop, users are no clients any more.
    machine.real.done(&["start"]);
    let status = machine.real.done(&["status"]);
    assert!(!status.contains("a client each"), "{status}");
    assert!(pids.iter().all(|pid| process_state(*pid).is_some()));
}

#[test]
fn users_are_managed_by_roots_daemon_only() {
    let real = Real::start_as_ordinary_user();
    let refused = || {
        let said = real.refused(&["start", "--users"]);
        assert!(
            said.contains("only root's daemon can manage what users run"),
            "{said}"
        );
    };
    real.done(&["start"]);
    refused();
    real.done(&["stop"]);
    let is_gone = || real.refused(&["status"]).contains("no daemon runs");
    eventually("the daemon is gone", is_gone);
    refused();
    assert!(is_gone(), "a daemon started");
}
