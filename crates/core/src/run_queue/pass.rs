//! Pass: proportional shares over any layout (1995, 2).
//!
//! Whoever has the smallest pass runs next; having used a part of a quantum it
//! moves on by that part of its stride. Passes of all tasks of a pool of CPUs
//! are on one scale, so they compare across queues as they are.
//!
//! The paper's global pass, in relation to which a sleeper's `remain` is kept,
//! would be a sum that every charge on every CPU writes. Here it is the
//! furthest pass of a winner so far (a rule of the paper's own for fixed sets,
//! 1995, 7.1), which is only written when it rises. A migration changes
//! neither pass nor remain; between pools, which have a virtual time each, a
//! task keeps its remain.
//!
//! There is no affinity but among equals: a preference would add to the error
//! what it permits.
//!
//! # Limits
//!
//! A pass is below 2^63: 2^31 quanta for a lone task of one ticket, and in
//! proportion with more. Where it ends, passes stay: who comes there counts as
//! equal. Passes are compared without their parts, so two tasks of `t` tickets
//! that are less than `t / 2^32` quanta apart count as equal, too. What is owed
//! or due beyond 2^15 quanta is forgotten.

use super::feasible_tickets::FeasibleTickets;
use super::in_force::{InForce, TICKET_PARTS};
use super::limits::{LimitError, MAX_QUANTUM_NS, MIN_QUANTUM_NS, Tickets};
use super::ranking::{MAX_LEVELS, Precedence, Rank, Ranking, Scale};
use super::task::{Cpu, Task};

/// Service of one quantum. The stride of a single ticket is [`TICKET_PARTS`] times
/// smaller, as service is divided by parts of tickets.
pub const QUANTUM_SERVICE: u64 = TICKET_PARTS as u64 * QUANTUM_PASS;

/// The stride of a single ticket.
const QUANTUM_PASS: u64 = 1 << 32;

/// Most service that is owed or due to a sleeper.
const MOST_REMAIN: i128 = (QUANTUM_SERVICE as i128) << 15;

/// The furthest pass.
const MAX_PASS: u64 = i64::MAX as u64;

/// Pass of a task in a queue; of a blocked one, what remains.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    pub(super) pass: u64,
    /// What it goes by since it came into the queue.
    in_force: InForce,
    /// Part of a pass, in fractions of it by the parts in force; below those.
    rest: u32,
    /// Service that is to be waited for, of a blocked task: the paper's remain
    /// times the tickets. Kept so, it needs no adjustment when tickets change
    /// meanwhile (1995, Figure 5).
    remain: i64,
}

impl Standing {
    /// Of a task that never ran: a whole stride remains.
    pub(super) const NEW: Self = Self {
        pass: 0,
        in_force: InForce::ONE,
        rest: 0,
        remain: QUANTUM_SERVICE as i64,
    };

    fn enter(&mut self, in_force: InForce, clock: u64) {
        self.in_force = in_force;
        let parts = i64::from(in_force.parts());
        self.rest = self.remain.rem_euclid(parts) as u32;
        let passes = self.remain.div_euclid(parts);
        // Near the start there is nothing before the first pass.
        self.pass = clock.saturating_add_signed(passes).min(MAX_PASS);
    }

    fn leave(&mut self, clock: u64) {
        self.remain = self.remain(clock);
    }

    fn remain(&self, clock: u64) -> i64 {
        let lead = i128::from(self.pass) - i128::from(clock);
        let remain = lead * i128::from(self.in_force.parts()) + i128::from(self.rest);
        remain.clamp(-MOST_REMAIN, MOST_REMAIN) as i64
    }

    fn charge(&mut self, service: u128) {
        let parts = u128::from(self.in_force.parts());
        let service = service + u128::from(self.rest);
        let pass = u128::from(self.pass) + service / parts;
        self.pass = pass.min(u128::from(MAX_PASS)) as u64;
        self.rest = (service % parts) as u32;
    }
}

/// The ranking of stride scheduling.
#[derive(Debug)]
pub struct Pass {
    quantum_ns: u64,
    feasible: Option<FeasibleTickets>,
}

impl Pass {
    /// By tickets as they are, and quanta of this length.
    ///
    /// # Errors
    /// Quanta too short or too long.
    pub fn new(quantum_ns: u64) -> Result<Self, LimitError> {
        match quantum_ns {
            MIN_QUANTUM_NS..=MAX_QUANTUM_NS => Ok(Self {
                quantum_ns,
                feasible: None,
            }),
            _ => Err(LimitError::Quantum(quantum_ns)),
        }
    }

    /// By what is feasible of the tickets of tasks that are numbered below
    /// `tasks`: nobody is due more than a CPU of its pool. Drivers adjust that
    /// whenever somebody wakes, blocks, moves or is given other tickets.
    ///
    /// # Errors
    /// Quanta too short or too long, or too many tasks.
    pub fn weighted(quantum_ns: u64, tasks: u32) -> Result<Self, LimitError> {
        Ok(Self {
            feasible: Some(FeasibleTickets::new(tasks)?),
            ..Self::new(quantum_ns)?
        })
    }

    /// Service that a task in a queue, at `clock`, will have had when its next
    /// stride is over, beyond what it is due until then: the paper's remain
    /// times the tickets, in units of which a quantum is [`QUANTUM_SERVICE`].
    pub fn remain(&self, task: &Task, clock: u64) -> i64 {
        task.standing.remain(clock)
    }

    /// What a task in a queue goes by.
    pub fn in_force(&self, task: &Task) -> InForce {
        task.standing.in_force
    }

    /// What a task is to go by.
    fn to_go_by(&self, task: &Task) -> InForce {
        let feasible = self.feasible.as_ref();
        let feasible = feasible.and_then(|feasible| feasible.get(task.index));
        feasible.unwrap_or(InForce::whole(task.tickets))
    }
}

impl Ranking for Pass {
    const RECALCULATES: bool = false;

    const LATEST_FIRST: bool = false;

    fn levels(&self) -> usize {
        MAX_LEVELS
    }

    #[inline]
    fn rank(&self, task: &Task) -> Rank {
        -(task.standing.pass as Rank)
    }

    #[inline]
    fn affinity(&self, _task: &Task, _cpu: Cpu, _mm: Option<u32>) -> Rank {
        0
    }

    fn is_spent(&self, _rank: Rank) -> bool {
        false
    }

    /// What it goes by, so that what nobody can use attracts nothing and keeps
    /// nothing away.
    fn load(&self, task: &Task) -> Option<u32> {
        let in_force = task.standing.in_force;
        (!in_force.is_cut()).then_some(in_force.parts())
    }

    /// A ticket: who is not cut goes by all that it has.
    fn least_load(&self) -> u32 {
        TICKET_PARTS
    }

    fn is_real_time(&self, _task: &Task) -> bool {
        false
    }

    /// The highest level holds the smallest passes, the lowest all that are
    /// too far off.
    fn level(&self, task: &Task, scale: &Scale) -> usize {
        let distance = task.standing.pass.saturating_sub(scale.base) >> scale.shift;
        (MAX_LEVELS - 1).saturating_sub(distance as usize)
    }

    fn limit(&self, level: usize, scale: &Scale) -> Rank {
        if level == MAX_LEVELS - 1 {
            return Rank::MAX;
        }
        let distance = (MAX_LEVELS - 1 - level) as u64;
        -(scale.base.saturating_add(distance << scale.shift) as Rank)
    }

    fn rescale(&self, lowest: Rank, highest: Rank) -> Option<Scale> {
        let spread = highest.abs_diff(lowest);
        let in_a_level = spread / (MAX_LEVELS as u64 - 1);
        Some(Scale {
            base: highest.unsigned_abs(),
            shift: u64::BITS - in_a_level.leading_zeros(),
        })
    }

    /// Turns are whole quanta.
    fn preempts(&self, _gain: Rank) -> bool {
        false
    }

    fn enter(&self, task: &mut Task, clock: u64) {
        task.standing.enter(self.to_go_by(task), clock);
    }

    fn leave(&self, task: &mut Task, clock: u64) {
        task.standing.leave(clock);
    }

    fn recalculate(&self, _task: &mut Task, _times: u64) {}

    /// What remains of its stride is scaled (1995, Figure 5).
    fn set_tickets(&self, task: &mut Task, tickets: Tickets, clock: u64) {
        task.tickets = tickets;
        self.refresh_tickets(task, clock);
    }

    fn feasible(&self) -> Option<&FeasibleTickets> {
        self.feasible.as_ref()
    }

    fn refresh_tickets(&self, task: &mut Task, clock: u64) {
        let in_force = self.to_go_by(task);
        if in_force != task.standing.in_force {
            task.standing.leave(clock);
            task.standing.enter(in_force, clock);
        }
    }

    /// Service below a unit, 2^-39 of a quantum, is not counted.
    fn charge(&self, task: &mut Task, used_ns: u64) {
        let service =
            u128::from(used_ns) * u128::from(QUANTUM_SERVICE) / u128::from(self.quantum_ns);
        task.standing.charge(service);
    }

    fn tick(&self, _task: &mut Task) -> bool {
        false
    }

    /// Who yields has used less, and that is all.
    fn pause(&self, _task: &mut Task, _yields: bool) -> Precedence {
        Precedence::First
    }

    fn clock_after(&self, chosen: &Task, clock: u64) -> u64 {
        clock.max(chosen.standing.pass)
    }
}
