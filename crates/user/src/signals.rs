//! Signals that wait for processes which the engine holds down.
//!
//! A stopped process takes no signal but SIGKILL, and a demoted one takes any signal late. So the
//! engine looks for pending signals, and lets processes take them at once:
//!
//! - A signal that ends its process: this one process is no longer held down until it has ended.
//! - A signal with a handler: the client runs until the signal is delivered, and then until the
//!   process sleeps or has used an eighth of a quantum, for 100 ms at the longest. (A process of several
//!   threads is not known to sleep.) The kernel counts a signal as delivered before
//!   the handler runs its first instruction, and many handlers only leave a note for their programs.
//!
//! [`Client`] bounds the CPU time that it takes in this way: even a signal without a handler need
//! not end its process, as a thread may take it by sigwait(3). The kernel turns a signal into
//! SIGKILL once the process has to end. That is not bounded, because the process runs no
//! instruction of its program any more.
//!
//! A client that its control group holds down runs as a whole, whatever the signal, and all that
//! time is bounded. (SIGKILL, and a signal without a handler, end a frozen process at once.)

use std::collections::HashMap;
use std::io;

use prorata_core::ids::ClientId;

use crate::client::Client;
use crate::process::{Process, Treatment};
use crate::process_id::ProcessId;
use crate::procfs::{self, SignalSets, Status, StatusFile};
use crate::scheduler;
use crate::slumber::Sampling;
use crate::time::MILLISECOND_NS;
use crate::tree::Tree;

/// How often pending signals are looked for.
pub(crate) const LOOK_INTERVAL_NS: u64 = 70 * MILLISECOND_NS;

/// The same while a process is let run because of a signal.
pub(crate) const DELIVERY_INTERVAL_NS: u64 = MILLISECOND_NS;

/// Part of a quantum that a process may use once a signal for a handler is delivered.
const AFTERMATH_PART: u64 = 8;

/// For so long it may take its time for that.
const LONGEST_AFTERMATH_NS: u64 = 100 * MILLISECOND_NS;

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
    /// A signal that the program handles, or the program's answer to such a signal.
    Handled,
    /// A signal that ends the process once it is delivered.
    Fatal,
    /// Nothing but its end: SIGKILL waits for it, or it is on its way to its end.
    End,
}

impl Pending {
    /// The signal that waits for a process whose first thread has this status. Costs more if that
    /// thread blocks such a signal.
    ///
    /// Signals directed at a single thread are seen at the first thread only. If the first thread
    /// does not take a signal, [`THREADS_AT_ONCE`] others are asked, and further threads are taken
    /// to block it.
    fn of(pid: u32, status: &Status) -> Pending {
        let mut first = status.signals;
        if status.thread_has_ended() {
            // It takes none, though it blocks none.
            first.blocked = u64::MAX;
        }
        let mut blocked = first.blocked;
        let mut asked = 0;
        if first.shared & blocked != 0 {
            // Where the directory is gone, the process is too.
            let _ = procfs::for_each_thread(pid, |tid| {
                if tid == pid {
                    return;
                }
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
    if taken & set(&[libc::SIGKILL]) != 0 {
        Pending::End
    } else if taken & !actions.caught & !HARMLESS != 0 {
        Pending::Fatal
    } else if taken & actions.caught & !JOB_CONTROL != 0 {
        Pending::Handled
    } else {
        Pending::Nothing
    }
}

/// When a signal for a handler was seen to wait last.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct LastHandled {
    /// On the process's CPU clock.
    clock_ns: u64,
    /// On the monotonic clock.
    seen_ns: u64,
}

impl Process {
    /// Finds out what waits for this process, which is held down or is let run for a signal.
    fn look_for_signals(&mut self, files: &mut StatusFiles, now_ns: u64, quantum_ns: u64) {
        self.pending = match files.read(self.id) {
            Ok(status) if status.has_ended() => Pending::Nothing,
            // It needs some CPU time to end.
            Ok(status) if status.is_ending() => Pending::End,
            // Its user, or a debugger, has stopped it. It takes no signal meanwhile.
            Ok(status) if status.is_stopped() && !self.is_stopped_by_us() => Pending::Nothing,
            Ok(status) => match Pending::of(self.id.pid, &status) {
                Pending::Nothing if self.still_answers(&status, now_ns, quantum_ns) => {
                    return;
                }
                pending => pending,
            },
            Err(_) => Pending::Nothing,
        };
        if self.pending == Pending::Handled {
            self.last_handled = LastHandled {
                clock_ns: scheduler::cpu_time_ns(self.id.pid).unwrap_or(0),
                seen_ns: now_ns,
            };
        }
    }

    /// Whether it was let run for a signal with a handler, and may go on though that is delivered.
    fn still_answers(&self, status: &Status, now_ns: u64, quantum_ns: u64) -> bool {
        let last = self.last_handled;
        let is_in_time = || now_ns.saturating_sub(last.seen_ns) < LONGEST_AFTERMATH_NS;
        let has_time_left = || {
            let clock_ns = scheduler::cpu_time_ns(self.id.pid).unwrap_or(u64::MAX);
            clock_ns.saturating_sub(last.clock_ns) < quantum_ns / AFTERMATH_PART
        };
        let sleeps = status.has_one_thread() && status.is_asleep() && !status.is_stopped();
        self.runs_for == Pending::Handled && !sleeps && is_in_time() && has_time_left()
    }
}

/// The files of the processes that looks read, [`PROCESSES_AT_ONCE`] at most. To open a file costs
/// more than to read it.
#[derive(Default, Debug)]
struct StatusFiles(HashMap<ProcessId, StatusFile>);

impl StatusFiles {
    /// Cost: 4 us, and as much again for a process that was not looked at lately.
    fn read(&mut self, process: ProcessId) -> io::Result<Status> {
        if !self.0.contains_key(&process) {
            if self.0.len() >= PROCESSES_AT_ONCE {
                self.0.clear();
            }
            // The pid is the process's own until its parent has waited for it, and then its client
            // forgets it.
            self.0
                .insert(process, StatusFile::of_thread(process.pid, process.pid)?);
        }
        let read = self.0[&process].read();
        if read.is_err() {
            self.0.remove(&process);
        }
        read
    }
}

/// Looks for signals that wait for processes.
#[derive(Default, Debug)]
pub(crate) struct SignalWatch {
    /// Where the next look for new signals begins: so many processes are passed over.
    next: usize,
    files: StatusFiles,
}

impl SignalWatch {
    /// Looks at the processes for which a signal waited before, and if `for_new` is set at others
    /// too. Returns whether any is to be treated differently now.
    pub(crate) fn look(
        &mut self,
        tree: &mut Tree,
        for_new: bool,
        now_ns: u64,
        quantum_ns: u64,
    ) -> bool {
        self.look_at_processes(tree, for_new, now_ns, quantum_ns);
        let mut any_changed = false;
        let waiting: Vec<ClientId> = tree
            .lively()
            .filter(|client| client.may_have_to_wait())
            .map(|client| client.id)
            .collect();
        for id in waiting {
            let Some(client) = tree.client(id) else {
                continue;
            };
            // What it used until now belongs to what it was let run for until now.
            if client.is_answering() || client.has_signals() {
                tree.sample(id, Sampling::Due, now_ns);
            }
            if let Some(client) = tree.client_mut(id) {
                let changed = client.answer_signals(quantum_ns);
                client.unsettled |= changed;
                any_changed |= changed;
            }
        }
        any_changed
    }

    fn look_at_processes(&mut self, tree: &mut Tree, for_new: bool, now_ns: u64, quantum_ns: u64) {
        let until = match for_new {
            true => self.next + PROCESSES_AT_ONCE,
            false => self.next,
        };
        let mut index = 0;
        let clients = tree.lively_mut();
        for client in clients.filter(|client| client.may_have_to_wait()) {
            // A process that nothing holds down takes its signals by itself.
            let held_down =
                |process: &&mut Process| process.is_held_down() || !process.is_left_in_peace();
            for process in client.processes.iter_mut().filter(held_down) {
                if process.pending != Pending::Nothing || (self.next..until).contains(&index) {
                    process.look_for_signals(&mut self.files, now_ns, quantum_ns);
                }
                index += 1;
            }
        }
        if for_new {
            self.next = if until < index { until } else { 0 };
        }
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
        let any_runs = processes.any(|process| process.runs_for != Pending::Nothing);
        self.may_have_to_wait() && (self.answers_signal || any_runs)
    }

    /// Whether what it uses counts as used because of signals.
    pub(crate) fn is_answering(&self) -> bool {
        let mut processes = self.processes.iter();
        self.answers_signal || processes.any(|process| process.runs_for == Pending::Fatal)
    }

    /// Whether signals wait for its processes.
    fn has_signals(&self) -> bool {
        let mut processes = self.processes.iter();
        processes.any(|process| matches!(process.pending, Pending::Handled | Pending::Fatal))
    }

    /// Decides whether it, or one of its processes, runs because of a signal. Returns whether that
    /// changed.
    fn answer_signals(&mut self, quantum_ns: u64) -> bool {
        let may_answer = self.answering_ns < quantum_ns;
        let answered = std::mem::take(&mut self.answers_signal);
        let mut changed = false;
        for process in &mut self.processes {
            let runs_for = match process.pending {
                Pending::Handled | Pending::Fatal if !may_answer => Pending::Nothing,
                Pending::End if !may_answer && self.grouped => Pending::Nothing,
                pending => pending,
            };
            changed |= std::mem::replace(&mut process.runs_for, runs_for) != runs_for;
            self.answers_signal |= match runs_for {
                Pending::Nothing => false,
                Pending::Handled => true,
                Pending::Fatal | Pending::End => self.grouped,
            };
        }
        changed || self.answers_signal != answered
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use prorata_core::ids::ClientId;
    use rustix::process::Signal;

    use super::*;
    use crate::process::Origin;

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
            (&[libc::SIGKILL], Pending::End),
            (&[libc::SIGKILL, libc::SIGTERM], Pending::End),
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

    /// A client of one process that sleeps.
    fn with_client(test: impl FnOnce(&mut Client)) {
        let directory = tempfile::tempdir().expect("a directory");
        let mut tree = crate::foster::tests::tree(directory.path());
        let mut child = std::process::Command::new("sleep");
        let mut child = child.arg("100").spawn().expect("it starts");
        let stat = procfs::stat(child.id()).expect("it runs");
        let id = ClientId::from_parts(0, 0);
        let joined = tree.join(id, child.id(), &stat, Origin::Named, 0);
        joined.expect("it can be managed");
        test(tree.client_mut(id).expect("it has joined"));
        child.kill().expect("it runs");
        child.wait().expect("it ends");
    }

    /// Runs a shell that handles SIGTERM, and lets it take one when the engine has seen it.
    fn after_delivery(script: &str, test: impl FnOnce(&mut Process, &mut StatusFiles)) {
        let directory = tempfile::tempdir().expect("a directory");
        let mut tree = crate::foster::tests::tree(directory.path());
        let mut shell = std::process::Command::new("sh");
        let shell = shell.args(["-c", script]).stdin(Stdio::piped());
        let mut shell = shell.spawn().expect("it starts");
        let mut files = StatusFiles::default();
        let known = ProcessId::of(shell.id()).expect("it runs");
        let mut status = || files.read(known).expect("it runs");
        let signal = |signal| {
            let pid = rustix::process::Pid::from_child(&shell);
            rustix::process::kill_process(pid, signal).expect("it runs");
        };
        wait_for(|| status().signals.caught & set(&[libc::SIGTERM]) != 0);
        signal(Signal::STOP);
        wait_for(|| status().is_stopped());
        signal(Signal::TERM);
        let id = ClientId::from_parts(0, 0);
        tree.manage(id, known, 0).expect("it can be managed");
        let process = &mut tree.client_mut(id).expect("it is known").processes[0];
        process.look_for_signals(&mut files, 0, u64::MAX);
        // A stranger stopped it.
        assert_eq!(process.pending, Pending::Nothing);
        signal(Signal::CONT);
        process.pending = Pending::Handled;
        process.runs_for = Pending::Handled;
        wait_for(|| status_is_delivered(&mut files, known));
        test(process, &mut files);
        shell.kill().expect("it runs");
        shell.wait().expect("it ends");
    }

    fn status_is_delivered(files: &mut StatusFiles, process: ProcessId) -> bool {
        let status = files.read(process).expect("it runs");
        !status.is_stopped() && status.signals.shared & set(&[libc::SIGTERM]) == 0
    }

    fn wait_for(mut condition: impl FnMut() -> bool) {
        while !condition() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_handler_that_has_begun_may_come_to_its_end() {
        after_delivery("trap : TERM; while :; do :; done", |shell, files| {
            shell.look_for_signals(files, LONGEST_AFTERMATH_NS - 1, u64::MAX);
            assert_eq!(shell.pending, Pending::Handled);
            shell.runs_for = Pending::Nothing;
            shell.look_for_signals(files, 0, u64::MAX);
            assert_eq!(
                shell.pending,
                Pending::Nothing,
                "it had no time for an answer"
            );
            shell.runs_for = Pending::Handled;
            shell.pending = Pending::Handled;
            shell.look_for_signals(files, LONGEST_AFTERMATH_NS, u64::MAX);
            assert_eq!(shell.pending, Pending::Nothing, "it took too long");
            shell.pending = Pending::Handled;
            shell.look_for_signals(files, 0, AFTERMATH_PART);
            assert_eq!(shell.pending, Pending::Nothing, "it used too much");
        });
        after_delivery("trap : TERM; while :; do read x; done", |shell, files| {
            wait_for(|| {
                let status = files.read(shell.id).expect("it runs");
                status.is_asleep() && !status.is_stopped()
            });
            shell.look_for_signals(files, 0, u64::MAX);
            assert_eq!(shell.pending, Pending::Nothing, "it sleeps");
        });
    }

    #[test]
    fn only_the_end_of_a_process_may_take_more_than_a_quantum() {
        with_client(|client| {
            for (pending, answering_ns, runs_for) in [
                (Pending::Fatal, 9, Pending::Fatal),
                (Pending::Fatal, 10, Pending::Nothing),
                (Pending::Handled, 9, Pending::Handled),
                (Pending::Handled, 10, Pending::Nothing),
                (Pending::End, 10, Pending::End),
            ] {
                client.answering_ns = answering_ns;
                client.processes[0].pending = pending;
                client.answer_signals(10);
                assert_eq!(client.processes[0].runs_for, runs_for);
                assert_eq!(client.answers_signal, runs_for == Pending::Handled);
                let is_bounded = matches!(runs_for, Pending::Fatal | Pending::Handled);
                assert_eq!(client.is_answering(), is_bounded);
            }
        });
    }
}
