//! A real daemon with its own directories.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use prorata_protocol::ClientReport;
use serde_json::Value;
use tempfile::TempDir;

use super::delegated::Delegated;
use super::fake::allowed_cpus;
use super::pty::Pty;
use super::{
    OrdinaryUser, end_with_test, eventually, has_ended, on_socket, output, process_state, prorata,
    stderr, stdout,
};

/// The directories of a daemon, which ends with this value.
pub struct Real {
    directory: TempDir,
    /// The user of all programs, if not the tests' own.
    user: Option<OrdinaryUser>,
    /// Where the program is, if elsewhere.
    program: Option<PathBuf>,
    /// The control group of all programs, if not the tests' own.
    group: Option<Delegated>,
}

impl Real {
    pub fn without_daemon() -> Self {
        let directory = tempfile::tempdir().unwrap();
        tell_mechanisms(directory.path());
        Self {
            directory,
            user: None,
            program: None,
            group: None,
        }
    }

    /// The same for a copy of the program.
    pub fn without_daemon_of(program: PathBuf) -> Self {
        let mut real = Self::without_daemon();
        real.program = Some(program);
        real
    }

    /// Starts a daemon that manages one CPU.
    pub fn start() -> Self {
        Self::without_daemon().sharing_one_cpu()
    }

    pub fn start_as_ordinary_user() -> Self {
        Self::of_ordinary_user().sharing_one_cpu()
    }

    /// An ordinary user's daemon in a control group that is this user's. `None` where root cannot
    /// make one, or if the tests run as an ordinary user.
    pub fn start_with_control_groups() -> Option<Self> {
        let mut real = Self::of_ordinary_user();
        let uid = real.user.as_ref().and_then(OrdinaryUser::uid)?;
        real.group = Some(Delegated::to(uid)?);
        Some(real.sharing_one_cpu())
    }

    fn of_ordinary_user() -> Self {
        let (directory, user) = (tempfile::tempdir().unwrap(), OrdinaryUser::new());
        tell_mechanisms(directory.path());
        user.give(directory.path());
        Self {
            directory,
            user: Some(user),
            program: None,
            group: None,
        }
    }

    fn sharing_one_cpu(self) -> Self {
        let cpu = allowed_cpus().pop().unwrap().to_string();
        assert_eq!(
            output(self.prorata().args(["start", "--cpus", &cpu]))
                .status
                .code(),
            Some(0)
        );
        self
    }

    pub fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    /// No `prorata run` has told a mechanism yet.
    pub fn forget_told(&self) {
        std::fs::remove_file(self.directory.path().join("told")).unwrap();
    }

    /// The program, as the right user.
    pub fn prorata(&self) -> Command {
        let mut command = match &self.user {
            Some(user) => on_socket(user.command(), &self.socket()),
            None => match &self.program {
                Some(program) => on_socket(Command::new(program), &self.socket()),
                None => prorata(&self.socket()),
            },
        };
        if let Some(group) = &self.group {
            group.admit(&mut command);
        }
        command
    }

    /// Another program, as the right user.
    pub fn program(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        if let Some(uid) = self.user.as_ref().and_then(OrdinaryUser::uid) {
            command.uid(uid).gid(uid);
        }
        command
    }

    /// Makes a directory the right user's.
    pub fn give(&self, directory: &Path) {
        if let Some(user) = &self.user {
            user.give(directory);
        }
    }

    /// A shell on a terminal, of the right user.
    pub fn bash(&self) -> Pty {
        let uid = self.user.as_ref().and_then(|user| user.uid());
        Pty::bash_around(&self.prorata(), uid, self.group.as_ref())
    }

    /// The same in the tests' own control group.
    pub fn bash_outside(&self) -> Pty {
        let uid = self.user.as_ref().and_then(|user| user.uid());
        Pty::bash_around(&self.prorata(), uid, None)
    }

    /// Runs a command that succeeds; returns its output.
    #[track_caller]
    pub fn done(&self, arguments: &[&str]) -> String {
        let ended = output(self.prorata().args(arguments));
        assert_eq!(
            (ended.status.code(), stderr(&ended).as_str()),
            (Some(0), ""),
            "{arguments:?}"
        );
        stdout(&ended)
    }

    /// Runs a command that is refused in one sentence; returns the sentence.
    #[track_caller]
    pub fn refused(&self, arguments: &[&str]) -> String {
        let ended: Output = output(self.prorata().args(arguments));
        assert_eq!(
            (ended.status.code(), stdout(&ended).as_str()),
            (Some(1), ""),
            "{arguments:?}"
        );
        let said = stderr(&ended);
        assert!(
            said.starts_with("prorata: ") && said.lines().count() == 1,
            "{arguments:?}: {said}"
        );
        said["prorata: ".len()..].trim_end().to_owned()
    }

    pub fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.done(&[arguments, &["--json"]].concat())).expect("JSON")
    }

    pub fn clients(&self) -> Vec<ClientReport> {
        serde_json::from_value(self.json(&["ps"])).expect("clients")
    }

    pub fn client(&self, name: &str) -> ClientReport {
        let found = self
            .clients()
            .into_iter()
            .find(|client| client.name == name);
        found.unwrap_or_else(|| panic!("there is no client {name}"))
    }

    pub fn daemon(&self) -> u32 {
        u32::try_from(self.json(&["status"])["pid"].as_u64().unwrap()).unwrap()
    }

    /// The daemon's pid, if one runs.
    pub fn daemon_if_any(&self) -> Option<u32> {
        let status = output(self.prorata().args(["status", "--json"]));
        let status: Value = serde_json::from_slice(&status.stdout).ok()?;
        status["pid"].as_u64()?.try_into().ok()
    }

    /// Runs a computing program as client `name`, and waits until the daemon manages
    /// it.
    pub fn compute(&self, name: &str, tickets: &str) -> Running {
        let mut command = self.prorata();
        command.args([
            "run",
            "-t",
            tickets,
            "-n",
            name,
            "--",
            "sh",
            "-c",
            "while :; do :; done",
        ]);
        let child = end_with_test(command.stdout(Stdio::null()))
            .spawn()
            .unwrap();
        eventually("the client is managed", || {
            self.clients().iter().any(|client| client.name == name)
        });
        Running { child }
    }

    /// Whether no daemon runs.
    pub fn is_gone(&self) -> bool {
        stderr(&output(self.prorata().arg("status"))).contains("no daemon runs")
    }
}

/// `prorata run` on a terminal tells nothing that most tests would have to expect.
fn tell_mechanisms(directory: &Path) {
    let all = "idle\ngroup-idle\ngroup-freeze\nstop\n";
    std::fs::write(directory.join("told"), all).unwrap();
}

impl Drop for Real {
    fn drop(&mut self) {
        let pid = self.prorata().args(["status", "--json"]).output().ok();
        let pid = pid.and_then(|status| serde_json::from_slice::<Value>(&status.stdout).ok());
        let _ = self.prorata().arg("stop").output();
        if let Some(pid) = pid.and_then(|status| status["pid"].as_u64()) {
            eventually("the daemon ends", || has_ended(pid as u32));
        }
    }
}

/// A running wrapper. Drop ends the wrapper and its command.
pub struct Running {
    child: Child,
}

impl Running {
    pub fn wrapper(&mut self) -> &mut Child {
        &mut self.child
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The wrapper forwards the signal, and ends after its command.
        if let (Ok(None), Ok(pid)) = (self.child.try_wait(), i32::try_from(self.child.id())) {
            let _ = nix::sys::signal::kill(
                nix::unistd::Pid::from_raw(pid),
                nix::sys::signal::Signal::SIGTERM,
            );
            let _ = self.child.wait();
        }
    }
}

/// Scheduling policy of a process: 0 is SCHED_OTHER, 5 SCHED_IDLE
/// (proc_pid_stat(5), field 41).
pub fn scheduling_policy(pid: u32) -> Option<u32> {
    prorata_user::Policy::of(pid)
        .ok()
        .map(|policy| policy.class())
}

/// Whether a process has its own policy and affinity and is not stopped.
pub fn is_free(pid: u32) -> bool {
    matches!(process_state(pid), Some('R' | 'S')) && scheduling_policy(pid) == Some(0)
}
