//! Support for running the binary.

pub mod delegated;
pub mod fake;
pub mod pty;
pub mod real;

use std::fs::Permissions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Signal, set_parent_process_death_signal};
use tempfile::TempDir;

/// Longest wait for a condition. Only a hang reaches it, even on a busy host.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The program, with the daemon on `socket`.
pub fn prorata(socket: &Path) -> Command {
    on_socket(Command::new(env!("CARGO_BIN_EXE_prorata")), socket)
}

fn on_socket(mut command: Command, socket: &Path) -> Command {
    command
        .env("PRORATA_SOCKET", socket)
        .env_remove("PRORATA_CLIENT")
        .stdin(Stdio::null());
    command
}

/// An ordinary user with a copy of the program that this user can execute. Our own
/// user and program if we are not root.
pub struct OrdinaryUser {
    /// Holds a copy of the program, since only root may be able to read ours.
    directory: TempDir,
    uid: Option<u32>,
}

impl OrdinaryUser {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let uid = rustix::process::getuid().is_root().then_some(65534);
        std::fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        // Another process copies: an executable that is open for writing cannot be
        // executed, and children of our threads inherit our descriptors.
        let program = directory.path().join("prorata");
        let copied = Command::new("cp")
            .arg(env!("CARGO_BIN_EXE_prorata"))
            .arg(program)
            .status();
        assert!(copied.unwrap().success());
        Self { directory, uid }
    }

    /// The copy.
    pub fn program(&self) -> PathBuf {
        self.directory.path().join("prorata")
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(self.program());
        if let Some(uid) = self.uid {
            command.uid(uid).gid(uid);
        }
        command
    }

    /// Its user id, if it is not ours.
    pub fn uid(&self) -> Option<u32> {
        self.uid
    }

    pub fn give(&self, directory: &Path) {
        std::os::unix::fs::chown(directory, self.uid, self.uid).unwrap();
    }
}

/// Makes a child end with the test's thread, even if that is killed. A terminated
/// wrapper ends its command too.
pub fn end_with_test(command: &mut Command) -> &mut Command {
    // SAFETY: between fork and exec one system call is made.
    unsafe {
        command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::TERM))?));
    }
    command
}

/// Runs a command to its end.
pub fn output(command: &mut Command) -> Output {
    let program = format!("{command:?}");
    let output = end_with_test(command).output().expect("the program starts");
    // The test harness shows this only for a failed test.
    println!("{program}: {}", output.status);
    print!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// The text on standard output.
pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// The text on standard error.
pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

/// Waits until `condition` holds.
#[track_caller]
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        sleep(Duration::from_millis(5));
    }
}

/// Whether a process has ended, reaped or not.
pub fn has_ended(pid: u32) -> bool {
    matches!(process_state(pid), None | Some('Z' | 'X'))
}

/// State letter of a process (proc_pid_stat(5)); `None` without such a process.
pub fn process_state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Starts a command and waits until it has printed a line.
pub fn start_talking(command: &mut Command) -> (Child, BufReader<ChildStdout>) {
    let mut child = end_with_test(command.stdout(Stdio::piped()))
        .spawn()
        .unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert_eq!(line, "begun\n");
    (child, reader)
}
