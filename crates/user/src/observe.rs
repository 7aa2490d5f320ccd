//! Observing clients: the CPU time that they used, and whether they are runnable.

use prorata_core::dispatcher::Dispatcher;
use prorata_core::ids::ClientId;

use crate::births::MAX_NOTICES;
use crate::chronicle::Chronicle;
use crate::client::{Client, Look};
use crate::decision::DecisionThread;
use crate::directory::Change;
use crate::reaped::Charging;
use crate::slumber::Sampling;
use crate::time::{MILLISECOND_NS, SECOND_NS};
use crate::tree::Tree;

/// How many quanta, and how long, pass between two looks at a client that neither won nor ran.
const UNLOOKED_QUANTA: u64 = 25;
const UNLOOKED_NS: std::ops::RangeInclusive<u64> = 100 * MILLISECOND_NS..=SECOND_NS;

/// With more processes than this, such looks are rarer in proportion. They find nothing that an
/// event or CPU time would not tell.
const LOOKED_OFTEN: u64 = 512;

/// But they are as often as this.
const LONGEST_UNLOOKED_NS: u64 = 10 * SECOND_NS;

/// A runnable loser that received less than one in so many parts of a quantum in `SCHED_IDLE`
/// needs no look because of that: a look costs more than ten samples.
const LEAK: u64 = 10;

/// Processes that are sampled every quantum. With more of them, losers are sampled less often.
const SAMPLED_EACH_QUANTUM: u64 = 512;

/// Within so many quanta every dormant client is sampled, unless there are too many.
const DORMANT_QUANTA: usize = 8;

/// The decision thread runs while it counts runnable threads.
const OWN_THREADS: u32 = 1;

impl DecisionThread {
    /// Observes all clients, each as often as it deserves.
    pub(crate) fn observe(&mut self, now_ns: u64) {
        let mut indices = std::mem::take(&mut self.sampled);
        indices.clear();
        indices.extend_from_slice(self.tree.clients.lively_indices());
        let dormant = self.dormant_to_sample();
        self.tree.clients.next_dormant(dormant, &mut indices);
        let crowd = u64::from(self.tree.process_count()) / SAMPLED_EACH_QUANTUM;
        let sample_interval_ns = crowd * self.competition.quantum_ns();
        for &index in &indices {
            if let Some(client) = self.tree.clients.at(index)
                && (client.is_winner() || now_ns - client.sampled_ns >= sample_interval_ns)
            {
                let id = client.id;
                self.tree.sample(id, Sampling::Due, now_ns);
            }
        }
        self.tree.review_zombies();
        // After all samples: a process of one client may have waited for a child whose end the
        // sample of another client showed.
        for &index in &indices {
            if let Some(client) = self.tree.clients.at(index)
                && client.sampled_ns == now_ns
            {
                let id = client.id;
                self.look_at(id, now_ns);
            }
        }
        self.sampled = indices;
    }

    /// How many processes of dormant clients are to be sampled now. If more threads are runnable
    /// than the lively clients have, a dormant client may have woken, or a program without a
    /// client. If a client takes the place of another one that blocked, the count hides that, so
    /// some are sampled anyhow.
    fn dormant_to_sample(&self) -> usize {
        // The kernel does not count what is stopped or frozen.
        let running = self
            .tree
            .lively()
            .filter(|client| !client.is_stopped_by_us());
        let known: u32 = running.map(|client| client.runnable).sum();
        let may_have_woken = self.tree.births.runnable() > known + OWN_THREADS;
        let part = if may_have_woken { 1 } else { DORMANT_QUANTA };
        (self.tree.process_count() as usize)
            .div_ceil(part)
            .min(SAMPLED_EACH_QUANTUM as usize)
    }

    fn look_at(&mut self, id: ClientId, now_ns: u64) {
        let quantum_ns = self.competition.quantum_ns();
        let crowd = (u64::from(self.tree.process_count()) / LOOKED_OFTEN).max(1);
        let look_interval_ns =
            (UNLOOKED_QUANTA * quantum_ns).clamp(*UNLOOKED_NS.start(), *UNLOOKED_NS.end());
        let look_interval_ns = (look_interval_ns * crowd).min(LONGEST_UNLOOKED_NS);
        let Some(client) = self.tree.client(id) else {
            return;
        };
        let usage_ns = client.usage_ns;
        let look_due = client.is_winner()
            || usage_ns.0 > quantum_ns / LEAK
            // It was taken for a sleeper.
            || (usage_ns.0 > 0 && client.runnable == 0)
            // An early client may run for too short a time to show by its use.
            || (client.is_early() && client.runnable > 0)
            || client.unsettled
            || client.lacks_watch()
            || client.processes.is_empty()
            || now_ns - client.looked_ns >= look_interval_ns;
        if !look_due {
            return;
        }
        let Some(look) = self.tree.look(id, now_ns) else {
            return;
        };
        let Some(client) = self.tree.client_mut(id) else {
            return;
        };
        client.judge(look, usage_ns.0, quantum_ns);
        if client.is_winner() {
            client.busy_turns = if look.awake {
                client.busy_turns.saturating_add(1)
            } else {
                0
            };
        }
        if look.moved {
            self.tree.review_moved(id, now_ns);
        }
        if !look.alive {
            self.bury(id, now_ns);
        } else if let Some(client) = self.tree.client_mut(id) {
            self.events.watch(client);
        }
    }

    /// Removes a client without a living process.
    fn bury(&mut self, id: ClientId, now_ns: u64) {
        let may_be_new = |client: &Client| client.processes.is_empty() && !client.had_processes;
        if self.tree.client(id).is_none_or(may_be_new) {
            return;
        }
        // Its last process may have left a child since the engine noticed births.
        let processes = |tree: &Tree| tree.client(id).map_or(0, |client| client.processes.len());
        let before = processes(&self.tree);
        self.tree.notice_births(now_ns);
        if processes(&self.tree) > before {
            return;
        }
        self.tree.charge_ended_children(id, now_ns, Charging::Now);
        self.tree.remove(id, now_ns);
        self.tree.changes.push(Change::Exited(id));
    }

    /// Looks at winners without a look in this round. Returns whether some were asleep; their
    /// turns are over.
    pub(crate) fn confirm_winners(&mut self, now_ns: u64) -> bool {
        let mut any_asleep = false;
        for winner in self.competition.winners() {
            let id = winner.client;
            let known = |client: &Client| client.looked_ns == now_ns || client.is_stopped_by_us();
            if !self.tree.client(id).is_none_or(known) {
                self.tree.sample(id, Sampling::Due, now_ns);
                if let Some(look) = self.tree.look(id, now_ns)
                    && let Some(client) = self.tree.client_mut(id)
                {
                    client.runnable = look.runnable;
                }
            }
            if let Some(client) = self.tree.client_mut(id) {
                if std::mem::take(&mut client.pays_debt) {
                    client.runnable = 0;
                }
                any_asleep |= client.runnable == 0;
            }
        }
        any_asleep
    }
}

impl Tree {
    /// Looks at a client; `None` if it is unknown.
    ///
    /// A parent that waits for its child has not blocked, nor has a client between two children. A
    /// process may sleep when it is looked at, be woken by another one, and that one sleep when
    /// its turn to be looked at comes. So a client is taken to be asleep only if none of its
    /// processes ran and none was born while it was looked at; else it is looked at again. One
    /// that runs during each look is awake.
    pub(crate) fn look(&mut self, id: ClientId, now_ns: u64) -> Option<Look> {
        let client = self.client(id)?;
        let births = client.births;
        let mut before = (self.births.last(), client.sampled_clocks_ns());
        let mut look = self.look_at_known(id, now_ns, Charging::Soon)?;
        // Without any CPU time it has neither had a child nor woken anybody.
        let may_have_run = |client: &Client| client.has_progressed() && !client.is_stopped_by_us();
        for notice in 1..=MAX_NOTICES {
            if look.awake || !self.client(id).is_some_and(may_have_run) {
                break;
            }
            self.notice_births(now_ns);
            let client = self.client(id)?;
            let after = (self.births.last(), client.clocks_ns());
            let ran = after.1 != before.1;
            if client.births > births || notice == MAX_NOTICES && ran {
                look.awake = true;
                look.runnable = look.runnable.max(1);
                break;
            }
            if after == before {
                break;
            }
            before = after;
            look = self.look_at_known(id, now_ns, Charging::Soon)?;
        }
        Some(look)
    }

    /// Looks at the processes of a client that are known, and charges what their ended children used.
    pub(crate) fn look_at_known(
        &mut self,
        id: ClientId,
        now_ns: u64,
        charging: Charging,
    ) -> Option<Look> {
        let cpus = self.cpu_count();
        let (client, journal) = self.with_journal(id)?;
        let mut look = client.look(now_ns, cpus, journal);
        let waited_ns = match look.any_reaped || !client.foster_parents.is_empty() {
            true => self.charge_ended_children(id, now_ns, charging),
            false => 0,
        };
        let client = self.client(id)?;
        client.count_busy(&mut look, waited_ns, cpus);
        Some(look)
    }
}

impl Client {
    /// Concludes from a look whether the client competes.
    pub(crate) fn judge(&mut self, look: Look, used_ns: u64, quantum_ns: u64) {
        self.pays_debt = false;
        if self.suspended {
            self.runnable = 0;
        } else if self.is_stopped_by_us() {
            // It was runnable when it was stopped, unless its pause began in its sleep, and shows
            // nothing since.
            let was_runnable = u32::from(!self.is_paused());
            self.runnable = self.runnable.max(was_runnable);
        } else {
            self.runnable = look.runnable;
            // A client that runs so briefly that no look finds it awake must wait for its turn
            // too, once it has taken more in advance than a sleeper may.
            if look.runnable == 0 && used_ns > 0 && self.is_in_debt(quantum_ns) {
                self.pays_debt = true;
                self.runnable = 1;
            }
        }
    }

    /// Whether it took more in advance than a sleeper may: half a quantum, or with hybrid lottery
    /// scheduling the bound of leads. This bounds what no look shows. What a sleeper is owed is the
    /// policy's to bound, by [`prorata_core::policy::credit::KEPT_CREDIT_QUANTA`].
    pub(crate) fn is_in_debt(&self, quantum_ns: u64) -> bool {
        match self.outlook {
            Some(outlook) => outlook.is_ahead,
            None => self.advance_ns > quantum_ns / 2,
        }
    }

    /// Charges the client for what it used, if the dispatcher knows that it competes. Returns the
    /// CPU time.
    pub(crate) fn charge(&mut self, dispatcher: &mut Dispatcher) -> u64 {
        if self.runnable_told == 0 {
            return 0;
        }
        let used_ns = std::mem::take(&mut self.uncharged_ns);
        let in_slots_ns = std::mem::take(&mut self.uncharged_in_slots_ns);
        if used_ns > 0 {
            self.outlook_holds = false;
            dispatcher.charge(self.id, used_ns - in_slots_ns);
            // Gifts are not raised.
            dispatcher.charge_slot(self.id, in_slots_ns, false);
        }
        used_ns
    }

    /// Tells the dispatcher what was observed. Returns the CPU time that it was charged for.
    pub(crate) fn report(
        &mut self,
        dispatcher: &mut Dispatcher,
        chronicle: &mut Chronicle,
        now_ns: u64,
    ) -> u64 {
        if self.affinity != self.affinity_told {
            self.affinity_told = self.affinity.clone();
            dispatcher.set_affinity(self.id, self.affinity.as_ref());
        }
        self.tell_nice_factor(dispatcher);
        let woken_from = std::mem::replace(&mut self.sleeps_on_told, self.sleeps_on);
        let mut tell = |client: &mut Client, runnable, dispatcher: &mut Dispatcher| {
            let told_before = std::mem::replace(&mut client.runnable_told, runnable);
            dispatcher.wake(client.id, runnable, woken_from);
            chronicle.note_report(now_ns, client, told_before, woken_from);
        };
        if self.uncharged_ns > 0 && self.runnable_told == 0 {
            // It woke and ran since the last report.
            tell(self, self.runnable.max(1), dispatcher);
        }
        let used_ns = self.charge(dispatcher);
        if self.runnable != self.runnable_told {
            self.outlook_holds = false;
            tell(self, self.runnable, dispatcher);
        }
        if self.quantum_ns != self.quantum_told_ns {
            self.quantum_told_ns = self.quantum_ns;
            dispatcher.set_client_quantum(self.id, self.quantum_ns);
        }
        used_ns
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::foster::tests::tree;
    use crate::process_id::ProcessId;
    use crate::procfs;
    use crate::time::monotonic_ns;

    /// A shell that had a child a moment ago is asleep when it is looked at, and the child has ended.
    #[test]
    fn a_parent_was_awake_whose_child_ended_before_it_was_noticed() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut tree = tree(directory.path());
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", "read line; true & read line"]);
        let mut shell = shell.stdin(Stdio::piped()).spawn().expect("starts");
        let is_asleep = |pid| procfs::stat(pid).is_ok_and(|stat| stat.is_asleep());
        let id = ClientId::from_parts(0, 0);
        let known = ProcessId::of(shell.id()).expect("it runs");
        tree.manage(id, known, 0).expect("it can be managed");
        tree.notice_births(monotonic_ns());
        tree.sample(id, Sampling::All, monotonic_ns());
        let input = shell.stdin.as_mut().expect("it is ours");
        input.write_all(b"fork\n").expect("it reads");
        let has_ended = |pid: &u32| procfs::stat(*pid).is_ok_and(|stat| stat.has_ended());
        let child = || procfs::children_of(shell.id()).first().copied();
        while !(child().as_ref().is_some_and(has_ended) && is_asleep(shell.id())) {
            std::thread::yield_now();
        }
        let now_ns = monotonic_ns();
        tree.sample(id, Sampling::All, now_ns);
        let look = tree.look(id, now_ns).expect("it is known");
        assert!(look.awake && look.runnable == 1, "{look:?}");
        let client = tree.client(id).expect("it is known");
        assert_eq!((client.processes.len(), client.births), (1, 1));
        shell.kill().expect("it runs");
        shell.wait().expect("it ends");
    }
}
