//! Doing what the engine's callers ask for.

use std::sync::PoisonError;
use std::time::Duration;

use crate::command::Command;
use crate::decision::DecisionThread;
use crate::time::SECOND_NS;

/// How long to wait before trying once more to start a guardian.
const GUARDIAN_PAUSE: Duration = Duration::from_nanos(SECOND_NS);

impl DecisionThread {
    /// Answers are sent at once; a caller that is gone misses nothing.
    pub(crate) fn obey(&mut self, command: Command, now_ns: u64) {
        match command {
            Command::Manage {
                client,
                process,
                answer,
            } => {
                let result = self.tree.manage(client, process, now_ns);
                self.publish_now();
                let _ = answer.send(result);
            }
            Command::AlsoChildrenOf {
                client,
                parent,
                answer,
            } => {
                let result = self.tree.add_foster_parent(client, parent, now_ns);
                if result.is_ok() {
                    self.tree.walk_below(now_ns);
                    self.publish_now();
                }
                let _ = answer.send(result);
            }
            Command::ManageMarked {
                client,
                user,
                since_ticks,
                answer,
            } => {
                let joined = self.tree.manage_marked(client, user, since_ticks, now_ns);
                self.publish_now();
                let _ = answer.send(Ok(joined));
            }
            Command::Release { client, answer } => {
                self.tree.sample(client, now_ns);
                if let Some(mut released) = self.tree.remove(client, now_ns) {
                    released.runnable = 0;
                    self.farewells.push(released);
                }
                self.publish_now();
                let _ = answer.send(());
            }
            Command::SetQuantum {
                client,
                quantum_ns,
                answer,
            } => {
                self.set_client_quantum(client, quantum_ns);
                let _ = answer.send(());
            }
            Command::Suspend { client, answer } => {
                self.tree.sample(client, now_ns);
                let was_stopped = self.set_suspended(client, true);
                let _ = answer.send(was_stopped);
            }
            Command::Resume { client, answer } => {
                // All that it used until now belongs to the suspension.
                self.tree.sample(client, now_ns);
                let cpus = self.cpus.count();
                if let Some((client, journal)) = self.tree.with_journal(client) {
                    client.look(now_ns, cpus, journal);
                    client.suspended = false;
                    client.looked_ns = 0;
                }
                let _ = answer.send(());
            }
            Command::Guardian(Ok(guardian)) => {
                if let Err(error) = self.employ(guardian) {
                    tracing::error!("cannot watch the guardian: {error}");
                    self.start_guardian(GUARDIAN_PAUSE);
                }
            }
            Command::Guardian(Err(error)) => {
                tracing::error!("cannot start a guardian, trying again: {error}");
                self.start_guardian(GUARDIAN_PAUSE);
            }
            Command::End => self.end(),
        }
    }

    /// Brings the directory up to date before an answer, so that the caller
    /// finds there what it asked for.
    fn publish_now(&mut self) {
        let directory = self.directory.clone();
        let mut directory = directory.lock().unwrap_or_else(PoisonError::into_inner);
        self.deliver(&mut directory);
    }
}
