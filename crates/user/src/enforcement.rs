//! Enforcement: winners run, and losers do not.

use std::io;

use crate::births::MAX_NOTICES;
use crate::client::Client;
use crate::competition::Competition;
use crate::config::{Mechanism, MissingRight};
use crate::control_groups::{ControlGroup, ControlGroups};
use crate::error::EngineError;
use crate::placement::place_winners;
use crate::process::Treatment;
use crate::scheduler::Return;
use crate::table::Table;
use crate::tree::Tree;

/// How losers are kept from running, and what became of it.
#[derive(Debug)]
pub(crate) struct Enforcement {
    preferred: Mechanism,
    /// What is used where `SCHED_IDLE` is preferred and does not work now. Found out when it is
    /// needed first.
    substitute: Option<Mechanism>,
    /// Control groups are not used: slots treat each process by itself.
    pub(crate) keeps_slots: bool,
    /// The preferred one or the substitute.
    mechanism: Mechanism,
    /// Made when it is needed first.
    control_groups: Option<ControlGroups>,
    /// Some processes are not in their clients' control groups, since this user may not move them.
    any_lacks_right: bool,
    /// Losers that are stopped or frozen, and losers that stand by for CPUs that would be idle.
    stopped: u32,
    standing_by: u32,
    /// Clients that are stopped or frozen because of their limits.
    paused: u32,
}

impl Enforcement {
    /// Chooses by trial unless a mechanism is `wanted`.
    pub(crate) fn new(
        wanted: Option<Mechanism>,
        way_back: Return,
        table: &Table,
    ) -> Result<Self, EngineError> {
        let can_idle = way_back != Return::Never;
        let (preferred, control_groups) = match wanted {
            Some(Mechanism::Idle) if !can_idle => return Err(EngineError::IdleNotPermitted),
            Some(Mechanism::Idle) => (Mechanism::Idle, None),
            None if can_idle => (Mechanism::Idle, None),
            Some(Mechanism::Stop) => (Mechanism::Stop, None),
            None => best_of(ControlGroups::open(table)),
            Some(wanted) => (wanted, Some(open_for(wanted, table)?)),
        };
        Ok(Self {
            preferred,
            substitute: None,
            keeps_slots: false,
            mechanism: preferred,
            control_groups,
            any_lacks_right: false,
            stopped: 0,
            standing_by: 0,
            paused: 0,
        })
    }

    pub(crate) fn mechanism(&self) -> Mechanism {
        self.mechanism
    }

    /// The right without which losers have to be stopped or frozen.
    pub(crate) fn missing_right(&self) -> Option<MissingRight> {
        let groups = self.control_groups.as_ref();
        if self.any_lacks_right && groups.is_some_and(ControlGroups::lacks_mover) {
            return Some(MissingRight::Linger);
        }
        match (self.mechanism, self.preferred) {
            (Mechanism::Idle | Mechanism::GroupIdle, _) => None,
            (_, Mechanism::Idle) => Some(MissingRight::CpuController),
            _ => Some(MissingRight::LeaveIdle),
        }
    }

    /// What would hold this process down, if `SCHED_IDLE` works with all processes or not.
    pub(crate) fn mechanism_for(&mut self, tree: &Tree, pid: u32, idle_works: bool) -> Mechanism {
        let mechanism = self.mechanism_if(tree, idle_works);
        let groups = self.control_groups.as_ref();
        match mechanism.uses_groups() && !groups.is_some_and(|groups| groups.may_take(pid)) {
            true => Mechanism::Stop,
            false => mechanism,
        }
    }

    /// Whether losers can be held down only while all processes are in one scheduling group, unless
    /// they are stopped or frozen.
    pub(crate) fn needs_one_group(&mut self, tree: &Tree) -> bool {
        self.preferred == Mechanism::Idle && self.substitute(tree) != Mechanism::GroupIdle
    }

    /// Whether a CPU falls idle when a winner blocks.
    pub(crate) fn leaves_cpus_idle(&self) -> bool {
        self.stopped > 0 && self.standing_by == 0
    }

    /// Whether any client is held down.
    pub(crate) fn holds_down(&self) -> bool {
        self.stopped > 0 || self.standing_by > 0 || self.paused > 0
    }

    /// Treats all clients as the last decision demands.
    pub(crate) fn enforce(&mut self, tree: &mut Tree, competition: &Competition, now_ns: u64) {
        let quantum_ns = competition.quantum_ns();
        self.choose_mechanism(tree);
        place_winners(tree, competition);
        if !self.treat_all(tree, quantum_ns) {
            return;
        }
        // What a child inherited that was born since the turn began, to a demoted or bound
        // parent, shows only beside what held before.
        for _ in 0..MAX_NOTICES {
            if !tree.notice_births(now_ns) {
                return;
            }
            if !tree.lively().any(|client| client.unsettled) {
                tree.lively_mut().for_each(Client::forget_the_past);
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
        self.paused = 0;
        let stands_by = self.gather(tree);
        for round in [Round::Promote, Round::Demote] {
            let (clients, journal) = tree.lively_with_journal();
            for client in clients {
                let treatment = client.deserved_treatment(stands_by, quantum_ns);
                if Round::of(treatment) != round {
                    continue;
                }
                match treatment {
                    Treatment::Stopped if client.is_paused() => self.paused += 1,
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

    /// Removes control groups that no client uses any more.
    pub(crate) fn tidy(&self, tree: &mut Tree) {
        let Some(groups) = self.control_groups.as_ref().filter(|_| tree.any_left) else {
            return;
        };
        let in_use = tree
            .clients()
            .filter_map(|client| client.control_group.as_ref());
        let in_use = in_use.map(ControlGroup::directory).collect();
        tree.any_left = !groups.tidy(&in_use);
    }

    /// Puts processes in their clients' control groups where these are used. Returns whether
    /// losers may run on CPUs that would be idle otherwise.
    fn gather(&mut self, tree: &mut Tree) -> bool {
        self.any_lacks_right = false;
        let groups = self.control_groups.as_ref();
        let Some(groups) = groups.filter(|_| self.mechanism.uses_groups()) else {
            return self.mechanism == Mechanism::Idle;
        };
        let keeps_files = tree.keeps_files();
        let mut any_ungrouped = false;
        for client in tree.lively_mut() {
            if client.unsettled || client.is_moving() {
                client.gather(groups, keeps_files);
            }
            any_ungrouped |= !client.grouped;
            self.any_lacks_right |= client.lacks_right;
        }
        // Beside a process in another group, a group in `cpu.idle` is worth as much as any.
        self.mechanism == Mechanism::GroupIdle && !any_ungrouped
    }

    /// Takes the preferred mechanism, or the substitute while that does not work.
    pub(crate) fn choose_mechanism(&mut self, tree: &mut Tree) {
        let mechanism = self.mechanism_if(tree, tree.idle_works());
        if mechanism != self.mechanism {
            tracing::info!("losers are kept from running by {mechanism:?} from now on");
            self.mechanism = mechanism;
            tree.clients.wake_all();
            for client in tree.lively_mut() {
                client.unsettled = true;
                if !mechanism.uses_groups() {
                    client.disperse();
                }
            }
        }
    }

    /// The preferred mechanism, or the substitute where `SCHED_IDLE` is preferred and does not work.
    fn mechanism_if(&mut self, tree: &Tree, idle_works: bool) -> Mechanism {
        let mechanism = match self.preferred {
            Mechanism::Idle if !idle_works => self.substitute(tree),
            preferred => preferred,
        };
        match self.keeps_slots && mechanism.uses_groups() {
            true => Mechanism::Stop,
            false => mechanism,
        }
    }

    fn substitute(&mut self, tree: &Tree) -> Mechanism {
        *self.substitute.get_or_insert_with(|| {
            let (mechanism, groups) = best_of(ControlGroups::open_at_once(tree.journal.table()));
            self.control_groups = groups;
            mechanism
        })
    }
}

/// The best mechanism besides `SCHED_IDLE`, if these are the control groups that can be had.
fn best_of(groups: io::Result<ControlGroups>) -> (Mechanism, Option<ControlGroups>) {
    match groups {
        Ok(groups) if groups.has_idle() => (Mechanism::GroupIdle, Some(groups)),
        Ok(groups) => (Mechanism::GroupFreeze, Some(groups)),
        Err(error) => {
            tracing::info!("no control groups: {error}");
            (Mechanism::Stop, None)
        }
    }
}

fn open_for(wanted: Mechanism, table: &Table) -> Result<ControlGroups, EngineError> {
    let groups = ControlGroups::open(table).map_err(EngineError::ControlGroups)?;
    if wanted == Mechanism::GroupIdle && !groups.has_idle() {
        let missing = io::Error::other("the cpu controller is missing");
        return Err(EngineError::ControlGroups(missing));
    }
    Ok(groups)
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
    /// `stands_by`: a loser may run on CPUs that would be idle otherwise.
    fn deserved_treatment(&self, stands_by: bool, quantum_ns: u64) -> Treatment {
        match self.full_treatment(stands_by, quantum_ns) {
            // Nobody asked for the stops of these shells and their jobs. Frozen in a control group
            // they would stay so if engine and guardian were killed, and nobody could log in.
            Treatment::Stopped if self.gives_way => match stands_by {
                true => Treatment::Idle,
                false => Treatment::Normal,
            },
            treatment => treatment,
        }
    }

    /// The same where stop signals are no harm.
    fn full_treatment(&self, stands_by: bool, quantum_ns: u64) -> Treatment {
        if self.suspended || self.is_winner() || self.answers_signal || self.is_moving() {
            return Treatment::Normal;
        }
        if self.is_paused() {
            return Treatment::Stopped;
        }
        if self.is_early() {
            return Treatment::Normal;
        }
        let competes = self.runnable > 0;
        match stands_by {
            false if competes => Treatment::Stopped,
            // A stopped sleeper could not be seen to wake.
            false => Treatment::Normal,
            // Each of its slots would begin later if a signal had to continue it.
            true if competes && self.has_slots => Treatment::Idle,
            // A loser runs now and then even when it stands by. After more than a quantum of that
            // it is stopped until its turn.
            true if competes => {
                if self.treatment == Treatment::Stopped || self.advance_ns > quantum_ns {
                    Treatment::Stopped
                } else {
                    Treatment::Idle
                }
            }
            true if self.is_in_debt(quantum_ns) => Treatment::Idle,
            true => Treatment::Normal,
        }
    }
}

#[cfg(test)]
mod tests {
    use prorata_core::ids::ClientId;

    use super::*;
    use crate::limits::Limit;

    const QUANTUM_NS: u64 = 20_000_000;

    #[test]
    fn what_nobody_named_is_never_stopped() {
        let mut client = Client::new(ClientId::from_parts(0, 0), 0);
        let mut named_stopped = 0;
        for runnable in [0, 1] {
            for limit in [Limit::None, Limit::Kept, Limit::Exhausted] {
                for advance_ns in [0, 10 * QUANTUM_NS] {
                    for treatment in [Treatment::Normal, Treatment::Stopped] {
                        (client.runnable, client.limit) = (runnable, limit);
                        (client.advance_ns, client.treatment) = (advance_ns, treatment);
                        for (stands_by, grouped) in
                            [(false, false), (false, true), (true, false), (true, true)]
                        {
                            client.grouped = grouped;
                            client.gives_way = true;
                            let treatment = client.deserved_treatment(stands_by, QUANTUM_NS);
                            assert_ne!(treatment, Treatment::Stopped);
                            client.gives_way = false;
                            let treatment = client.deserved_treatment(stands_by, QUANTUM_NS);
                            named_stopped += u32::from(treatment == Treatment::Stopped);
                        }
                    }
                }
            }
        }
        assert!(named_stopped > 0);
    }
}
