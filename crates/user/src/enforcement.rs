//! Enforcement: winners run, and losers do not.

use crate::births::MAX_NOTICES;
use crate::client::Client;
use crate::competition::Competition;
use crate::config::Mechanism;
use crate::placement::place_winners;
use crate::process::Treatment;
use crate::tree::Tree;

/// How losers are kept from running, and what became of it.
#[derive(Debug)]
pub(crate) struct Enforcement {
    preferred: Mechanism,
    /// The preferred one, or stop where idle does not work now.
    mechanism: Mechanism,
    /// Losers that are stopped, and losers that stand by in `SCHED_IDLE`.
    stopped: u32,
    standing_by: u32,
}

impl Enforcement {
    pub(crate) fn new(preferred: Mechanism) -> Self {
        Self {
            preferred,
            mechanism: preferred,
            stopped: 0,
            standing_by: 0,
        }
    }

    pub(crate) fn mechanism(&self) -> Mechanism {
        self.mechanism
    }

    /// Whether a CPU falls idle when a winner blocks.
    pub(crate) fn leaves_cpus_idle(&self) -> bool {
        self.stopped > 0 && self.standing_by == 0
    }

    /// Whether any client is held down.
    pub(crate) fn holds_down(&self) -> bool {
        self.stopped > 0 || self.standing_by > 0
    }

    /// Treats all clients as the last decision demands.
    pub(crate) fn enforce(&mut self, tree: &mut Tree, competition: &Competition, now_ns: u64) {
        let quantum_ns = competition.quantum_ns();
        self.choose_mechanism(tree);
        place_winners(tree, competition.winners());
        if !self.treat_all(tree, quantum_ns) {
            return;
        }
        // What a child inherited that was born since the turn began, to a demoted or bound
        // parent, shows only beside what held before.
        for _ in 0..MAX_NOTICES {
            if !tree.notice_births(now_ns) {
                return;
            }
            if !tree.clients().any(|client| client.unsettled) {
                tree.clients_mut().for_each(Client::forget_the_past);
                return;
            }
            self.treat_all(tree, quantum_ns);
        }
    }

    /// Treats first the clients that are to run, so that no CPU falls idle in between. Returns
    /// whether anything had to be done.
    fn treat_all(&mut self, tree: &mut Tree, quantum_ns: u64) -> bool {
        let mut any_done = false;
        self.stopped = 0;
        self.standing_by = 0;
        for round in [Round::Promote, Round::Demote] {
            let (clients, journal) = tree.all_with_journal();
            for client in clients {
                let treatment = client.deserved_treatment(self.mechanism, quantum_ns);
                if Round::of(treatment) != round {
                    continue;
                }
                match treatment {
                    Treatment::Stopped => self.stopped += 1,
                    Treatment::Idle if client.runnable > 0 => self.standing_by += 1,
                    _ => {}
                }
                let unsettled = client.unsettled || client.defied;
                let displaced = client.place != client.bound;
                if treatment != client.treatment || unsettled || displaced {
                    any_done = true;
                    client.treat(treatment, journal);
                    if displaced || unsettled {
                        client.settle_in_place(journal);
                    }
                }
            }
        }
        any_done
    }

    fn choose_mechanism(&mut self, tree: &Tree) {
        let mechanism = match self.preferred {
            Mechanism::Idle if tree.idle_works() => Mechanism::Idle,
            _ => Mechanism::Stop,
        };
        if mechanism != self.mechanism {
            tracing::info!("losers are kept from running by {mechanism:?} from now on");
            self.mechanism = mechanism;
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Round {
    Promote,
    Demote,
}

impl Round {
    fn of(treatment: Treatment) -> Round {
        if treatment == Treatment::Normal {
            Round::Promote
        } else {
            Round::Demote
        }
    }
}

impl Client {
    fn deserved_treatment(&self, mechanism: Mechanism, quantum_ns: u64) -> Treatment {
        if self.suspended || self.is_winner() || self.answers_signal {
            return Treatment::Normal;
        }
        let competes = self.runnable > 0;
        match mechanism {
            Mechanism::Stop if competes => Treatment::Stopped,
            // A stopped sleeper could not be seen to wake.
            Mechanism::Stop => Treatment::Normal,
            // A loser runs now and then even in SCHED_IDLE. After more than a quantum of that
            // it is stopped until its turn.
            Mechanism::Idle if competes => {
                if self.treatment == Treatment::Stopped || self.advance_ns > quantum_ns {
                    Treatment::Stopped
                } else {
                    Treatment::Idle
                }
            }
            Mechanism::Idle if self.is_in_debt(quantum_ns) => Treatment::Idle,
            Mechanism::Idle => Treatment::Normal,
        }
    }
}
