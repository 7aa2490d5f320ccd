//! Turns: for how long winners keep their CPUs.
//!
//! That is the quantum of all, or one of their own. A turn that is over ends by itself
//! while others last; all end when something happens that changes who deserves to run.
//! Everybody is observed once a quantum of all, or more often.

use prorata_core::dispatcher::Dispatcher;
use prorata_core::ids::ClientId;

use crate::decision::{DecisionThread, QUANTUM_NS, SURVEY_INTERVAL_NS};
use crate::time::MILLISECOND_NS;

/// How often a client without rivals is looked at, at most.
const LOOK_ALONE_NS: u64 = 100 * MILLISECOND_NS;

/// Whose turns end with a decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turns {
    /// All.
    All,
    /// Those that have lasted for their quantum, and those of winners that blocked.
    Over,
    /// Those of winners that blocked: others take over until the quantum of all ends.
    Blocked,
}

impl DecisionThread {
    /// From when on turns that begin with this decision count: if it is late by less
    /// than a quantum, from when it was due, so that decisions keep in step.
    pub(crate) fn begin_of_turns(&self, now_ns: u64, turns: Turns) -> u64 {
        let due_ns = self.next_decision_ns;
        let in_step = due_ns <= now_ns && now_ns - due_ns < self.quantum_ns;
        match in_step && turns != Turns::Blocked {
            true => due_ns,
            false => now_ns,
        }
    }

    /// Has winners picked for the CPUs of those whose turns end.
    pub(crate) fn pick(&mut self, dispatcher: &mut Dispatcher, now_ns: u64, turns: Turns) {
        match turns {
            Turns::All => {
                let clients = self.tree.clients_mut();
                clients.for_each(|client| client.turn_ends_ns = 0);
                dispatcher.decide(&mut self.winners);
            }
            Turns::Over => {
                for winner in &self.winners {
                    let client = self.tree.client(winner.client);
                    if client.is_none_or(|client| client.turn_ends_ns <= now_ns) {
                        dispatcher.end_turn(winner.client);
                    }
                }
                dispatcher.fill(&mut self.winners);
            }
            Turns::Blocked => dispatcher.fill(&mut self.winners),
        }
    }

    /// Notes who won, and when their turns end.
    pub(crate) fn crown(&mut self, now_ns: u64, begin_ns: u64, turns: Turns) {
        let quantum_ends_ns = match turns {
            Turns::Blocked => self.next_decision_ns,
            _ => begin_ns + self.quantum_ns,
        };
        for client in self.tree.clients_mut() {
            client.won_before = client.is_winner();
            client.cpus = 0;
        }
        for winner in &self.winners {
            if let Some(client) = self.tree.client_mut(winner.client) {
                client.cpus = winner.cpus;
                if !client.won_before {
                    client.advance_ns = 0;
                }
                if !client.won_before || client.turn_ends_ns <= now_ns {
                    // Nobody's turn is over before it began, however late we are.
                    let own_end_ns = |own_ns: u64| (begin_ns + own_ns).max(now_ns + own_ns / 2);
                    client.turn_ends_ns = client.quantum_ns.map_or(quantum_ends_ns, own_end_ns);
                }
            }
        }
    }

    /// When the first of the winners' turns ends.
    pub(crate) fn first_end_ns(&self) -> u64 {
        let winners = self.winners.iter();
        let clients = winners.filter_map(|winner| self.tree.client(winner.client));
        let ends_ns = clients.map(|client| client.turn_ends_ns);
        ends_ns.min().unwrap_or(u64::MAX)
    }

    /// Plans when to decide next.
    pub(crate) fn plan(&mut self, now_ns: u64, decided: bool) {
        let rivals = self
            .tree
            .clients()
            .filter(|client| !client.suspended)
            .take(2)
            .count();
        let interval_ns = match rivals {
            _ if !decided => MILLISECOND_NS,
            0 if self.tree.owes_release() => SURVEY_INTERVAL_NS,
            0 => u64::MAX,
            // Nobody to compete with: only what it uses is of interest.
            1 => self.quantum_ns.max(LOOK_ALONE_NS),
            _ => self.quantum_ns,
        };
        // Keep in step, unless we are late by more than a quantum.
        let in_step_ns = self.next_decision_ns.saturating_add(interval_ns);
        self.next_decision_ns = if in_step_ns > now_ns && self.next_decision_ns <= now_ns {
            in_step_ns
        } else {
            now_ns.saturating_add(interval_ns)
        };
        if decided && rivals > 1 {
            self.next_decision_ns = self.next_decision_ns.min(self.first_end_ns());
        }
        if decided {
            self.due_ns = self.next_decision_ns;
        }
        self.plan_poll(now_ns);
        self.promise(now_ns);
    }

    /// Turns of a client last so long from the next one on, or as long as those of all.
    pub(crate) fn set_client_quantum(&mut self, id: ClientId, quantum_ns: Option<u64>) {
        let own_ns = quantum_ns.map(|ns| ns.clamp(*QUANTUM_NS.start(), *QUANTUM_NS.end()));
        if let Some(client) = self.tree.client_mut(id) {
            client.quantum_ns = own_ns;
        }
    }
}
