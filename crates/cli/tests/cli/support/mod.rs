//! Running the binary, and the surroundings that it needs.

pub mod fake;
pub mod pty;

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Longest wait for anything: far more than needed, so that only a hang
/// reaches it, however busy the machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The program, told to use no other daemon than that on `socket`.
pub fn prorata(socket: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_prorata"));
    command
        .env("PRORATA_SOCKET", socket)
        .env_remove("PRORATA_CLIENT")
        .stdin(Stdio::null());
    command
}

/// Runs it to its end.
pub fn output(command: &mut Command) -> Output {
    let program = format!("{command:?}");
    let output = command.output().expect("the program starts");
    // Captured, so seen only when a test fails.
    println!("{program}: {}", output.status);
    print!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// What it printed on standard output.
pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// What it printed on standard error.
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

/// State letter of a process (proc_pid_stat(5)); none if there is none.
pub fn process_state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}
