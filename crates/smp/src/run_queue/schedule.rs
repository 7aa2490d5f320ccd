//! `schedule()`: which task runs next on a CPU (2001, 2 to 4).

use super::decision::{Decision, DecisionStep, Held, LockIndex, PendingSteps};
use super::goodness::is_expired;
use super::layout::{RunQueues, Single};
use super::search::{Candidate, Heads, scan, search_levels};
use super::task::{Cpu, Task};
use super::turn::{EndedTurn, Scheduled, TurnEnd};

/// A CPU's turn ends, and a task is chosen for the next.
#[derive(Debug)]
pub struct Schedule {
    pub(super) cpu: Cpu,
    pub(super) end: TurnEnd,
    pub(super) now_ns: u64,
    pub(super) phase: Phase,
    pub(super) steps: PendingSteps,
    pub(super) outcome: Scheduled,
    /// Known once the turn has ended.
    pub(super) ended: Option<EndedTurn>,
    pub(super) best: Candidate,
    /// Of the CPU's own queue, once it has been looked at.
    pub(super) heads: Option<Heads>,
    /// How often the lock of another queue was held.
    pub(super) refusals: u32,
    /// Places that this decision passes over.
    pub(super) tried: Vec<u32>,
    /// Those of them whose queue had no waiting task.
    pub(super) empty: Vec<u32>,
    /// A task taken out of another queue while this CPU's own was not held, and
    /// the recalculations it has been through.
    pub(super) fetched: Option<(Task, u64)>,
    /// The clock when all tasks were found expired.
    pub(super) expired_at: u64,
}

/// What the next step goes on with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    Start,
    /// One queue for all CPUs is held.
    Decide,
    /// The CPU's own queue is held.
    Own,
    /// The best task of the own queue is known.
    Compare,
    /// A lock on the queue at this place of the pool was tried.
    Verify(u32),
    /// Nothing but the queue at this place is held.
    Fetch(u32),
    /// Nothing is held any more; all tasks are expired.
    Expired,
    /// The recalculation lock is held.
    Recalculate,
    /// That and the queue at this place.
    CatchUp(u32),
    /// The turn has begun, and the queue of a CPU is held that seemed idle.
    PassOn(Cpu),
    End,
}

impl Schedule {
    /// `cpu` decides at `now_ns`, by the caller's clock, below 2^61.
    pub fn new(cpu: Cpu, end: TurnEnd, now_ns: u64) -> Self {
        Self {
            cpu,
            end,
            now_ns,
            phase: Phase::Start,
            steps: PendingSteps::NONE,
            outcome: Scheduled::default(),
            ended: None,
            best: Candidate::IDLE,
            heads: None,
            refusals: 0,
            tried: Vec::new(),
            empty: Vec::new(),
            fetched: None,
            expired_at: 0,
        }
    }

    /// What was decided, after [`DecisionStep::Done`].
    pub fn outcome(self) -> Scheduled {
        self.outcome
    }

    pub(super) fn go_on(&mut self, step: DecisionStep, phase: Phase) {
        self.steps.push(step);
        self.phase = phase;
    }

    /// The only queue is held: everything is decided at once.
    fn decide(&mut self, shared: &mut RunQueues, single: Single, held: &mut impl Held) {
        let (cpu, lock, goodness) = (self.cpu, LockIndex(0), shared.goodness);
        let queue = held.queue(lock);
        let ended = shared.end_turn(queue, cpu, self.end, &mut self.outcome);
        let mut examined = 0;
        let best = loop {
            let default = shared.default_candidate(queue, cpu, ended);
            let (best, more) = match single {
                Single::List => {
                    let found = scan(queue, goodness, cpu, queue.cpu(cpu).mm, default);
                    (found.best, found.examined)
                }
                Single::Levels => search_levels(queue, goodness, cpu, default),
            };
            examined += more;
            if !is_expired(best.total) {
                break best;
            }
            let pool = shared.pool_mut(cpu);
            pool.clock += 1;
            examined += queue.catch_up(pool.clock);
        };
        let (now_ns, outcome) = (self.now_ns, &mut self.outcome);
        // One lock covers the decision, so the CPU was not told meanwhile.
        shared.begin_turn(queue, cpu, best.handle, ended, now_ns, outcome);
        self.steps.examined(examined, 0);
        self.go_on(DecisionStep::Unlock(lock), Phase::End);
    }
}

impl Decision for Schedule {
    fn step(
        &mut self,
        shared: &mut RunQueues,
        held: &mut impl Held,
        granted: bool,
    ) -> DecisionStep {
        loop {
            if let Some(step) = self.steps.pop() {
                return step;
            }
            match (self.phase, shared.single) {
                (Phase::Start, Some(_)) => {
                    self.go_on(DecisionStep::Lock(LockIndex(0)), Phase::Decide)
                }
                (Phase::Decide, Some(single)) => self.decide(shared, single, held),
                (Phase::End, _) => return DecisionStep::Done,
                _ => self.go_on_among_queues(shared, held, granted),
            }
        }
    }
}
