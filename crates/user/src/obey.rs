//! Doing what the engine's callers ask for.

use prorata_core::ids::ClientId;

use crate::competition::clamp_quantum;
use crate::config::Mechanism;
use crate::decision::DecisionThread;
use crate::error::EngineError;
use crate::group::Group;
use crate::guardian::Guardian;
use crate::ownership::KnownClient;
use crate::process_id::ProcessId;
use crate::procfs;
use crate::slumber::Sampling;
use crate::tree::Tree;

impl DecisionThread {
    pub(crate) fn manage(
        &mut self,
        client: ClientId,
        process: ProcessId,
        now_ns: u64,
    ) -> Result<(), EngineError> {
        if let Some(from) = self.tree.giving_way(process.pid) {
            self.stop_watching(from);
        }
        let result = self.tree.manage(client, process, now_ns);
        self.make_way(now_ns);
        // The caller may ask next how the process is going to be held down.
        self.enforcement.choose_mechanism(&mut self.tree);
        self.publish();
        result
    }

    /// Whether signals stop this process once it is managed: as a loser, or with `is_limited` in a
    /// pause. Only a control group keeps a process from CPUs that would be idle without a signal.
    pub(crate) fn would_stop(&mut self, process: ProcessId, is_limited: bool) -> bool {
        let idle_works = Tree::idle_would_work_for_named;
        match self.mechanism_for(process, idle_works) {
            Some(Mechanism::Idle) => is_limited,
            Some(Mechanism::Stop) => true,
            // Managing a process that has ended fails anyway.
            Some(Mechanism::GroupIdle | Mechanism::GroupFreeze) | None => false,
        }
    }

    /// Whether this process could be held down as a loser without being stopped or frozen.
    pub(crate) fn would_stand_by(&mut self, process: ProcessId) -> bool {
        let mechanism = self.mechanism_for(process, Tree::idle_would_work);
        matches!(mechanism, Some(Mechanism::Idle | Mechanism::GroupIdle))
    }

    /// What would hold a process down that lives.
    fn mechanism_for(
        &mut self,
        process: ProcessId,
        idle_works: impl FnOnce(&Tree, &Group) -> bool,
    ) -> Option<Mechanism> {
        let group = procfs::stat(process.pid).and_then(|stat| Group::of(process.pid, stat.session));
        let idle_works = idle_works(&self.tree, &group.ok()?);
        let enforcement = &mut self.enforcement;
        Some(enforcement.mechanism_for(&self.tree, process.pid, idle_works))
    }

    pub(crate) fn add_foster_parent(
        &mut self,
        client: ClientId,
        parent: ProcessId,
        now_ns: u64,
    ) -> Result<(), EngineError> {
        self.tree.add_foster_parent(client, parent, now_ns)?;
        self.tree.walk_below(parent.pid, now_ns);
        self.publish();
        Ok(())
    }

    pub(crate) fn manage_marked(&mut self, clients: &[KnownClient], now_ns: u64) -> Vec<u32> {
        let joined = self.tree.manage_marked(clients, now_ns);
        self.publish();
        joined
    }

    pub(crate) fn release(&mut self, client: ClientId, now_ns: u64) {
        self.tree.sample(client, Sampling::All, now_ns);
        self.tree.remove(client, now_ns);
        self.publish();
    }

    pub(crate) fn set_client_quantum(&mut self, client: ClientId, quantum_ns: Option<u64>) {
        if let Some(client) = self.tree.client_mut(client) {
            client.quantum_ns = quantum_ns.map(clamp_quantum);
        }
    }

    /// Relies on a new guardian, if it could be started.
    pub(crate) fn rely_on(&mut self, started: std::io::Result<Guardian>) {
        self.supervision.employ_or_retry(started, &self.events);
        self.tree.guardian = self.supervision.guardian_pid();
    }

    /// Brings the directory up to date before an answer, so that the caller
    /// finds there what it asked for.
    pub(crate) fn publish(&mut self) {
        let facts = self.facts();
        self.directory.publish(&mut self.tree.changes, facts);
    }
}
