//! On one CPU: each decision against the core's stride scheduling (1995, 2).
//!
//! The core hears of all joins, leaves, changes of tickets and charges, and tells how far a
//! charge moves a pass. A pick is allowed if no competing client has a smaller pass. A client
//! keeps what remains of its wait over a sleep, and a change of tickets rescales it. The
//! kernel has five rules more than the core:
//!
//! * A joining client may stand further back, behind others of its node, but not further
//!   ahead.
//! * A client that wakes an idle CPU gets it.
//! * A client that wakes while another one runs and none waits is next, if it precedes that
//!   one by the end of its quantum (`bpf/next.bpf.h`).
//! * A task taken for the CPU keeps it even if another one joins before it runs: tasks outside
//!   the scheduler can run in between.
//! * No client waits longer than eight seconds, and none of its tasks longer than that from when
//!   the task began to wait. Before a task that is picked earlier for that nothing else counts.
//!
//! Where tasks are early, they precede all others ([`super::early`]). Clients that pause by their
//! limits precede none ([`super::pauses`]). The client of a slot precedes all ([`super::slots`]).
//!
//! A trace may begin with the state ([`DecisionKind::Begin`]). The state does not include the
//! running task and the next one, so the first `UNKNOWN_TURNS` turns after it are not judged.

mod accounts;
mod order;

use std::collections::{HashMap, HashSet};

use prorata_core::policy::{ClientIndex, PolicyError, Stride};

use super::early::EarlyTasks;
use super::pauses::Pauses;
use super::slots::Slots;
use super::{Disallowed, PASS_UNITS, TOLERANCE_NS};
use crate::scheduler::{Decision, DecisionKind, OVERDUE_NS};

/// Tickets in the core for each base ticket: the core's tickets are whole.
const SCALE: f64 = 1000.0;

/// The core's quantum. Its length does not matter: each charge states the time used.
const QUANTUM_NS: f64 = 20e6;

/// The core's passes wrap around at 2^64, in strides of 2^44.
const WRAP: f64 = (1 << 20) as f64;

/// Turns that the kernel may have decided before the trace began: that of the running task,
/// and of at most two tasks in the CPU's own queue (`bpf/next.bpf.h`).
const UNKNOWN_TURNS: u32 = 3;

/// Clients as the core sees them. Passes count the core's quanta for each of its tickets.
#[derive(Debug)]
pub struct OnOne {
    core: Stride,
    tasks: HashMap<u32, Task>,
    tick_ns: u64,
    turn: Option<Turn>,
    /// The turn that the schedulee of a slot interrupted, while the kernel has not decided anew: then it
    /// goes on.
    interrupted: Option<Turn>,
    /// The number of further turns that are not judged.
    unknown_turns: u32,
    /// The client that found the CPU idle, or no client waiting for it, until its pick.
    first: Option<u32>,
    /// The clients that joined since a turn may have ended: the kernel may have taken another
    /// task before.
    late: HashSet<u32>,
    early: EarlyTasks,
    /// Whether an overdue task lets the next ordinary task go before early ones.
    overdue: bool,
    pauses: Pauses,
    slots: Slots,
    picks: u64,
    /// The longest wait, as the kernel has it for the base tickets that are active now.
    longest: f64,
    /// The kernel's pass that counts as 0 here, as its passes wrap around.
    origin: Option<u64>,
}

/// The turn that began last.
#[derive(Clone, Copy, Debug)]
struct Turn {
    tid: u32,
    /// `None` once the client has left.
    node: Option<u32>,
    used_ns: u64,
    /// Whether the task is early or in its slot, and so stands for its client nowhere.
    is_aside: bool,
    is_by_claim: bool,
    /// Whether the client came first when the last turn may have ended, and so may have begun
    /// another turn.
    goes_on: bool,
}

#[derive(Debug)]
struct Task {
    index: ClientIndex,
    /// Base tickets.
    worth: f64,
    /// The longest turn of its tasks. The kernel fixes a turn when the task begins to wait, so
    /// all quanta that the client has had count.
    turn_ns: u64,
    competes: bool,
    /// The pass, while the client competes.
    pass: f64,
    /// The place in the queue: the pass, unless that means too long a wait.
    key: f64,
    /// The least place that it may have been given since the client began to wait: the kernel gives
    /// another one only if it finds it outdated.
    least: f64,
    /// Whether the pass has moved since the client began to wait, by early tasks of the client. The
    /// kernel moves the client once its turn comes.
    is_outdated: bool,
    /// Its competing tasks.
    competing: u32,
    /// What remained of the wait at the last leave, and the worth at that time.
    remain: Option<(f64, f64)>,
}

impl OnOne {
    /// For a trace from its beginning, or with the state before it.
    pub fn new(tick_ns: u64) -> Self {
        Self {
            core: Stride::new(),
            tasks: HashMap::new(),
            tick_ns,
            turn: None,
            interrupted: None,
            unknown_turns: 0,
            first: None,
            late: HashSet::new(),
            early: EarlyTasks::default(),
            overdue: false,
            pauses: Pauses::default(),
            slots: Slots::default(),
            picks: 0,
            longest: 0.0,
            origin: None,
        }
    }

    /// Picks so far.
    pub fn picks(&self) -> u64 {
        self.picks
    }

    /// Judges the next decision.
    pub fn step(&mut self, decision: &Decision) -> Result<(), Disallowed> {
        if decision.kind == DecisionKind::Begin {
            *self = Self {
                unknown_turns: UNKNOWN_TURNS,
                picks: self.picks,
                ..Self::new(self.tick_ns)
            };
            return Ok(());
        }
        if decision.drawn {
            return Err(Disallowed::Drawn { pick: self.picks });
        }
        self.enter(decision);
        let origin = *self.origin.get_or_insert(decision.present);
        let present = self.passes(decision.present, origin);
        let pass = self.passes(decision.pass, origin);
        match decision.kind {
            DecisionKind::New
            | DecisionKind::Join
            | DecisionKind::Leave
            | DecisionKind::Tickets
            | DecisionKind::Charge
            | DecisionKind::Competes
            | DecisionKind::Sleeps => self.account(decision, pass, present),
            DecisionKind::Pick => self.pick(decision, present),
            _ => self.note(decision),
        }
    }

    /// Notes a decision that moves no pass.
    fn note(&mut self, decision: &Decision) -> Result<(), Disallowed> {
        match decision.kind {
            DecisionKind::LookAtSlot => self.slots.begin(decision),
            DecisionKind::TakeInSlot => {
                self.slots.give(decision);
                self.early.end(decision.tid);
            }
            DecisionKind::FallBack => return self.fall_back(decision),
            DecisionKind::Look => {
                self.early.look();
                self.interrupted = None;
                self.overdue = false;
            }
            DecisionKind::WaitEarly => return self.early.wait(self.picks, decision),
            DecisionKind::EndEarly => self.early.end(decision.tid),
            DecisionKind::Overdue => return self.let_go_first(decision),
            DecisionKind::Pause | DecisionKind::Resume | DecisionKind::Spare => {
                self.note_pause(decision);
            }
            _ => {}
        }
        Ok(())
    }

    /// A client joins, leaves, is charged or has other tickets: its pass is to be the core's.
    fn account(&mut self, decision: &Decision, pass: f64, present: f64) -> Result<(), Disallowed> {
        let (node, worth) = (decision.node, decision.tickets);
        self.longest = decision.key as f64 / PASS_UNITS / QUANTUM_NS / SCALE;
        match decision.kind {
            DecisionKind::New => {
                self.task(node).remain = None;
                self.join(node, worth, pass, present)?;
            }
            DecisionKind::Join => self.come_back(decision, pass, present)?,
            DecisionKind::Leave => self.leave(node, pass - present)?,
            DecisionKind::Tickets => self.set_tickets(node, worth, pass, present)?,
            DecisionKind::Charge => self.charge(decision, pass, present)?,
            DecisionKind::Competes => self.compete(node, worth)?,
            _ => self.task(node).remain = Some((pass - present, worth)),
        }
        let latest = self.latest(present, decision.tasks);
        let waits = self.waits_while(decision);
        let task = self.task(node);
        task.pass = pass;
        task.is_outdated = waits && decision.kind == DecisionKind::Charge;
        task.key = pass.min(latest);
        task.least = if waits {
            task.least.min(task.key)
        } else {
            task.key
        };
        if matches!(decision.kind, DecisionKind::Charge | DecisionKind::Tickets) {
            self.prolong(present);
        }
        Ok(())
    }

    /// Whether the client already waited in a queue when its pass moved: it changed its worth, or
    /// another of its tasks is early.
    fn waits_while(&self, decision: &Decision) -> bool {
        let tid = decision.tid;
        let own_turn = |turn: &Turn| turn.tid == tid && !turn.is_aside;
        match decision.kind {
            DecisionKind::Charge => !self.turn.as_ref().is_some_and(own_turn),
            kind => kind == DecisionKind::Tickets,
        }
    }

    /// A task has waited so long that the next ordinary task goes before early ones.
    fn let_go_first(&mut self, decision: &Decision) -> Result<(), Disallowed> {
        let waited_ns = decision.service_ns;
        self.overdue = true;
        match waited_ns > OVERDUE_NS {
            true => Ok(()),
            false => Err(Disallowed::Overdue {
                pick: self.picks,
                node: decision.node,
                waited_ns,
            }),
        }
    }

    fn note_pause(&mut self, decision: &Decision) {
        match decision.kind {
            DecisionKind::Pause => self.pauses.begin(decision.node),
            DecisionKind::Resume => self.pauses.end(decision.node),
            _ => self.pauses.spare(decision),
        }
    }

    /// Notes whether the running client comes first, and so may begin another turn. The kernel
    /// decides this after a charge, when all waiting clients have their present places.
    fn prolong(&mut self, present: f64) {
        let node = self.turn.and_then(|turn| turn.node);
        let goes_on = node.is_some_and(|node| {
            !self.pauses.contain(node) && self.earlier_than(node, f64::INFINITY, present).is_none()
        });
        if let Some(turn) = &mut self.turn {
            turn.goes_on = goes_on;
        }
    }

    /// Enters what every decision tells of a node.
    fn enter(&mut self, decision: &Decision) {
        let next = ClientIndex(self.tasks.len() as u32);
        let task = self.tasks.entry(decision.node).or_insert(Task {
            index: next,
            worth: decision.tickets,
            turn_ns: 0,
            competes: false,
            pass: 0.0,
            key: 0.0,
            least: 0.0,
            is_outdated: false,
            competing: 0,
            remain: None,
        });
        task.turn_ns = task.turn_ns.max(decision.quantum_ns + self.tick_ns);
        task.competing = decision.tasks;
    }

    /// Converts a pass of the kernel to one of the core.
    fn passes(&self, pass: u64, origin: u64) -> f64 {
        let units = pass.wrapping_sub(origin).cast_signed() as f64;
        units / PASS_UNITS / QUANTUM_NS / SCALE
    }

    fn task(&mut self, node: u32) -> &mut Task {
        self.tasks.get_mut(&node).expect("it was entered")
    }

    fn pick(&mut self, decision: &Decision, present: f64) -> Result<(), Disallowed> {
        let Decision { node, tid, .. } = *decision;
        self.picks += 1;
        let is_by_claim = self.slots.pick(self.picks, decision)?;
        let is_excused = self.pauses.excuse(decision);
        self.interrupt(tid, is_by_claim);
        let task = self.task(node);
        let turn_ns = task.turn_ns;
        if !task.competes {
            let error = PolicyError::NotJoined(task.index);
            return Err(Disallowed::NotWhole { node, error });
        }
        let resumes = self.turn.is_some_and(|turn| {
            // Tasks outside the scheduler ran in between.
            turn.node == Some(node) && (turn.goes_on || turn.used_ns < turn_ns)
        });
        if resumes && !is_by_claim {
            self.early.end(tid);
            return Ok(());
        }
        self.turn = Some(Turn {
            tid,
            node: Some(node),
            used_ns: 0,
            is_aside: decision.early.is_some() || is_by_claim,
            is_by_claim,
            goes_on: false,
        });
        let is_ordered = decision.early.is_none() && std::mem::take(&mut self.overdue);
        if is_ordered || is_excused || is_by_claim {
            self.early.end(tid);
            return Ok(());
        }
        self.early.pick(self.picks, decision, self.tick_ns)?;
        if decision.early.is_some() {
            return Ok(());
        }
        if self.first == Some(node) {
            self.first = None;
            return Ok(());
        }
        if self.unknown_turns > 0 {
            self.unknown_turns -= 1;
            return Ok(());
        }
        let latest = self.passes(decision.key, self.origin.unwrap_or_default());
        match self.earlier_than(node, latest, present) {
            None => Ok(()),
            Some((instead_of, early_ns)) => Err(Disallowed::Pick {
                pick: self.picks,
                node,
                instead_of,
                early_ns,
            }),
        }
    }

    /// A turn begins: it interrupts another one, or is the one that was interrupted.
    fn interrupt(&mut self, tid: u32, is_by_claim: bool) {
        if is_by_claim {
            let turn = self.turn.filter(|turn| !turn.is_by_claim);
            self.interrupted = turn.or(self.interrupted);
        } else if let Some(turn) = self.interrupted.take().filter(|turn| turn.tid == tid) {
            self.turn = Some(turn);
        }
    }

    /// The fallback decides in a slot: the client of the slot does not want to run.
    fn fall_back(&self, decision: &Decision) -> Result<(), Disallowed> {
        let wants = |node: &u32| {
            self.tasks.get(node).is_some_and(|task| task.competes) && !self.pauses.contain(*node)
        };
        match self.slots.client_on(decision.cpu).filter(wants) {
            None => Ok(()),
            Some(node) => Err(Disallowed::FallBack {
                pick: self.picks,
                node,
            }),
        }
    }
}

/// Tickets in the core. A number out of range becomes the nearest one.
fn in_core(worth: f64) -> u32 {
    ((worth * SCALE).round() as u32).max(1)
}

/// What remains of a wait at another worth (1995, 2.3). Without tickets it stays as it is.
fn rescaled(remain: f64, from: f64, to: f64) -> f64 {
    match from > 0.0 && to > 0.0 {
        true => remain * from / to,
        false => remain,
    }
}

#[cfg(test)]
mod tests;
