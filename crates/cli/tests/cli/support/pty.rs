//! A shell on a terminal, and keys.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::Winsize;

use super::PATIENCE;
use super::delegated::Delegated;

const PROMPT: &str = "ready> ";

pub const CTRL_C: &str = "\x03";
pub const CTRL_D: &str = "\x04";
pub const CTRL_Z: &str = "\x1a";
pub const CTRL_BACKSLASH: &str = "\x1c";

/// A program in a session of its own whose terminal is ours.
pub struct Pty {
    /// `None` after closing.
    terminal: Option<File>,
    child: Child,
    /// Output that no `expect` has consumed yet.
    printed: String,
}

impl Pty {
    /// An interactive bash that finds our program as `prorata`.
    pub fn bash(socket: &Path) -> Self {
        Self::bash_around(&super::prorata(socket), None, None)
    }

    /// An interactive bash with the program and environment of `prorata`, as another
    /// user and in another control group if given.
    pub fn bash_around(prorata: &Command, uid: Option<u32>, group: Option<&Delegated>) -> Self {
        let mut bash = Command::new("bash");
        let program = Path::new(prorata.get_program()).parent().unwrap();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let paths = std::iter::once(program.to_path_buf()).chain(std::env::split_paths(&path));
        bash.args(["--norc", "--noprofile", "-i"])
            .env("PATH", std::env::join_paths(paths).unwrap())
            .env("PS1", PROMPT)
            .env("LC_ALL", "C")
            .env("TERM", "dumb")
            .env("INPUTRC", "/dev/null");
        for (name, value) in prorata.get_envs() {
            match value {
                Some(value) => bash.env(name, value),
                None => bash.env_remove(name),
            };
        }
        if let Some(uid) = uid {
            bash.uid(uid).gid(uid);
        }
        if let Some(group) = group {
            group.admit(&mut bash);
        }
        let mut pty = Self::spawn(&mut bash);
        pty.prompt();
        // Without echo, all output comes from programs.
        pty.line("stty -echo; bind 'set enable-bracketed-paste off' 2>/dev/null");
        pty.prompt();
        pty
    }

    /// A program with the terminal as its standard streams and as its
    /// controlling terminal.
    pub fn spawn(command: &mut Command) -> Self {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave = open(
            &name,
            OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .unwrap();
        let copy = |fd: &OwnedFd| Stdio::from(fd.try_clone().unwrap());
        command
            .stdin(copy(&slave))
            .stdout(copy(&slave))
            .stderr(copy(&slave));
        // SAFETY: between fork and exec only two system calls are made.
        unsafe {
            command.pre_exec(|| {
                rustix::process::setsid()?;
                // Descriptor 0 is the terminal here.
                rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
                Ok(())
            });
        }
        let child = command.spawn().unwrap();
        Self {
            terminal: Some(File::from(master)),
            child,
            printed: String::new(),
        }
    }

    /// As `spawn`, on a terminal of a given size.
    pub fn spawn_sized(command: &mut Command, rows: u16, columns: u16) -> Self {
        // SAFETY: between fork and exec one system call is made.
        unsafe {
            command.pre_exec(move || {
                let size = Winsize {
                    ws_row: rows,
                    ws_col: columns,
                    ws_xpixel: 0,
                    ws_ypixel: 0,
                };
                Ok(rustix::termios::tcsetwinsize(rustix::stdio::stdin(), size)?)
            });
        }
        Self::spawn(command)
    }

    /// The output until the program on the terminal has ended.
    #[track_caller]
    pub fn rest(mut self) -> String {
        let deadline = Instant::now() + PATIENCE;
        while self.child.try_wait().unwrap().is_none() {
            self.read(Duration::from_millis(20));
            assert!(Instant::now() < deadline, "runs after {:?}", self.printed);
        }
        // A program's output is in the terminal before its end.
        while self.read(Duration::ZERO) {}
        std::mem::take(&mut self.printed)
    }

    pub fn keys(&mut self, keys: &str) {
        self.terminal().write_all(keys.as_bytes()).unwrap();
    }

    pub fn line(&mut self, line: &str) {
        self.keys(&format!("{line}\n"));
    }

    /// Waits for the shell's prompt; returns the output before it.
    #[track_caller]
    pub fn prompt(&mut self) -> String {
        self.expect(PROMPT)
    }

    /// Stops the job in the foreground.
    #[track_caller]
    pub fn stop_job(&mut self) {
        self.keys(CTRL_Z);
        self.expect("Stopped ");
        self.prompt();
    }

    /// Waits for the exit code of the last command.
    #[track_caller]
    pub fn expect_code(&mut self, code: i32) {
        self.line("echo code=$?");
        self.expect(&format!("code={code}"));
    }

    /// Waits until a process's job is in the terminal's foreground.
    #[track_caller]
    pub fn foreground(&mut self, pid: u32) {
        let process = rustix::process::Pid::from_raw(pid.cast_signed());
        let job = rustix::process::getpgid(process).unwrap();
        super::eventually("in the foreground", || {
            rustix::termios::tcgetpgrp(self.terminal()) == Ok(job)
        });
    }

    /// Waits for `text`; returns the output before it.
    #[track_caller]
    pub fn expect(&mut self, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        // The search continues here, because endless output grows long.
        let mut from = 0;
        loop {
            if let Some(place) = self.printed[from..].find(text) {
                let place = from + place;
                let before = self.printed[..place].to_owned();
                self.printed.drain(..place + text.len());
                return before;
            }
            let tail = self.printed.len().saturating_sub(text.len());
            let mut places = (0..=tail).rev();
            let boundary = places.find(|&place| self.printed.is_char_boundary(place));
            from = boundary.unwrap_or(0);
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero() && self.read(left),
                "expected {text:?}, got {:?}",
                self.printed
            );
        }
    }

    /// Reads available output; false at the end, or when the time is over.
    fn read(&mut self, time: Duration) -> bool {
        let timeout = Timespec::try_from(time).unwrap();
        let ready = poll(
            &mut [PollFd::new(self.terminal(), PollFlags::IN)],
            Some(&timeout),
        );
        if ready != Ok(1) {
            return ready == Err(rustix::io::Errno::INTR);
        }
        let mut bytes = [0; 4096];
        // Reading fails after the last process has closed the terminal.
        match self.terminal().read(&mut bytes) {
            Ok(count) if count > 0 => {
                self.printed
                    .push_str(&String::from_utf8_lossy(&bytes[..count]));
                true
            }
            _ => false,
        }
    }

    /// The program on the terminal.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Closes the terminal, as when its window is closed.
    pub fn close(&mut self) {
        self.terminal = None;
    }

    fn terminal(&mut self) -> &mut File {
        self.terminal.as_mut().expect("the terminal is open")
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
