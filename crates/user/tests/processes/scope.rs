//! The engine below a user's service manager. Only a machine that no service manager has booted
//! lets a test start one of its own, and only a hierarchy of version 2 alone lets it work: so in
//! the project's machine.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
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

/// A `busctl` that says that the user lingers, and writes down which processes the service manager
/// is to move. (Only a machine that systemd has booted has a manager that may move them.)
fn make_busctl(directory: &Path) {
    let script = format!(
        "#!/bin/sh\nfor word; do case $word in\n\
         Linger) echo b true; exit;;\n\
         AttachProcessesToUnit) echo \"$*\" >> {}/asked; exit;;\n\
         esac; done\nexec /usr/bin/busctl \"$@\"\n",
        directory.display()
    );
    let busctl = directory.join("busctl");
    fs::write(&busctl, script).expect("the directory is ours");
    fs::set_permissions(&busctl, fs::Permissions::from_mode(0o755)).expect("it is ours");
}

/// The moves that were asked for: pids with groups below the scope.
fn moves_asked_for(directory: &Path) -> Vec<(u32, String)> {
    let asked = fs::read_to_string(directory.join("asked")).unwrap_or_default();
    let moves = asked.lines().flat_map(|line| {
        let mut words = line.split(' ').skip_while(|word| *word != "ssau").skip(2);
        let group = words
            .next()
            .expect("a group")
            .trim_start_matches('/')
            .to_owned();
        let pids = words.skip(1).map(|pid| pid.parse().expect("a pid"));
        pids.map(move |pid| (pid, group.clone()))
            .collect::<Vec<_>>()
    });
    moves.collect()
}

/// Processes of a login, which an engine may not move, are held down by signals until the system's
/// service manager has moved them to the scope, and by groups then.
pub fn moved() {
    let manager = Manager::start();
    let login = Delegated::to(0).expect("control groups are there");
    let directory = tempfile::tempdir().expect("a directory");
    chown(directory.path(), Some(NOBODY), Some(NOBODY)).expect("root may give it away");
    make_busctl(directory.path());
    let cpu = [support::shared_cpu()];
    let start_hog = || Program::start_as(&["hog"], make_ordinary);
    let hogs = login.around(|| support::bound_to(&cpu, || [start_hog(), start_hog()]));
    let start_daemon = || {
        let pids = hogs.each_ref().map(|hog| hog.pid().to_string());
        let mechanism = format!("{:?}", Mechanism::GroupIdle);
        let state = directory.path().join("state").display().to_string();
        let path = format!("{}:/usr/bin:/bin", directory.path().display());
        Program::start_as(
            &["daemon", &mechanism, &state, &pids[0], &pids[1]],
            |command| {
                make_ordinary(command);
                command.env("PATH", path);
            },
        )
    };
    let mut daemon = manager
        .group
        .around(|| support::bound_to(&cpu, start_daemon));
    assert_eq!(daemon.hear(), "ready");
    let is_stopped = |hog: &Program| support::stat_field(hog.pid(), 3) == "T";
    wait_until("without a move, the loser is stopped", || {
        hogs.iter().any(is_stopped)
    });
    let moves = moves_asked_for(directory.path());
    assert_eq!(moves.len(), 2, "each is asked for once");
    let engine = group_of(daemon.pid()).expect("it runs");
    let scope = engine.parent().expect("the engine is below its scope");
    for (pid, group) in moves {
        support::control_groups::put_in(&scope.join(group), pid);
    }
    wait_until("the loser is held down by its group", || {
        let held = |hog: &&Program| support::control_groups::is_held_down(hog.pid());
        hogs.iter().filter(held).count() == 1 && !hogs.iter().any(is_stopped)
    });
    support::signal(daemon.pid(), libc::SIGKILL);
    wait_until("both are put right", || support::count_normal(&hogs) == 2);
}
