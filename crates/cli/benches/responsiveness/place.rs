//! Groups of programs: clients where ours schedules clients alone, otherwise control groups.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use prorata_kernel::scheduler::{BASE, Scheduler, Ticket};

const ROOT: &str = "/sys/fs/cgroup";
/// Of a group that has no rival.
const TICKETS: u64 = 100;

/// The group of the rivals and that of the load, which may be the same.
pub struct Groups<'a> {
    rivals: Group<'a>,
    load: Option<Group<'a>>,
}

impl<'a> Groups<'a> {
    /// The tickets are those of the rivals' group and the load's. Without tickets there is one
    /// group.
    pub fn new(scheduler: Option<&'a Scheduler>, tickets: Option<[u64; 2]>) -> Self {
        let of_rivals = tickets.map_or(TICKETS, |[of_rivals, _]| of_rivals);
        Self {
            rivals: Group::new(scheduler, 1, of_rivals),
            load: tickets.map(|[_, of_load]| Group::new(scheduler, 2, of_load)),
        }
    }

    pub fn put_rival(&self, rival: &Program) {
        self.rivals.put(rival);
    }

    pub fn put_load(&self, program: &Program) {
        self.load.as_ref().unwrap_or(&self.rivals).put(program);
    }
}

enum Group<'a> {
    Control(PathBuf),
    Client(&'a Scheduler, u32),
}

impl<'a> Group<'a> {
    fn new(scheduler: Option<&'a Scheduler>, number: u32, tickets: u64) -> Self {
        let Some(scheduler) = scheduler else {
            let path = Path::new(ROOT).join(format!("group-{number}"));
            let write = |path: PathBuf, text: &str| fs::write(path, text).expect("it is ours");
            write(Path::new(ROOT).join("cgroup.subtree_control"), "+cpu");
            fs::create_dir(&path).expect("it is new");
            write(path.join("cpu.weight"), &tickets.to_string());
            return Self::Control(path);
        };
        let ticket = Ticket {
            currency: BASE,
            amount: tickets,
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
