//! Enforcing: making the winners run and the losers not.

use crate::births::MAX_NOTICES;
use crate::client::Client;
use crate::config::Mechanism;
use crate::decision::DecisionThread;
use crate::directory::{Change, ClientActivity, Directory};
use crate::guardian::Guardian;
use crate::process::Treatment;

impl DecisionThread {
    /// Treats everyone as the last decision demands: first those who are to
    /// run, so that no CPU falls idle in between.
    pub(crate) fn enforce(&mut self, now_ns: u64) {
        self.choose_mechanism();
        self.place_winners();
        if !self.treat_everyone() {
            return;
        }
        // Those born since the turn began, to parents that were demoted or
        // bound then: what they inherited shows only beside what held before.
        for _ in 0..MAX_NOTICES {
            if !self.tree.notice_births(now_ns) {
                return;
            }
            if !self.tree.clients().any(|client| client.unsettled) {
                let clients = self.tree.clients_mut();
                clients.for_each(Client::forget_the_past);
                return;
            }
            self.treat_everyone();
        }
    }

    /// Returns whether anything had to be done.
    fn treat_everyone(&mut self) -> bool {
        let mut any_done = false;
        let (mechanism, quantum_ns) = (self.mechanism, self.quantum_ns);
        let mut left_alone = 0;
        self.stopped = 0;
        self.idle = 0;
        for round in [Round::Promote, Round::Demote] {
            let (clients, journal) = self.tree.all_with_journal();
            for client in clients {
                let treatment = client.deserved_treatment(mechanism, quantum_ns);
                if Round::of(treatment) != round {
                    continue;
                }
                match treatment {
                    Treatment::Stopped => self.stopped += 1,
                    Treatment::Idle if client.runnable > 0 => self.idle += 1,
                    _ => {}
                }
                let unsettled = client.unsettled || client.defied;
                let displaced = client.place != client.bound;
                if treatment != client.treatment || unsettled || displaced {
                    any_done = true;
                    left_alone += client.treat(treatment, journal);
                    if displaced || unsettled {
                        client.settle_in_place(journal);
                    }
                }
            }
        }
        self.tree.left_alone += u64::from(left_alone);
        any_done
    }

    /// Idle where it works, else stop.
    fn choose_mechanism(&mut self) {
        let mechanism = match self.preferred {
            Mechanism::Idle if self.tree.idle_works() => Mechanism::Idle,
            _ => Mechanism::Stop,
        };
        if mechanism != self.mechanism {
            tracing::info!("losers are kept from running by {mechanism:?} from now on");
            self.mechanism = mechanism;
        }
    }

    /// Tells the directory what everyone does now.
    pub(crate) fn publish(&mut self) {
        let (clients, changes) = self.tree.all_with_changes();
        for client in clients {
            let activity = client.activity();
            if client.activity_told != Some(activity) {
                client.activity_told = Some(activity);
                changes.push(Change::Activity(client.id, activity));
            }
        }
        // Whoever reads the directory may hold its lock without a CPU to run
        // on; the news can wait.
        let directory = self.directory.clone();
        if let Ok(mut directory) = directory.try_lock() {
            self.deliver(&mut directory);
        }
    }

    pub(crate) fn deliver(&mut self, directory: &mut Directory) {
        let mut any_exited = false;
        for change in self.tree.changes.drain(..) {
            any_exited |= matches!(change, Change::Exited(_));
            directory.apply(change);
        }
        directory.mechanism = self.mechanism;
        directory.decisions = self.decisions;
        directory.left_alone = self.tree.left_alone;
        directory.guardian = self.guardian.as_ref().map(Guardian::pid);
        if any_exited {
            self.exits.ring();
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
        if self.suspended || self.is_winner() {
            return Treatment::Normal;
        }
        let competes = self.runnable > 0;
        match mechanism {
            Mechanism::Stop if competes => Treatment::Stopped,
            // Asleep: only where it is not stopped can it be seen to wake.
            Mechanism::Stop => Treatment::Normal,
            // A loser runs now and then even in SCHED_IDLE. Whoever got more
            // than a quantum that way waits for its turn without running.
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

    fn activity(&self) -> ClientActivity {
        if self.suspended {
            ClientActivity::Suspended
        } else if self.is_winner() {
            ClientActivity::Running
        } else if self.runnable > 0 {
            ClientActivity::Waiting
        } else {
            ClientActivity::Blocked
        }
    }
}
