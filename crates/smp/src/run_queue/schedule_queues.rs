//! `schedule()` where each CPU has a queue of its own (2001, 4).
//!
//! ```text
//!   own queue: end the turn
//!     the best of the own queue               with affinity
//!     the best that another queue offers      by its published rank
//!       better: try its lock, verify, move    else pass it over, go on
//!     all expired: unlock, recalculate, begin again
//!   begin the turn, publish the rest, unlock
//! ```
//!
//! A CPU without a task looks again as long as a queue offers one, and then
//! waits for the lock. The paper's MQ would leave the CPU idle, with no CPU to
//! tell it, if that lock was held just then.
//!
//! With no lock contended, the choice is as good as the global list's, with two
//! exceptions: a task that waits away from the CPU where it ran last is offered
//! without its affinity to that CPU, by which it may win only where its queue is
//! held; and offers disregard address spaces.

use super::decision::{DecisionStep, Held, LockIndex, MOST_REFUSALS};
use super::goodness::{NOBODY, is_expired};
use super::layout::{Pool, RunQueues};
use super::offers::Best;
use super::queue::QueueHandle;
use super::schedule::{Phase, Schedule};
use super::search::{Candidate, head, scan};
use super::task::Cpu;
use super::turn::EndedTurn;

impl Schedule {
    /// The next step among several queues.
    pub(super) fn go_on_among_queues(
        &mut self,
        shared: &mut RunQueues,
        held: &mut impl Held,
        granted: bool,
    ) {
        match self.phase {
            Phase::Own => self.look_at_own(shared, held),
            Phase::Compare => self.compare(shared, held),
            Phase::Verify(place) if granted => self.verify(shared, held, place),
            Phase::Verify(place) => {
                self.refusals += 1;
                self.pass_over(place);
            }
            Phase::Fetch(place) => self.fetch(shared, held, place),
            Phase::Expired => {
                let lock = shared.recalculation_lock(self.cpu);
                self.go_on(DecisionStep::Lock(lock), Phase::Recalculate);
            }
            Phase::Recalculate => self.recalculate(shared),
            Phase::CatchUp(place) => self.catch_up(shared, held, place),
            Phase::PassOn(cpu) => self.pass_on(shared, held, cpu),
            Phase::Start | Phase::Decide | Phase::End => {
                self.go_on(DecisionStep::Lock(self.own()), Phase::Own);
            }
        }
    }

    fn own(&self) -> LockIndex {
        LockIndex(self.cpu.0)
    }

    fn ended(&self) -> EndedTurn {
        self.ended.expect("the turn ends before all else")
    }

    /// The own queue is held, for the first time or after a recalculation.
    fn look_at_own(&mut self, shared: &mut RunQueues, held: &mut impl Held) {
        let queue = held.queue(self.own());
        let mut examined = queue.catch_up(shared.clock(self.cpu));
        if let Some((task, as_of)) = self.fetched.take() {
            examined += shared.insert(queue, self.cpu, task, as_of).0;
        }
        let ended = *self.ended.get_or_insert_with(|| {
            queue.cpu_mut(self.cpu).must_decide = false;
            shared.end_turn(queue, self.cpu, self.end, &mut self.outcome)
        });
        self.steps.examined(examined, 0);
        self.refusals = 0;
        self.tried.clone_from(&self.empty);
        let default = shared.default_candidate(queue, self.cpu, ended);
        let mm = queue.cpu(self.cpu).mm;
        let mut found = scan(queue, shared.goodness, self.cpu, mm, default);
        if let Some(handle) = ended.handle {
            // The task that ran waits, too, if another one is chosen.
            found.heads.add(queue.task(handle).rank(), handle);
        }
        self.best = found.best;
        self.heads = Some(found.heads);
        self.steps.examined(found.examined, 0);
        self.phase = Phase::Compare;
    }

    /// Looks at what the other queues offer.
    fn compare(&mut self, shared: &mut RunQueues, held: &mut impl Held) {
        let pool = shared.pool(self.cpu);
        let own = shared.position(self.cpu).place;
        let offer = match self.is_content(shared) {
            true => None,
            false => self.look_for_better(pool, own),
        };
        match offer {
            Some(offer) => {
                debug_assert_ne!(offer.place, own, "the own queue has been looked at");
                let lock = LockIndex(pool.cpus[offer.place as usize].0);
                if self.refusals >= MOST_REFUSALS && pool.offers.is_tournament() {
                    self.steps.push(DecisionStep::Unlock(self.own()));
                    self.go_on(DecisionStep::Lock(lock), Phase::Fetch(offer.place));
                } else {
                    self.go_on(DecisionStep::TryLock(lock), Phase::Verify(offer.place));
                }
            }
            None if is_expired(self.best.total) => {
                self.expired_at = pool.clock;
                self.go_on(DecisionStep::Unlock(self.own()), Phase::Expired);
            }
            None => self.begin_turn(shared, held, self.best.handle),
        }
    }

    /// The best that another queue offers, if that is better than the best so
    /// far. All CPUs that a tournament's best was refused to would go for the
    /// second best. So a refused CPU takes the nearest better one.
    fn look_for_better(&mut self, pool: &Pool, own: u32) -> Option<Best> {
        let (offers, bar) = (&pool.offers, self.best.total);
        if self.refusals > 0 && offers.is_tournament() {
            let (nearest, words) = offers.nearest_above(own, bar, &self.tried);
            self.steps.examined(0, words);
            if nearest.is_some() {
                return nearest;
            }
        }
        let (best, words) = offers.best_near(own, bar, &self.tried);
        self.steps.examined(0, words);
        best
    }

    /// Whether the CPU takes the best of its own queue although another queue
    /// offers a better task. A tournament tells many CPUs of the same task. So
    /// after a refusal a CPU does not try one queue after another, as it does
    /// by the paper. A task that yields lets others go first: it is chosen only
    /// after more refusals.
    fn is_content(&self, shared: &RunQueues) -> bool {
        let has_own = self.best.handle.is_some() && !is_expired(self.best.total);
        let yields = self.ended().yields && self.best.runs;
        let enough = if yields { MOST_REFUSALS } else { 1 };
        has_own && self.refusals >= enough && shared.pool(self.cpu).offers.is_tournament()
    }

    fn pass_over(&mut self, place: u32) {
        self.tried.push(place);
        self.phase = Phase::Compare;
    }

    /// Another queue is held, too: takes what the queue offered, if that is
    /// still there.
    fn verify(&mut self, shared: &mut RunQueues, held: &mut impl Held, place: u32) {
        let cpu = self.cpu;
        let pool = shared.pool(cpu);
        let lock = LockIndex(pool.cpus[place as usize].0);
        let offered = pool.offers.get(place);
        let queue = held.queue(lock);
        let mut examined = queue.catch_up(pool.clock);
        let found = scan(queue, shared.goodness, cpu, None, Candidate::IDLE);
        examined += found.examined;
        let there = found.best.total >= offered && found.best.total > self.best.total;
        if is_expired(found.best.total) && there {
            // Better than to idle, but to be recalculated before it runs.
            self.steps.push(DecisionStep::Unlock(lock));
            self.expired_at = pool.clock;
            self.go_on(DecisionStep::Unlock(self.own()), Phase::Expired);
            return;
        }
        let taken = found.best.handle.filter(|_| there);
        let task = taken.map(|handle| queue.remove(handle));
        let as_of = queue.recalculations();
        let words = shared.publish(queue, Cpu(lock.0), found.heads.without(taken));
        self.steps.examined(examined, words);
        self.steps.push(DecisionStep::Unlock(lock));
        match task {
            Some(task) => {
                let own = held.queue(self.own());
                let (handle, caught_up) = shared.receive(own, cpu, task, as_of);
                if caught_up > 0 {
                    self.heads = None;
                }
                self.steps.examined(caught_up, 0);
                self.begin_turn(shared, held, Some(handle));
            }
            None => {
                if found.best.handle.is_none() {
                    self.empty.push(place);
                }
                self.pass_over(place);
            }
        }
    }

    /// Begins the turn and publishes the rest of the queue.
    fn begin_turn(
        &mut self,
        shared: &mut RunQueues,
        held: &mut impl Held,
        chosen: Option<QueueHandle>,
    ) {
        let (cpu, ended) = (self.cpu, self.ended());
        let queue = held.queue(self.own());
        let outcome = &mut self.outcome;
        let was_told = shared.begin_turn(queue, cpu, chosen, ended, self.now_ns, outcome);
        let left = match self.heads {
            Some(heads) => heads.without(chosen),
            None => head(queue),
        };
        let words = shared.publish(queue, cpu, left);
        self.steps.examined(0, words);
        self.steps.push(DecisionStep::Unlock(self.own()));
        self.phase = Phase::End;
        if chosen.is_none() {
            self.look_again(shared);
        } else if was_told {
            self.look_for_idle(shared);
        }
    }

    /// This CPU idled, and was told of one task while it took another. So it
    /// tells the next idle CPU.
    fn look_for_idle(&mut self, shared: &RunQueues) {
        let pool = shared.pool(self.cpu);
        let (idle, words) = pool.available.best_above_bar(|_| true);
        self.steps.examined(0, words);
        if let Some(idle) = idle {
            let cpu = pool.cpus[idle.place as usize];
            self.go_on(DecisionStep::Lock(LockIndex(cpu.0)), Phase::PassOn(cpu));
        }
    }

    fn pass_on(&mut self, shared: &mut RunQueues, held: &mut impl Held, cpu: Cpu) {
        let lock = LockIndex(cpu.0);
        let roused = shared.rouse(held.queue(lock), cpu);
        self.steps.examined(0, roused.unwrap_or(0));
        self.go_on(DecisionStep::Unlock(lock), Phase::End);
        match roused {
            Some(_) => self.steps.push(DecisionStep::Interrupt(cpu)),
            None => self.look_for_idle(shared),
        }
    }

    /// This CPU has just been published as idle, and unlocks its queue. If a
    /// queue not found empty offers a task, which came just now (`offers.rs`)
    /// or whose lock was held, the CPU waits for that lock.
    fn look_again(&mut self, shared: &RunQueues) {
        let pool = shared.pool(self.cpu);
        let may_have = |place: u32| !self.empty.contains(&place);
        let (offer, words) = pool.offers.best_above_bar(may_have);
        self.steps.examined(0, words);
        if let Some(offer) = offer {
            let lock = LockIndex(pool.cpus[offer.place as usize].0);
            self.go_on(DecisionStep::Lock(lock), Phase::Fetch(offer.place));
        }
    }

    /// Only that queue is held: takes its best task, whatever was offered, if it
    /// is better than all in the own queue, and begins again with it.
    fn fetch(&mut self, shared: &mut RunQueues, held: &mut impl Held, place: u32) {
        let pool = shared.pool(self.cpu);
        let cpu = pool.cpus[place as usize];
        let lock = LockIndex(cpu.0);
        let queue = held.queue(lock);
        let examined = queue.catch_up(pool.clock);
        let found = scan(queue, shared.goodness, self.cpu, None, Candidate::IDLE);
        let is_better = found.best.total > self.best.total;
        let taken = found.best.handle.filter(|_| is_better);
        self.fetched = taken.map(|handle| (queue.remove(handle), queue.recalculations()));
        if found.best.handle.is_none() {
            self.empty.push(place);
        }
        let words = shared.publish(queue, cpu, found.heads.without(taken));
        self.steps.examined(examined + found.examined, words);
        self.go_on(DecisionStep::Unlock(lock), Phase::Start);
    }

    /// The recalculation lock is held: moves the clock on, unless another CPU
    /// has done so since, and visits the queues where tasks wait. The other
    /// queues catch up when they are looked at next.
    fn recalculate(&mut self, shared: &mut RunQueues) {
        let pool = shared.pool_mut(self.cpu);
        if pool.clock == self.expired_at {
            pool.clock += 1;
            let (waiting, words) = pool.offers.best_above_bar(|_| true);
            self.steps.examined(0, words);
            if waiting.is_some() {
                return self.visit_from(shared, 0);
            }
        }
        let lock = shared.recalculation_lock(self.cpu);
        self.go_on(DecisionStep::Unlock(lock), Phase::Start);
    }

    fn visit_from(&mut self, shared: &RunQueues, place: u32) {
        let pool = shared.pool(self.cpu);
        let mut places = place..pool.offers.places();
        match places.find(|&place| pool.offers.get(place) != NOBODY) {
            Some(next) => {
                self.steps.examined(0, next - place + 1);
                let lock = LockIndex(pool.cpus[next as usize].0);
                self.go_on(DecisionStep::Lock(lock), Phase::CatchUp(next));
            }
            None => {
                let lock = shared.recalculation_lock(self.cpu);
                self.go_on(DecisionStep::Unlock(lock), Phase::Start);
            }
        }
    }

    fn catch_up(&mut self, shared: &mut RunQueues, held: &mut impl Held, place: u32) {
        let pool = shared.pool(self.cpu);
        let cpu = pool.cpus[place as usize];
        let lock = LockIndex(cpu.0);
        let queue = held.queue(lock);
        let examined = queue.catch_up(pool.clock);
        let words = shared.publish_afresh(queue, cpu);
        self.steps.examined(examined, words);
        self.steps.push(DecisionStep::Unlock(lock));
        self.visit_from(shared, place + 1);
    }
}
