//! Standing between a shell and a command.
//!
//! The wrapper is in the command's process group, so the terminal's signals
//! reach the command by themselves. What the wrapper adds:
//!
//! * Signals that somebody sends to it alone it sends on. The kernel does not
//!   tell those from signals to the whole group, which the command therefore
//!   gets twice.
//! * When the command stops by job control, the daemon takes the client out of
//!   the competition, and the wrapper stops by the same signal, so that the
//!   shell sees what it would see of the command.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, kill, killpg, sigaction};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpgrp};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::ending::Ending;
use super::keeper::Keeper;
use super::signals::{Received, Signals};

/// Signals that are sent on: those by which people and programs ask a command
/// for something.
const SENT_ON: [Signal; 7] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGALRM,
];

/// Signals of job control that stop.
const STOPS: [Signal; 3] = [Signal::SIGTSTP, Signal::SIGTTIN, Signal::SIGTTOU];

/// So long a command may take to stop after a stop signal; one that takes
/// longer does not mean to, and competes again.
const TIME_TO_STOP: Duration = Duration::from_secs(1);

/// Blocks the signals that [`supervise`] handles. To be called before the
/// command is forked, so that none gets lost in between.
pub fn block_signals() -> io::Result<Signals> {
    let child = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: the default action is no handler. It must not be "ignored", as
    // then the kernel would throw our children's exit codes away.
    unsafe { sigaction(Signal::SIGCHLD, &child) }?;
    let others = [Signal::SIGCHLD, Signal::SIGCONT];
    Signals::block(&[&SENT_ON[..], &STOPS, &others].concat())
}

/// Waits until the command of process `child` has ended, for the terminal and
/// for the daemon (if `keeper` is given) all the while.
pub fn supervise(child: Pid, signals: &Signals, keeper: Option<Keeper<'_>>) -> io::Result<Ending> {
    let mut supervisor = Supervisor {
        child,
        keeper,
        stopping_until: None,
    };
    loop {
        supervisor.wait_for_news(signals)?;
        while let Some(received) = signals.next()? {
            if let Some(ending) = supervisor.handle(received)? {
                return Ok(ending);
            }
        }
        supervisor.give_up_stopping();
    }
}

struct Supervisor<'a> {
    child: Pid,
    keeper: Option<Keeper<'a>>,
    /// The client is suspended since a stop signal came, and its root is
    /// expected to stop until then.
    stopping_until: Option<Instant>,
}

impl Supervisor<'_> {
    fn wait_for_news(&mut self, signals: &Signals) -> io::Result<()> {
        let daemon = self.keeper.as_ref().and_then(Keeper::daemon);
        let timeout = self
            .stopping_until
            .map(|until| until.saturating_duration_since(Instant::now()));
        let timeout = timeout.map(|left| Timespec {
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
        if let (true, Some(keeper)) = (daemon_ended, &mut self.keeper) {
            keeper.look_after_daemon();
        }
        Ok(())
    }

    fn handle(&mut self, received: Received) -> io::Result<Option<Ending>> {
        match received.signal {
            Signal::SIGCHLD => return self.look_at_children(),
            Signal::SIGCONT => self.go_on(),
            signal if STOPS.contains(&signal) => self.begin_to_stop(signal, received.by_kernel)?,
            signal if !received.by_kernel => self.send_on(signal)?,
            _ => {}
        }
        Ok(None)
    }

    /// Reaps the command and the orphans that became our children.
    fn look_at_children(&mut self) -> io::Result<Option<Ending>> {
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED)) {
                Ok(WaitStatus::Exited(pid, code)) if pid == self.child => {
                    return Ok(Some(Ending::Exited(code as u8)));
                }
                Ok(WaitStatus::Signaled(pid, signal, _)) if pid == self.child => {
                    return Ok(Some(Ending::Killed(signal)));
                }
                // The engine stops by SIGSTOP only, so any other stop is the user's.
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

    /// While the client is suspended the engine stops nothing.
    fn is_of_user(&self, signal: Signal) -> bool {
        STOPS.contains(&signal) || self.stopping_until.is_some()
    }

    /// A stop signal came, so the command is about to stop. A process that the
    /// engine had stopped does not notice it; the daemon has continued it now,
    /// and it gets the signal again.
    fn begin_to_stop(&mut self, signal: Signal, by_kernel: bool) -> io::Result<()> {
        if self.stopping_until.is_some() {
            return Ok(());
        }
        if !by_kernel {
            self.send_on(signal)?;
        }
        let unnoticed = self.keeper.as_mut().is_some_and(Keeper::suspend);
        self.stopping_until = Some(Instant::now() + TIME_TO_STOP);
        match (unnoticed, by_kernel) {
            (true, true) => Ok(killpg(getpgrp(), signal)?),
            (true, false) => self.send_on(signal),
            (false, _) => Ok(()),
        }
    }

    /// The command has stopped: so do we, until somebody continues us.
    fn stop_like_child(&mut self, signal: Signal) -> io::Result<()> {
        if let (None, Some(keeper)) = (self.stopping_until, &mut self.keeper) {
            keeper.suspend();
        }
        self.stopping_until = Some(Instant::now());
        Signals::suffer(if STOPS.contains(&signal) {
            signal
        } else {
            Signal::SIGTSTP
        })?;
        // Continued alone, we continue the command.
        self.send_on(Signal::SIGCONT)?;
        self.go_on();
        Ok(())
    }

    fn give_up_stopping(&mut self) {
        if self
            .stopping_until
            .is_some_and(|until| until <= Instant::now())
        {
            self.go_on();
        }
    }

    fn go_on(&mut self) {
        if let (Some(_), Some(keeper)) = (self.stopping_until.take(), &mut self.keeper) {
            keeper.resume();
        }
    }

    /// To the command; it may have ended.
    fn send_on(&self, signal: Signal) -> io::Result<()> {
        match kill(self.child, signal) {
            Ok(()) | Err(Errno::ESRCH) => Ok(()),
            // A set-user-ID command does not take signals from us: as under a shell.
            Err(Errno::EPERM) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
