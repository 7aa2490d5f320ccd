//! Doing what the engine's callers ask for.

use crate::command::Command;
use crate::competition::clamp_quantum;
use crate::decision::DecisionThread;

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
                self.tree.remove(client, now_ns);
                self.publish_now();
                let _ = answer.send(());
            }
            Command::SetQuantum {
                client,
                quantum_ns,
                answer,
            } => {
                if let Some(client) = self.tree.client_mut(client) {
                    client.quantum_ns = quantum_ns.map(clamp_quantum);
                }
                let _ = answer.send(());
            }
            Command::Suspend { client, answer } => {
                self.tree.sample(client, now_ns);
                let _ = answer.send(self.tree.suspend(client));
            }
            Command::Resume { client, answer } => {
                self.tree.resume(client, now_ns);
                let _ = answer.send(());
            }
            Command::Guardian(started) => {
                self.supervision.employ_or_retry(started, &self.events);
                self.tree.guardian = self.supervision.guardian_pid();
            }
            Command::End => self.ended = true,
        }
    }

    /// Brings the directory up to date before an answer, so that the caller
    /// finds there what it asked for.
    fn publish_now(&mut self) {
        let facts = self.facts();
        self.directory.publish(&mut self.tree.changes, facts);
    }
}
