//! The programs that the demo runs: ones that every machine has and that only
//! compute.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs, io};

use anyhow::{Context as _, Result};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use prorata_user::SOCKET_MARKER;
use rustix::process::{getpid, getppid, kill_process, set_parent_process_death_signal};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::wrapper::gate::Gated;
use crate::wrapper::signals::Signals;

/// The first one that the machine has is taken.
const CANDIDATES: [(&str, &[&str]); 4] = [
    ("sha256sum", &["/dev/zero"]),
    ("md5sum", &["/dev/zero"]),
    ("cksum", &["/dev/zero"]),
    ("sh", &["-c", "while :; do :; done"]),
];

/// A program and its arguments.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    name: &'static str,
    arguments: &'static [&'static str],
}

impl Program {
    /// One that this machine has.
    pub fn find() -> Result<Self> {
        let path = env::var_os("PATH").unwrap_or_default();
        let present = |name: &str| {
            env::split_paths(&path).any(|directory| is_executable(&directory.join(name)))
        };
        let found = CANDIDATES.iter().find(|(name, _)| present(name));
        let names = CANDIDATES.map(|(name, _)| name).join(", ");
        found
            .map(|&(name, arguments)| Self { name, arguments })
            .with_context(|| {
                format!("no program to run was found: put one of {names} into a directory of PATH")
            })
    }

    /// As it would be typed.
    pub fn line(&self) -> String {
        format!("{} {}", self.name, self.arguments.join(" "))
    }
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// A program that runs, or waits to be let go. It never outlives this.
#[derive(Debug)]
pub struct Running {
    pid: Pid,
    gated: Option<Gated>,
}

impl Running {
    /// A process of `program` on `cpu` that waits to be let go; its daemon
    /// listens on `socket`.
    pub fn prepare(program: Program, cpu: usize, socket: &Path, signals: &Signals) -> Result<Self> {
        let mut command = Command::new(program.name);
        command
            .args(program.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command.env(SOCKET_MARKER, socket);
        // A group of its own: the terminal's signals are for us, and we end it.
        command.process_group(0);
        let parent = getpid();
        // SAFETY: between fork and exec only system calls are made, which are
        // async-signal-safe.
        unsafe {
            command.pre_exec(move || {
                set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
                // We may have died before that.
                if getppid() != Some(parent) {
                    kill_process(getpid(), rustix::process::Signal::KILL)?;
                }
                Ok(())
            });
        }
        let gated =
            Gated::fork(command, signals.mask_before()).context("cannot start a process")?;
        let running = Self {
            pid: gated.pid(),
            gated: Some(gated),
        };
        let mut cpus = CpuSet::new();
        cpus.set(cpu);
        sched_setaffinity(rustix::process::Pid::from_raw(running.pid.as_raw()), &cpus)
            .with_context(|| format!("cannot bind a process to CPU {cpu}"))?;
        Ok(running)
    }

    /// Its pid.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw().unsigned_abs()
    }

    /// Lets it begin as `client`.
    pub fn let_go(&mut self, client: &str) -> io::Result<()> {
        self.gated
            .take()
            .map_or(Ok(()), |gated| gated.let_go(Some(client)))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to kill.
        let _ = kill(self.pid, Signal::SIGKILL);
        let _ = waitpid(self.pid, None);
    }
}
