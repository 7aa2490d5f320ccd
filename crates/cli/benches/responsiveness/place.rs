//! Groups of programs: clients where ours schedules clients alone, otherwise control groups.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use prorata_kernel::scheduler::{BASE, Scheduler, Ticket};

const ROOT: &str = "/sys/fs/cgroup";
const TICKETS: u64 = 100;

/// The group of the hogs and that of the load, which may be the same.
pub struct Groups<'a> {
    hogs: Group<'a>,
    load: Option<Group<'a>>,
}

impl<'a> Groups<'a> {
    pub fn new(scheduler: Option<&'a Scheduler>, together: bool) -> Self {
        Self {
            hogs: Group::new(scheduler, 1),
            load: (!together).then(|| Group::new(scheduler, 2)),
        }
    }

    pub fn put_hog(&self, hog: &Program) {
        self.hogs.put(hog);
    }

    pub fn put_load(&self, program: &Program) {
        self.load.as_ref().unwrap_or(&self.hogs).put(program);
    }
}

enum Group<'a> {
    Control(PathBuf),
    Client(&'a Scheduler, u32),
}

impl<'a> Group<'a> {
    fn new(scheduler: Option<&'a Scheduler>, number: u32) -> Self {
        let Some(scheduler) = scheduler else {
            let path = Path::new(ROOT).join(format!("group-{number}"));
            let write = fs::write(Path::new(ROOT).join("cgroup.subtree_control"), "+cpu");
            write.expect("it is ours");
            fs::create_dir(&path).expect("it is new");
            return Self::Control(path);
        };
        let ticket = Ticket {
            currency: BASE,
            amount: TICKETS,
        };
        let funded = scheduler.set_tickets(number, &[ticket]);
        funded.unwrap_or_else(|error| panic!("{error}"));
        Self::Client(scheduler, number)
    }

    /// Its children follow.
    fn put(&self, program: &Program) {
        let pid = program.0.id();
        match self {
            Self::Control(path) => {
                fs::write(path.join("cgroup.procs"), pid.to_string()).expect("it is ours");
            }
            Self::Client(scheduler, number) => {
                let given = scheduler.give(*number, pid);
                given.unwrap_or_else(|error| panic!("{error}"));
            }
        }
    }
}

impl Drop for Group<'_> {
    fn drop(&mut self) {
        let Self::Control(path) = self else {
            return;
        };
        // The kernel refuses to remove a group before its last process is gone.
        while fs::remove_dir(&*path).is_err() {
            sleep(Duration::from_millis(5));
        }
    }
}

/// This program in another role, until this is dropped.
pub struct Program(Child);

impl Program {
    pub fn start(role: &str) -> Self {
        let program = std::env::current_exe().expect("it runs");
        let child = Command::new(program)
            .arg(role)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        Self(child.expect("it runs"))
    }

    pub fn input(&mut self) -> &mut ChildStdin {
        self.0.stdin.as_mut().expect("it is a pipe")
    }

    pub fn output(&mut self) -> &mut ChildStdout {
        self.0.stdout.as_mut().expect("it is a pipe")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
