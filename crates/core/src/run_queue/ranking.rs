//! What orders tasks: the one axis, beside where they wait.

use super::feasible_tickets::FeasibleTickets;
use super::limits::Tickets;
use super::task::{Cpu, Task};

/// How much a task deserves to run: the greater goes first. The part of it
/// that does not depend on who asks is what queues publish.
pub type Rank = i64;

/// Below every rank: there is nobody.
pub const NOBODY: Rank = Rank::MIN;

/// Levels of a priority array: one bit each in a word.
pub const MAX_LEVELS: usize = 64;

/// Where the levels of a queue lie, for rankings without a fixed range.
#[derive(Clone, Copy, Default, Debug)]
pub struct Scale {
    /// Pass where the highest level begins.
    pub(super) base: u64,
    /// A level is two to this power of passes.
    pub(super) shift: u32,
}

/// How a task that ran stands among those that could run instead of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Precedence {
    /// Before its equals.
    First,
    /// Behind its equals.
    BehindEquals,
    /// Behind everybody, in this one decision: goodness -1.
    Last,
}

/// Orders tasks, and keeps what that goes by.
///
/// All clocks of a pool of CPUs are one number that never falls: for goodness
/// the recalculations so far, for passes the virtual time.
pub trait Ranking {
    /// Whether tasks that wait become better without running, all at once,
    /// when the clock is moved on.
    const RECALCULATES: bool;

    /// Whether who comes to a queue stands before its equals there, whatever
    /// ranks it had or has later. Else who has had its present rank for longer
    /// does.
    const LATEST_FIRST: bool;

    /// Levels of a priority array under this ranking, at most [`MAX_LEVELS`].
    fn levels(&self) -> usize;

    /// Rank without affinity: the same whoever asks.
    fn rank(&self, task: &Task) -> Rank;

    /// What is added to the rank of a task that `cpu` could run next, its last
    /// address space having been `mm`; `None` where address spaces are
    /// disregarded.
    fn affinity(&self, task: &Task, cpu: Cpu, mm: Option<u32>) -> Rank;

    /// Whether a task of this rank must wait for a recalculation.
    fn is_spent(&self, rank: Rank) -> bool;

    /// What a task in a queue counts for when pools are balanced; `None` if it is
    /// worth a CPU or more, and so has one for itself.
    fn load(&self, task: &Task) -> Option<u32>;

    /// The least that any task can count for.
    fn least_load(&self) -> u32;

    /// Whether it goes before all that are not, in a queue of its own.
    fn is_real_time(&self, task: &Task) -> bool;

    /// Level of a task.
    fn level(&self, task: &Task, scale: &Scale) -> usize;

    /// The highest that rank and affinity (without address spaces) of anybody
    /// in `level` can be. Does not rise from a level to the one below.
    fn limit(&self, level: usize, scale: &Scale) -> Rank;

    /// Where levels should lie from now on, when nobody waits above the lowest
    /// one, for tasks of ranks between these two; `None` where they are fixed.
    fn rescale(&self, lowest: Rank, highest: Rank) -> Option<Scale>;

    /// Whether a CPU is to be taken from who runs there by who would gain so
    /// much in rank, affinity included.
    fn preempts(&self, gain: Rank) -> bool;

    /// A blocked task becomes runnable when the clock shows `clock`.
    fn enter(&self, task: &mut Task, clock: u64);

    /// A task of a queue at `clock` blocks, or goes to another pool.
    fn leave(&self, task: &mut Task, clock: u64);

    /// A task in a queue goes through so many recalculations.
    fn recalculate(&self, task: &mut Task, times: u64);

    /// Other tickets for a task of a queue, at `clock`.
    fn set_tickets(&self, task: &mut Task, tickets: Tickets, clock: u64);

    /// Where the feasible tickets of tasks are, if drivers are to keep their
    /// weights feasible.
    fn feasible(&self) -> Option<&FeasibleTickets>;

    /// Has a task of a queue go by the tickets that are feasible now, at
    /// `clock`.
    fn refresh_tickets(&self, task: &mut Task, clock: u64);

    /// The task ran for `used_ns`.
    fn charge(&self, task: &mut Task, used_ns: u64);

    /// A tick passed while the task ran. Whether its time slice has ended.
    fn tick(&self, task: &mut Task) -> bool;

    /// A task that ran stays runnable, by its own will or because it `yields`.
    fn pause(&self, task: &mut Task, yields: bool) -> Precedence;

    /// The clock, after a task was chosen at `clock`.
    fn clock_after(&self, chosen: &Task, clock: u64) -> u64;
}
