//! Which processes may be managed.

use prorata_core::ids::ClientId;

use super::Decoder;
use crate::process::{ProcessId, ProcessInfo};
use crate::refusal::Refusal;

/// Most ancestors that a search follows; real processes have about a dozen.
const MAX_ANCESTORS: usize = 4_096;

impl Decoder<'_> {
    /// The process `pid`, if the asker may have it managed.
    pub(super) fn manageable(&self, pid: u32) -> Result<ProcessInfo, Refusal> {
        let process = self.view.host.process(pid).ok_or(Refusal::NoProcess(pid))?;
        let unmanageable = |reason| Err(Refusal::Unmanageable { pid, reason });
        if pid == 1 {
            return unmanageable("is the first of all processes");
        }
        if process.is_kernel_thread {
            return unmanageable("is a thread of the kernel");
        }
        let daemon = self.view.host.own_pid();
        if self.descends_from(pid, daemon) {
            return unmanageable("is part of the daemon");
        }
        if self.descends_from(daemon, pid) {
            return unmanageable("has the daemon among its descendants");
        }
        let owner = process.uid;
        if !self.who.acts_for(owner) {
            return Err(Refusal::ForeignProcess {
                pid,
                owner,
                uid: self.who.uid,
            });
        }
        let daemon_uid = self.view.host.own_uid();
        if daemon_uid != 0 && daemon_uid != owner {
            return Err(Refusal::BeyondDaemon {
                pid,
                owner,
                uid: daemon_uid,
            });
        }
        match self
            .asked_for(pid)
            .and_then(|client| self.ledger().client(client))
        {
            Some(client) => Err(Refusal::ManagedAlready {
                pid,
                name: client.name.to_owned(),
                id: client.id.to_string(),
            }),
            None => Ok(process),
        }
    }

    /// The client that somebody asked for this process to be in. What users run unasked is in clients
    /// that give way.
    pub(super) fn asked_for(&self, pid: u32) -> Option<ClientId> {
        let client = self.view.engine.find(pid)?;
        (!self.view.state.is_rest(client)).then_some(client)
    }

    /// Refuses a job of a shell that is in no client, where the engine would stop the job by
    /// signals.
    pub(super) fn check_no_shell_job(&self, process: &ProcessInfo) -> Result<(), Refusal> {
        match self.shell_of_job(process) {
            Some(shell) if self.view.engine.would_stop(process.id, false) => {
                Err(Refusal::ShellJob {
                    pid: process.id.pid,
                    shell: shell.name,
                    shell_pid: shell.id.pid,
                })
            }
            _ => Ok(()),
        }
    }

    /// Refuses a limit of CPU time for such a job, where signals would stop the job in each pause.
    pub(super) fn check_may_pause(&self, process: &ProcessInfo) -> Result<(), Refusal> {
        match self.shell_of_job(process) {
            Some(shell) if self.view.engine.would_stop(process.id, true) => {
                Err(Refusal::LimitedShellJob {
                    pid: process.id.pid,
                    shell: shell.name,
                    shell_pid: shell.id.pid,
                })
            }
            _ => Ok(()),
        }
    }

    /// The shell in no client, or in one that gives way, that the process is a job of. (A shell
    /// inside a client is stopped before its jobs, and so sees none stopped. `prorata run` is in the
    /// same process group as its command.)
    fn shell_of_job(&self, process: &ProcessInfo) -> Option<ProcessInfo> {
        let shell = self.view.host.process(process.parent)?;
        let same_session = shell.session == process.session && process.has_terminal;
        let is_job = same_session && shell.process_group != process.process_group;
        let is_outside = self.asked_for(process.parent).is_none();
        (is_job && is_outside).then_some(shell)
    }

    /// The asker, if it is the process's parent.
    pub(super) fn asking_parent(&self, pid: u32) -> Result<ProcessId, Refusal> {
        let asker = self.asker_pid;
        let process = self.view.host.process(pid);
        let is_parent = process.is_some_and(|process| process.parent == asker);
        match self.view.host.process(asker).filter(|_| is_parent) {
            Some(parent) => Ok(parent.id),
            None => Err(Refusal::NotParent { pid, asker }),
        }
    }

    /// Whether `pid` is `ancestor` or one of its descendants.
    fn descends_from(&self, pid: u32, ancestor: u32) -> bool {
        let parent = |pid: &u32| self.view.host.process(*pid).map(|process| process.parent);
        std::iter::successors(Some(pid), parent)
            .take(MAX_ANCESTORS)
            .any(|pid| pid == ancestor)
    }
}
