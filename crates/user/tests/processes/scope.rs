//! The engine below a user's service manager. Only a machine that no service manager has booted
//! lets a test start one of its own, and only a hierarchy of version 2 alone lets it work: so in
//! the project's machine.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use prorata_user::Mechanism;

use crate::NOBODY;
use crate::support::control_groups::{Delegated, group_of};
use crate::support::{self, Program, wait_until};

const BOOTED: &str = "/run/systemd/system";

pub fn can_be_had() -> bool {
    let is_alone = Path::new("/sys/fs/cgroup/cgroup.controllers").exists();
    is_alone && !Path::new(BOOTED).exists() && Path::new("/usr/bin/busctl").exists()
}

/// A bus and a service manager of an ordinary user.
struct Manager {
    group: Delegated,
    children: Vec<Child>,
}

impl Manager {
    fn start() -> Manager {
        let runtime = runtime_directory();
        for directory in [Path::new(BOOTED), &runtime] {
            fs::create_dir_all(directory).expect("the machine is ours");
        }
        chown(&runtime, Some(NOBODY), Some(NOBODY)).expect("root may give it away");
        let group = Delegated::to(NOBODY).expect("control groups are there");
        let bus = format!("--address={}", bus_address());
        let mut manager = Manager {
            group,
            children: Vec::new(),
        };
        manager.run(
            "dbus-daemon",
            &["--session", &bus, "--nofork", "--nopidfile"],
        );
        manager.run("/lib/systemd/systemd", &["--user"]);
        wait_until("the service manager answers", || {
            let mut status = as_user("busctl");
            status.args(["--user", "--quiet", "status", "org.freedesktop.systemd1"]);
            status.status().is_ok_and(|status| status.success())
        });
        manager
    }

    fn run(&mut self, program: &str, arguments: &[&str]) {
        let mut command = as_user(program);
        command.args(arguments);
        let child = self
            .group
            .around(|| command.spawn().expect("it is installed"));
        self.children.push(child);
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir(BOOTED);
    }
}

fn runtime_directory() -> PathBuf {
    format!("/run/user/{NOBODY}").into()
}

fn bus_address() -> String {
    format!("unix:path={}/bus", runtime_directory().display())
}

fn as_user(program: &str) -> Command {
    let mut command = Command::new(program);
    make_ordinary(&mut command);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn make_ordinary(command: &mut Command) {
    command.uid(NOBODY).gid(NOBODY).current_dir("/");
    command.env("XDG_RUNTIME_DIR", runtime_directory());
    command.env("DBUS_SESSION_BUS_ADDRESS", bus_address());
    command.stdin(Stdio::null());
}

/// An engine of an ordinary user gets a scope, in which it holds clients down.
pub fn delegated() {
    let manager = Manager::start();
    let directory = tempfile::tempdir().expect("a directory");
    chown(directory.path(), Some(NOBODY), Some(NOBODY)).expect("root may give it away");
    let path = directory.path().to_str().expect("plain text");
    let start_all = || {
        let start = |arguments: &[&str]| Program::start_as(arguments, make_ordinary);
        let hogs = [start(&["hog"]), start(&["hog"])];
        let pids = hogs.each_ref().map(|hog| hog.pid().to_string());
        let mechanism = format!("{:?}", Mechanism::GroupIdle);
        let arguments = ["daemon", &mechanism, path, &pids[0], &pids[1]];
        (start(&arguments), hogs)
    };
    let cpu = [support::shared_cpu()];
    let (mut daemon, hogs) = manager.group.around(|| support::bound_to(&cpu, start_all));
    assert_eq!(daemon.hear(), "ready");
    let scope = format!("prorata-{}.scope", daemon.pid());
    let group = |pid| group_of(pid).expect("it runs").display().to_string();
    wait_until("clients are in the scope", || {
        hogs.iter().all(|hog| group(hog.pid()).contains(&scope))
    });
    wait_until("the loser is held down", || {
        support::count_normal(&hogs) == 1
    });
    support::signal(daemon.pid(), libc::SIGKILL);
    wait_until("both are put right", || support::count_normal(&hogs) == 2);
}
