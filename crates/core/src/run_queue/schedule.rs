//! `schedule()`: who runs next on a CPU (2001, 2 to 4).

use alloc::vec::Vec;

use super::decision::{Decision, Held, LockIndex, Step, Steps};
use super::layout::{RunQueues, Single};
use super::ranking::Ranking;
use super::search::{Candidate, Heads, scan, search_levels};
use super::task::{Cpu, Task};
use super::turn::{Ended, Outcome, Turn};

/// A CPU's turn ends, and somebody is to be found for the next.
#[derive(Debug)]
pub struct Schedule {
    pub(super) cpu: Cpu,
    pub(super) turn: Turn,
    pub(super) now_ns: u64,
    pub(super) phase: Phase,
    pub(super) steps: Steps,
    pub(super) outcome: Outcome,
    /// Known once the turn has ended.
    pub(super) ended: Option<Ended>,
    pub(super) best: Candidate,
    /// Of the CPU's own queue, once it has been looked at.
    pub(super) heads: Option<Heads>,
    /// How often the lock of another queue was held.
    pub(super) refusals: u32,
    /// Places that are passed over in this decision. Allocates only when one
    /// is.
    pub(super) tried: Vec<u32>,
    /// Those of them where nobody may run on this CPU.
    pub(super) forbidden: Vec<u32>,
    /// Taken out of another queue without this CPU's own being held, and the
    /// recalculations it has been through.
    pub(super) fetched: Option<Task>,
    pub(super) fetched_at: u64,
    /// The clock when everybody was found to have expired.
    pub(super) expired_at: u64,
    /// Real-time tasks that had come when the CPU's own queue was looked at.
    pub(super) real_time_arrivals: u64,
}

/// What the next step goes on with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    Start,
    /// One queue for all CPUs is held.
    Decide,
    /// The CPU's own queue is held.
    Own,
    /// That and the real-time queue.
    RealTime,
    /// The CPU's own queue; nobody there has been looked at yet.
    Local,
    /// Who is best there is known.
    Compare,
    /// A lock on the queue at this place of the pool was tried.
    Verify(u32),
    /// Nothing but the queue at this place is held.
    Fetch(u32),
    /// Nothing is held any more, everybody has expired.
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
    pub fn new(cpu: Cpu, turn: Turn, now_ns: u64) -> Self {
        Self {
            cpu,
            turn,
            now_ns,
            phase: Phase::Start,
            steps: Steps::NONE,
            outcome: Outcome::default(),
            ended: None,
            best: Candidate::IDLE,
            heads: None,
            refusals: 0,
            tried: Vec::new(),
            forbidden: Vec::new(),
            fetched: None,
            fetched_at: 0,
            expired_at: 0,
            real_time_arrivals: 0,
        }
    }

    /// What was decided, after [`Step::Done`].
    pub fn outcome(self) -> Outcome {
        self.outcome
    }

    pub(super) fn go_on(&mut self, step: Step, phase: Phase) {
        self.steps.push(step);
        self.phase = phase;
    }

    /// The only queue is held: everything is decided at once.
    fn decide<R: Ranking>(&mut self, shared: &RunQueues<R>, single: Single, held: &mut impl Held) {
        let (cpu, lock) = (self.cpu, LockIndex(0));
        let (queue, ranking) = (held.queue(lock), &shared.ranking);
        let pool = shared.pool(cpu);
        let ended = shared.end_turn(queue, cpu, self.turn, &mut self.outcome);
        let mut examined = 0;
        let best = loop {
            let default = shared.default_candidate(queue, cpu, ended);
            let (best, more) = match single {
                Single::List => {
                    let found = scan(queue, ranking, cpu, queue.cpu(cpu).mm, default);
                    (found.best, found.examined)
                }
                Single::Levels => search_levels(queue, ranking, cpu, default),
            };
            examined += more;
            if !ranking.is_spent(best.total) {
                break best;
            }
            let clock = pool.clock() + 1;
            pool.advance_clock(clock);
            examined += queue.catch_up(ranking, clock);
            self.outcome.recalculated = true;
        };
        if single == Single::Levels {
            examined += queue.rescale_if_lowest(best.slot, ranking);
        }
        let (now_ns, outcome) = (self.now_ns, &mut self.outcome);
        // All is decided under one lock, so nobody was told meanwhile.
        shared.begin_turn(queue, cpu, best.slot, ended, now_ns, outcome);
        self.steps.examined(examined, 0);
        self.go_on(Step::Unlock(lock), Phase::End);
    }
}

impl<R: Ranking> Decision<R> for Schedule {
    fn step(&mut self, shared: &RunQueues<R>, held: &mut impl Held, granted: bool) -> Step {
        loop {
            if let Some(step) = self.steps.pop() {
                return step;
            }
            match (self.phase, shared.single) {
                (Phase::Start, Some(_)) => self.go_on(Step::Lock(LockIndex(0)), Phase::Decide),
                (Phase::Decide, Some(single)) => self.decide(shared, single, held),
                (Phase::End, _) => return Step::Done,
                _ => self.go_on_among_queues(shared, held, granted),
            }
        }
    }
}
