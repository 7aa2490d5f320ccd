//! Signals that wait for processes which the engine holds down.
//!
//! A stopped process takes no signal but SIGKILL, and a demoted one takes any signal late. So the
//! engine looks for pending signals, and lets processes take them at once:
//!
//! - A signal that ends its process: this one process is no longer held down. It runs no
//!   instruction of its program any more.
//! - A signal with a handler: the client runs until the signal is delivered. [`Client`] bounds the
//!   CPU time that it takes in this way.

use crate::client::Client;
use crate::process::{Process, Treatment};
use crate::procfs::{self, SignalSets};
use crate::time::MILLISECOND_NS;
use crate::tree::Tree;

/// How often pending signals are looked for.
pub(crate) const LOOK_INTERVAL_NS: u64 = 50 * MILLISECOND_NS;

/// The same while a process is let run because of a signal.
pub(crate) const DELIVERY_INTERVAL_NS: u64 = MILLISECOND_NS;

/// Processes that one look for new signals reads. With more of them held down, looks take turns.
const PROCESSES_AT_ONCE: usize = 128;

/// Threads that are asked whether they take a signal that their process's first thread blocks.
const THREADS_AT_ONCE: usize = 16;

/// A set of signals as the kernel prints it.
const fn set(signals: &[i32]) -> u64 {
    let mut set = 0;
    let mut index = 0;
    while index < signals.len() {
        set |= 1 << (signals[index] - 1);
        index += 1;
    }
    set
}

/// Signals that end no process.
const HARMLESS: u64 = JOB_CONTROL | set(&[libc::SIGURG, libc::SIGWINCH]);

/// The engine's own stops cause the first two, and continuing a process discards the others.
const JOB_CONTROL: u64 = set(&[
    libc::SIGCHLD,
    libc::SIGCONT,
    libc::SIGSTOP,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
]);

/// What waits for a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pending {
    Nothing,
    /// A signal that the program handles.
    Handled,
    /// A signal that ends the process.
    Fatal,
}

impl Pending {
    /// What waits for a process. Cost: 10 us, and more if its first thread blocks such a signal.
    fn of(pid: u32) -> Pending {
        let Ok(first) = procfs::signal_sets(pid, pid) else {
            return Pending::Nothing;
        };
        let mut blocked = first.blocked;
        let mut asked = 0;
        if first.shared & blocked != 0 {
            // Where the directory is gone, the process is too.
            let _ = procfs::for_each_thread(pid, |tid| {
                asked += 1;
                if asked <= THREADS_AT_ONCE
                    && let Ok(other) = procfs::signal_sets(pid, tid)
                {
                    blocked &= other.blocked;
                }
            });
        }
        let taken = first.own & !first.blocked | first.shared & !blocked;
        classify(taken, &first)
    }
}

/// What these signals mean to a process with such actions.
fn classify(taken: u64, actions: &SignalSets) -> Pending {
    let taken = taken & !actions.ignored;
    if taken & !actions.caught & !HARMLESS != 0 {
        Pending::Fatal
    } else if taken & actions.caught & !JOB_CONTROL != 0 {
        Pending::Handled
    } else {
        Pending::Nothing
    }
}

impl Process {
    /// Finds out what waits for this process, which is held down or is let run for a signal.
    fn look_for_signals(&mut self) {
        self.pending = match self.stat() {
            Ok(stat) if stat.has_ended() => Pending::Nothing,
            // It took such a signal, and needs some CPU time to end.
            Ok(stat) if stat.is_ending() => Pending::Fatal,
            // Its user, or a debugger, has stopped it. It takes no signal meanwhile.
            Ok(stat) if stat.is_stopped() && !self.is_stopped_by_us() => Pending::Nothing,
            Ok(_) => Pending::of(self.id.pid),
            Err(_) => Pending::Nothing,
        };
    }
}

/// Looks for signals that wait for processes.
#[derive(Default, Debug)]
pub(crate) struct SignalWatch {
    /// Where the next look for new signals begins: so many processes are passed over.
    next: usize,
}

impl SignalWatch {
    /// Looks at the processes for which a signal waited before, and if `for_new` is set at others
    /// too. Returns whether any is to be treated differently now.
    pub(crate) fn look(&mut self, tree: &mut Tree, for_new: bool, quantum_ns: u64) -> bool {
        let until = match for_new {
            true => self.next + PROCESSES_AT_ONCE,
            false => self.next,
        };
        let mut index = 0;
        let mut any_changed = false;
        for client in tree
            .clients_mut()
            .filter(|client| client.may_have_to_wait())
        {
            let mut changed = false;
            for process in &mut client.processes {
                let before = process.pending;
                if before != Pending::Nothing || (self.next..until).contains(&index) {
                    process.look_for_signals();
                }
                changed |= process.pending != before;
                index += 1;
            }
            changed |= client.answer_signals(quantum_ns);
            client.unsettled |= changed;
            any_changed |= changed;
        }
        if for_new {
            self.next = if until < index { until } else { 0 };
        }
        any_changed
    }
}

impl Client {
    /// Whether its processes are held down, or would be without a signal.
    fn may_have_to_wait(&self) -> bool {
        self.treatment != Treatment::Normal || self.answers_signal
    }

    /// Whether it, or one of its processes, runs only until a signal is delivered.
    pub(crate) fn awaits_delivery(&self) -> bool {
        let mut processes = self.processes.iter();
        self.may_have_to_wait()
            && (self.answers_signal || processes.any(|process| process.pending == Pending::Fatal))
    }

    /// Decides whether it runs because of a signal with a handler. Returns whether that changed.
    fn answer_signals(&mut self, quantum_ns: u64) -> bool {
        let mut processes = self.processes.iter();
        let handles = processes.any(|process| process.pending == Pending::Handled);
        let answers = handles && self.answering_ns < quantum_ns;
        std::mem::replace(&mut self.answers_signal, answers) != answers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACTIONS: SignalSets = SignalSets {
        own: 0,
        shared: 0,
        blocked: 0,
        ignored: set(&[libc::SIGHUP]),
        caught: set(&[libc::SIGINT, libc::SIGCHLD, libc::SIGCONT]),
    };

    #[test]
    fn a_signal_matters_by_its_action() {
        for (signals, pending) in [
            (&[][..], Pending::Nothing),
            (&[libc::SIGTERM], Pending::Fatal),
            (&[libc::SIGKILL], Pending::Fatal),
            (&[libc::SIGINT], Pending::Handled),
            (&[libc::SIGINT, libc::SIGTERM], Pending::Fatal),
            (&[libc::SIGHUP], Pending::Nothing),
            (&[libc::SIGWINCH], Pending::Nothing),
        ] {
            assert_eq!(classify(set(signals), &ACTIONS), pending, "{signals:?}");
        }
    }

    #[test]
    fn the_engines_own_stops_are_no_signal_to_answer() {
        let own = set(&[libc::SIGCHLD, libc::SIGCONT, libc::SIGSTOP]);
        assert_eq!(classify(own, &ACTIONS), Pending::Nothing);
        let all_caught = SignalSets {
            caught: u64::MAX,
            ..ACTIONS
        };
        assert_eq!(classify(own, &all_caught), Pending::Nothing);
    }
}
