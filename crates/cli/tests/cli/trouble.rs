//! Commands run also where the daemon has trouble: without a home, without room for a journal, or
//! without a place for a socket.

use std::process::{Command, Output, Stdio};

use prorata_protocol::{Request, Response};
use tempfile::TempDir;

use crate::support::fake::Fake;
use crate::support::real::Real;
use crate::support::{OrdinaryUser, output, prorata, stderr, stdout};

/// A user with a run-time directory. Drop stops its daemon.
struct Login {
    user: OrdinaryUser,
    runtime: TempDir,
    state_home: Option<&'static str>,
}

impl Login {
    fn new(state_home: Option<&'static str>) -> Self {
        let (user, runtime) = (OrdinaryUser::new(), tempfile::tempdir().unwrap());
        user.give(runtime.path());
        Self {
            user,
            runtime,
            state_home,
        }
    }

    fn prorata(&self) -> Command {
        let mut command = self.user.command();
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("XDG_RUNTIME_DIR", self.runtime.path())
            .stdin(Stdio::null());
        if let Some(state_home) = self.state_home {
            command.env("XDG_STATE_HOME", state_home);
        }
        command
    }

    /// Prints the client of a command; returns what else was said.
    fn run(&self) -> String {
        let arguments = ["run", "sh", "-c", "echo $PRORATA_CLIENT; exit 7"];
        let ended = output(self.prorata().args(arguments));
        assert_eq!(ended.status.code(), Some(7));
        assert!(stdout(&ended).starts_with('c'), "it is managed");
        let said = stderr(&ended);
        assert_eq!(said.lines().count(), 1, "{said}");
        said
    }

    /// What a message says at its end.
    fn journal_is_beside_the_socket(&self) -> String {
        format!(
            ", so the daemon keeps its journal in {} until the next boot\n",
            self.runtime.path().join("prorata/state").display()
        )
    }
}

impl Drop for Login {
    fn drop(&mut self) {
        output(self.prorata().arg("stop"));
    }
}

#[test]
fn a_command_without_a_home_is_managed() {
    let login = Login::new(None);
    let journal = login.journal_is_beside_the_socket();
    let known = format!("prorata: neither HOME nor XDG_STATE_HOME names a directory{journal}");
    assert_eq!(login.run(), known);
}

#[test]
fn a_command_with_an_unusable_state_directory_is_managed() {
    let login = Login::new(Some("/proc/nowhere"));
    let said = login.run();
    let begin = "prorata: directory /proc/nowhere/prorata cannot be used: ";
    assert!(said.starts_with(begin), "{said}");
    assert!(
        said.ends_with(&login.journal_is_beside_the_socket()),
        "{said}"
    );
}

fn assert_unmanaged(ended: &Output, reason: &str) {
    assert_eq!(ended.status.code(), Some(7));
    assert_eq!(stdout(ended), "client\n");
    let said = stderr(ended);
    let begin = format!("prorata: the command runs without its share: {reason}");
    assert!(said.starts_with(&begin), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

const TELL_CLIENT: [&str; 4] = ["run", "sh", "-c", "echo client $PRORATA_CLIENT; exit 7"];

#[test]
fn a_command_runs_where_no_daemon_can_start() {
    let mut command = prorata("/proc/nowhere/socket".as_ref());
    let ended = output(command.args(TELL_CLIENT));
    assert_unmanaged(&ended, "directory /proc/nowhere cannot be used: ");
    // Its CPUs do not need a daemon.
    let mut command = prorata("/proc/nowhere/socket".as_ref());
    let ended = output(command.args(["run", "--cpus", "1023", "true"]));
    assert_eq!(ended.status.code(), Some(1));
    assert!(stderr(&ended).contains("may not use CPUs 1023"));
}

#[test]
fn a_command_runs_although_its_standard_error_is_a_closed_pipe() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = prorata("/proc/nowhere/socket".as_ref());
    let ended = command.args(TELL_CLIENT).stderr(writer).output().unwrap();
    assert_eq!(ended.status.code(), Some(7));
    assert_eq!(stdout(&ended), "client\n");
}

#[test]
fn a_command_runs_where_its_client_cannot_be_kept() {
    let fake = Fake::answering(|request| {
        let not_kept = || Response::NotKept {
            message: "the disk is full".to_owned(),
        };
        matches!(request, Request::Register { .. }).then(not_kept)
    });
    let ended = output(prorata(&fake.socket()).args(TELL_CLIENT));
    assert_unmanaged(&ended, "the disk is full");
}

#[test]
fn commands_with_odd_names_run_under_valid_names() {
    let real = Real::start();
    let directory = tempfile::tempdir().unwrap();
    for (program, name) in [("1", "program 1"), ("c0", "program c0"), ("a:b", "a-b")] {
        let path = directory.path().join(program);
        let copied = Command::new("cp").arg("/bin/sh").arg(&path).status();
        assert!(copied.unwrap().success());
        let look = format!("{} ps --json", env!("CARGO_BIN_EXE_prorata"));
        let path = path.to_str().unwrap();
        let listed = real.done(&["run", "--", path, "-c", &look]);
        assert!(
            listed.contains(&format!("\"name\": \"{name}\"")),
            "{listed}"
        );
        let said = real.refused(&["run", "--name", program, "--", "true"]);
        assert!(
            said.contains(program) && said.contains("another name"),
            "{said}"
        );
    }
}
