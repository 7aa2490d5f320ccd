//! The wrapper between a shell and a command.
//!
//! The wrapper is in the command's process group, so the terminal's signals
//! reach both. The wrapper does two more things:
//!
//! * It forwards signals that a process sends to it. The kernel does not mark
//!   signals to a whole group, so the command receives those twice.
//! * When job control stops the command, the wrapper has the daemon suspend the
//!   client, and stops by the same signal. So the shell sees the stop.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, kill, killpg, sigaction};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpgrp};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::ending::Ending;
use super::keeper::{Keeper, Notice};
use super::signals::{Received, Signals};

/// Forwarded signals: users and programs send them to commands.
const SENT_ON: [Signal; 7] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGALRM,
];

/// The stop signals of job control.
pub(super) const STOPS: [Signal; 3] = [Signal::SIGTSTP, Signal::SIGTTIN, Signal::SIGTTOU];

/// If the command has not stopped after this time, it may have missed the
/// signal.
const TIME_TO_NOTICE: Duration = Duration::from_millis(50);

/// If the command has not stopped after this time, it handles the signal itself
/// and competes again.
const TIME_TO_STOP: Duration = Duration::from_secs(1);

/// Blocks the signals that [`supervise`] handles. Call this before forking the
/// command, so that no signal is lost in between.
pub fn block_signals() -> io::Result<Signals> {
    let child = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: the default action installs no handler. (Were SIGCHLD ignored, the
    // kernel would discard our children's exit codes.)
    unsafe { sigaction(Signal::SIGCHLD, &child) }?;
    let others = [Signal::SIGCHLD, Signal::SIGCONT];
    Signals::block(&[&SENT_ON[..], &STOPS, &others].concat())
}

/// Waits for the end of the command, process `child`. Meanwhile handles signals,
/// and the end of the daemon if `keeper` is given.
pub fn supervise(child: Pid, signals: &Signals, keeper: Option<Keeper<'_>>) -> io::Result<Ending> {
    let mut supervisor = Supervisor {
        child,
        keeper,
        stopping: None,
    };
    loop {
        supervisor.wait_for_news(signals)?;
        // Children come last: a stop signal of our own tells more than the stop
        // of the command.
        let mut children = false;
        while let Some(received) = signals.next()? {
            match received.signal {
                Signal::SIGCHLD => children = true,
                _ => supervisor.handle(received)?,
            }
        }
        if children && let Some(ending) = supervisor.look_at_children()? {
            supervisor.finish();
            return Ok(ending);
        }
        supervisor.look_at_clock()?;
    }
}

struct Supervisor<'a> {
    child: Pid,
    keeper: Option<Keeper<'a>>,
    /// A stop signal came, and the client is suspended.
    stopping: Option<Stopping>,
}

/// A stop signal that the command has not yet followed.
#[derive(Clone, Copy, Debug)]
struct Stopping {
    signal: Signal,
    /// Whether the terminal sent it to the whole process group.
    by_kernel: bool,
    /// When to send the signal again, since it may be lost.
    again_at: Option<Instant>,
    /// Deadline for the stop.
    until: Instant,
}

impl Supervisor<'_> {
    fn wait_for_news(&mut self, signals: &Signals) -> io::Result<()> {
        let daemon = self.keeper.as_ref().and_then(Keeper::daemon);
        let look_at = self.keeper.as_ref().and_then(Keeper::look_at);
        let stopping = self
            .stopping
            .map(|stopping| stopping.again_at.unwrap_or(stopping.until));
        let next = stopping.into_iter().chain(look_at).min();
        let left = next.map(|next| next.saturating_duration_since(Instant::now()));
        let timeout = left.map(|left| Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: left.subsec_nanos().into(),
        });
        let signals = signals.as_fd();
        let mut fds = [
            PollFd::new(&signals, PollFlags::IN),
            PollFd::new(daemon.as_ref().unwrap_or(&signals), PollFlags::IN),
        ];
        let watched = if daemon.is_some() { 2 } else { 1 };
        match poll(&mut fds[..watched], timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let daemon_ended = daemon.is_some() && !fds[1].revents().is_empty();
        let due = look_at.is_some_and(|time| time <= Instant::now());
        if let (true, Some(keeper)) = (daemon_ended || due, &mut self.keeper) {
            keeper.look_after_daemon();
        }
        Ok(())
    }

    fn handle(&mut self, received: Received) -> io::Result<()> {
        match received.signal {
            Signal::SIGCONT => self.go_on(),
            signal if STOPS.contains(&signal) => self.begin_to_stop(signal, received.by_kernel)?,
            signal if !received.by_kernel => self.send_on(signal)?,
            _ => {}
        }
        Ok(())
    }

    /// Reaps the command and its orphans, which became our children.
    fn look_at_children(&mut self) -> io::Result<Option<Ending>> {
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED)) {
                Ok(WaitStatus::Exited(pid, code)) if pid == self.child => {
                    return Ok(Some(Ending::Exited(code as u8)));
                }
                Ok(WaitStatus::Signaled(pid, signal, _)) if pid == self.child => {
                    return Ok(Some(Ending::Killed(signal)));
                }

                Ok(WaitStatus::Stopped(pid, signal))
                    if pid == self.child && self.is_of_user(signal) =>
                {
                    self.stop_like_child(signal)?;
                }
                Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return Ok(None),
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// After the command's end. Its other processes would be our children or theirs, so without a
    /// child nothing is left of the client.
    fn finish(&self) {
        let Some(keeper) = &self.keeper else {
            return;
        };
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Err(Errno::ECHILD) => return keeper.finish(),
                Ok(WaitStatus::StillAlive) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }

    /// Whether a stop of the command is the user's: the engine stops by SIGSTOP
    /// only, and never stops a suspended client.
    fn is_of_user(&self, signal: Signal) -> bool {
        STOPS.contains(&signal) || self.stopping.is_some()
    }

    /// Handles a stop signal: the command is about to stop.
    fn begin_to_stop(&mut self, signal: Signal, by_kernel: bool) -> io::Result<()> {
        if self.stopping.is_some() {
            return Ok(());
        }
        if !by_kernel {
            self.send_on(signal)?;
        }
        match self.suspend(signal, by_kernel) {
            Notice::Lost => self.ask_again(),
            Notice::PerhapsLost | Notice::Taken => Ok(()),
        }
    }

    /// Stops this process like the command, until a SIGCONT.
    fn stop_like_child(&mut self, signal: Signal) -> io::Result<()> {
        // If the engine had stopped the command too, suspending continued it.
        if self.stopping.is_none() && self.suspend(signal, false) == Notice::Lost {
            return self.ask_again();
        }
        Signals::suffer(if STOPS.contains(&signal) {
            signal
        } else {
            Signal::SIGTSTP
        })?;
        // The SIGCONT may have come to this process alone.
        self.send_on(Signal::SIGCONT)?;
        self.go_on();
        Ok(())
    }

    /// Suspends the client for a stop by `signal`.
    fn suspend(&mut self, signal: Signal, by_kernel: bool) -> Notice {
        let notice = self.keeper.as_mut().map_or(Notice::Taken, Keeper::suspend);
        let now = Instant::now();
        self.stopping = Some(Stopping {
            signal,
            by_kernel,
            again_at: (notice == Notice::PerhapsLost).then_some(now + TIME_TO_NOTICE),
            until: now + TIME_TO_STOP,
        });
        notice
    }

    /// Repeats the stop signal, to the group or to the command as before.
    fn ask_again(&mut self) -> io::Result<()> {
        match self.stopping {
            Some(Stopping {
                signal,
                by_kernel: true,
                ..
            }) => Ok(killpg(getpgrp(), signal)?),
            Some(Stopping {
                signal,
                by_kernel: false,
                ..
            }) => self.send_on(signal),
            None => Ok(()),
        }
    }

    fn look_at_clock(&mut self) -> io::Result<()> {
        let now = Instant::now();
        if let Some(stopping) = &mut self.stopping {
            if stopping.again_at.is_some_and(|again_at| again_at <= now) {
                stopping.again_at = None;
                return self.ask_again();
            }
            if stopping.until <= now {
                self.go_on();
            }
        }
        Ok(())
    }

    fn go_on(&mut self) {
        if let (Some(_), Some(keeper)) = (self.stopping.take(), &mut self.keeper) {
            keeper.resume();
        }
    }

    /// Forwards a signal to the command, which may have ended.
    fn send_on(&self, signal: Signal) -> io::Result<()> {
        match kill(self.child, signal) {
            Ok(()) | Err(Errno::ESRCH) => Ok(()),
            // A set-user-ID command refuses our signals, as it does a shell's.
            Err(Errno::EPERM) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
