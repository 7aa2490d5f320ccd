//! `schedule()` where each CPU has a queue of its own (2001, 4).
//!
//! ```text
//!   own queue: end the turn
//!     real-time tasks, if there are any       in a queue of their own
//!     the best of the own queue               with affinity
//!     the best that another queue offers      by its published rank
//!       better: try its lock, verify, move    else pass it over, go on
//!     all expired: let go, recalculate, begin again
//!   begin the turn, publish what is left, let go
//! ```
//!
//! A CPU that finds nobody looks again as long as somebody is offered whom it
//! might run, and then waits for the lock: in the paper's MQ it would be left
//! idle, with nobody to tell it, if that lock was held just then.
//!
//! With no lock contended, what is chosen is as good as what the global list
//! would give, with three exceptions, all of a queue whose best offer is not
//! what this CPU can use best: it may not run the task that is offered, and
//! passes the queue over unless it would idle, though others there may do; a
//! task that waits away
//! from the CPU where it ran last is offered without its affinity to that CPU;
//! and address spaces are disregarded in what is offered.

use super::board::Best;
use super::decision::{Held, LockIndex, MOST_REFUSALS, Step};
use super::layout::{Pool, RunQueues};
use super::place::Displaced;
use super::queue::{AmongEquals, Slot};
use super::ranking::{NOBODY, Precedence, Ranking};
use super::schedule::{Phase, Schedule};
use super::search::{Candidate, head, scan};
use super::task::Cpu;
use super::turn::Ended;

impl Schedule {
    /// The next step among several queues.
    pub(super) fn go_on_among_queues<R: Ranking>(
        &mut self,
        shared: &RunQueues<R>,
        held: &mut impl Held,
        granted: bool,
    ) {
        match self.phase {
            Phase::Own => self.end_turn(shared, held),
            Phase::RealTime => self.look_at_real_time(shared, held),
            Phase::Local => self.look_at_own(shared, held),
            Phase::Compare => self.compare(shared, held),
            Phase::Verify(place) if granted => self.verify(shared, held, place),
            Phase::Verify(place) => {
                self.refusals += 1;
                self.pass_over(place);
            }
            Phase::Fetch(place) => self.fetch(shared, held, place),
            Phase::Expired => {
                self.phase = Phase::Recalculate;
                self.steps
                    .push(Step::Lock(shared.recalculation_lock(self.cpu)));
            }
            Phase::Recalculate => self.recalculate(shared),
            Phase::CatchUp(place) => self.catch_up(shared, held, place),
            Phase::PassOn(cpu) => self.pass_on(shared, held, cpu),
            Phase::Start | Phase::Decide | Phase::End => {
                self.go_on(Step::Lock(self.own()), Phase::Own);
            }
        }
    }

    fn own(&self) -> LockIndex {
        LockIndex(self.cpu.0)
    }

    fn ended(&self) -> Ended {
        self.ended.unwrap_or(Ended {
            slot: None,
            precedence: Precedence::First,
            yields: false,
        })
    }

    /// The own queue is held, for the first time or after a recalculation.
    fn end_turn<R: Ranking>(&mut self, shared: &RunQueues<R>, held: &mut impl Held) {
        let pool = shared.pool(self.cpu);
        let queue = held.queue(self.own());
        let mut examined = queue.catch_up(&shared.ranking, pool.clock());
        if let Some(task) = self.fetched.take() {
            examined += shared.insert(queue, self.cpu, task, self.fetched_at).0;
        }
        if self.ended.is_none() {
            queue.cpu_mut(self.cpu).must_decide = false;
            let ended = shared.end_turn(queue, self.cpu, self.turn, &mut self.outcome);
            self.ended = Some(ended);
        }
        self.steps.examined(examined, 0);
        let ended = self.ended();
        self.best = shared.default_candidate(queue, self.cpu, ended);
        let is_real_time =
            |slot| self.best.slot.is_some() && shared.ranking.is_real_time(queue.task(slot));
        self.refusals = 0;
        self.tried.clone_from(&self.forbidden);
        self.heads = None;
        self.real_time_arrivals = pool.real_time_arrivals();
        if pool.real_time() != NOBODY || ended.slot.is_some_and(is_real_time) {
            let lock = shared.real_time_queue(self.cpu);
            self.go_on(Step::Lock(lock), Phase::RealTime);
        } else {
            self.phase = Phase::Local;
        }
    }

    /// The own queue and the real-time queue are held: as for the global list
    /// if somebody waits there or ran.
    fn look_at_real_time<R: Ranking>(&mut self, shared: &RunQueues<R>, held: &mut impl Held) {
        let (cpu, ranking) = (self.cpu, &shared.ranking);
        let (own, lock) = (self.own(), shared.real_time_queue(cpu));
        let ended = self.ended();
        let default = self.best;
        let previous = ended.slot.filter(|&slot| {
            let task = held.queue(own).task(slot);
            ranking.is_real_time(task)
        });
        let default_is_real_time = previous.is_some() && default.slot == previous;
        let start = if default_is_real_time {
            default
        } else {
            Candidate::IDLE
        };
        let queue = held.queue(lock);
        let found = scan(queue, ranking, cpu, None, start);
        let taken = found.best.slot.filter(|_| !found.best.runs());
        let task = taken.map(|slot| queue.remove(slot));
        pool_offer(shared, cpu, held, lock);
        self.steps.examined(found.examined, 0);
        self.steps.push(Step::Unlock(lock));
        self.phase = Phase::Local;
        if let Some(task) = task {
            if let Some(slot) = previous {
                // It goes back to its equals.
                let queue = held.queue(own);
                queue.cpu_mut(cpu).current = None;
                let task = queue.remove(slot);
                let index = task.index;
                shared.pool(cpu).real_time_arrives(ranking.rank(&task));
                let among = match ended.precedence {
                    Precedence::BehindEquals => AmongEquals::Last,
                    Precedence::First | Precedence::Last => AmongEquals::AsBefore,
                };
                let slot = held.queue(lock).insert_real_time(task, among);
                self.outcome.displaced = (!ended.yields).then_some(Displaced {
                    task: index,
                    lock,
                    slot,
                });
                pool_offer(shared, cpu, held, lock);
                self.ended = Some(Ended {
                    slot: None,
                    ..ended
                });
            }
            let slot = held.queue(own).insert(task, ranking);
            self.begin_turn(shared, held, Some(slot));
        } else if default_is_real_time {
            self.begin_turn(shared, held, default.slot);
        }
    }

    fn look_at_own<R: Ranking>(&mut self, shared: &RunQueues<R>, held: &mut impl Held) {
        let queue = held.queue(self.own());
        let mm = queue.cpu(self.cpu).mm;
        let mut found = scan(queue, &shared.ranking, self.cpu, mm, self.best);
        if let Some(slot) = self.ended().slot {
            // Who ran waits, too, if somebody else is chosen.
            let rank = shared.ranking.rank(queue.task(slot));
            found.heads.add(rank, slot);
        }
        self.best = found.best;
        self.heads = Some(found.heads);
        self.steps.examined(found.examined, 0);
        self.phase = Phase::Compare;
    }

    /// Looks at what the other queues offer.
    fn compare<R: Ranking>(&mut self, shared: &RunQueues<R>, held: &mut impl Held) {
        let pool = shared.pool(self.cpu);
        let own = shared.place(self.cpu).place;
        let offer = match self.is_content(shared) {
            true => None,
            false => self.look_for_better(pool, own),
        };
        match offer {
            // Only of somebody who may not run here.
            Some(offer) if offer.place == own => {
                self.tried.push(own);
                self.forbidden.push(own);
            }
            Some(offer) => {
                let lock = LockIndex(pool.cpus[offer.place as usize].0);
                if self.refusals >= MOST_REFUSALS && pool.offers.is_tournament() {
                    self.steps.push(Step::Unlock(self.own()));
                    self.go_on(Step::Lock(lock), Phase::Fetch(offer.place));
                } else {
                    self.go_on(Step::TryLock(lock), Phase::Verify(offer.place));
                }
            }
            _ if shared.ranking.is_spent(self.best.total) => {
                self.expired_at = pool.clock();
                self.go_on(Step::Unlock(self.own()), Phase::Expired);
            }
            _ => self.begin_turn(shared, held, self.best.slot),
        }
    }

    /// The best that another queue offers, if that is better than what it has. By
    /// a tournament, all that are refused the best would go for the second best:
    /// then it is the nearest that is better.
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

    /// Whether it takes the best of its own queue although another offers a
    /// better one: where a tournament tells many CPUs of the same one, who was
    /// refused it does not go on to try one queue after another, as it does by
    /// the paper. Not at once if that is who yields, to let others go first.
    fn is_content<R: Ranking>(&self, shared: &RunQueues<R>) -> bool {
        let has_own = self.best.slot.is_some() && !shared.ranking.is_spent(self.best.total);
        let yields = self.ended().yields && self.best.runs();
        let enough = if yields { MOST_REFUSALS } else { 1 };
        has_own && self.refusals >= enough && shared.pool(self.cpu).offers.is_tournament()
    }

    fn pass_over(&mut self, place: u32) {
        self.tried.push(place);
        self.outcome.skipped += 1;
        self.phase = Phase::Compare;
    }

    /// Another queue is held, too: takes what it offered, if it is there.
    fn verify<R: Ranking>(&mut self, shared: &RunQueues<R>, held: &mut impl Held, place: u32) {
        let (cpu, ranking) = (self.cpu, &shared.ranking);
        let pool = shared.pool(cpu);
        let lock = LockIndex(pool.cpus[place as usize].0);
        let offered = pool.offers.get(place);
        let queue = held.queue(lock);
        let mut examined = queue.catch_up(ranking, pool.clock());
        let found = scan(queue, ranking, cpu, None, Candidate::IDLE);
        examined += found.examined;
        let there = found.best.total >= offered && found.best.total > self.best.total;
        if ranking.is_spent(found.best.total) && there {
            // Better than to idle, but not to be run before it is
            // recalculated.
            self.steps.push(Step::Unlock(lock));
            self.expired_at = pool.clock();
            self.go_on(Step::Unlock(self.own()), Phase::Expired);
            return;
        }
        let taken = found.best.slot.filter(|_| there);
        let task = taken.map(|slot| queue.remove(slot));
        let as_of = queue.recalculations;
        let words = shared.publish(queue, Cpu(lock.0), found.heads.without(taken));
        self.steps.examined(examined, words);
        self.steps.push(Step::Unlock(lock));
        match task {
            Some(task) => {
                let own = held.queue(self.own());
                let (slot, caught_up) = shared.receive(own, cpu, task, as_of);
                if caught_up > 0 {
                    self.heads = None;
                }
                self.steps.examined(caught_up, 0);
                self.begin_turn(shared, held, Some(slot));
            }
            None => {
                if found.best.slot.is_none() {
                    self.forbidden.push(place);
                }
                self.pass_over(place);
            }
        }
    }

    /// The turn begins, and what is left is published.
    fn begin_turn<R: Ranking>(
        &mut self,
        shared: &RunQueues<R>,
        held: &mut impl Held,
        chosen: Option<Slot>,
    ) {
        let (cpu, ended) = (self.cpu, self.ended());
        let queue = held.queue(self.own());
        let outcome = &mut self.outcome;
        let was_told = shared.begin_turn(queue, cpu, chosen, ended, self.now_ns, outcome);
        let left = match self.heads {
            Some(heads) => heads.without(chosen),
            None => head(queue, &shared.ranking),
        };
        let words = shared.publish(queue, cpu, left);
        self.steps.examined(0, words);
        self.steps.push(Step::Unlock(self.own()));
        self.phase = Phase::End;
        if chosen.is_none() {
            self.look_again(shared);
        } else if was_told {
            self.look_for_idle(shared);
        }
    }

    /// This CPU was told of somebody while it took another, having been idle
    /// until then: it tells the next, as it was to be two CPUs.
    fn look_for_idle<R: Ranking>(&mut self, shared: &RunQueues<R>) {
        let pool = shared.pool(self.cpu);
        let (idle, words) = pool.available.best_above_bar(|_| true);
        self.steps.examined(0, words);
        if let Some(idle) = idle {
            let cpu = pool.cpus[idle.place as usize];
            self.go_on(Step::Lock(LockIndex(cpu.0)), Phase::PassOn(cpu));
        }
    }

    fn pass_on<R: Ranking>(&mut self, shared: &RunQueues<R>, held: &mut impl Held, cpu: Cpu) {
        let lock = LockIndex(cpu.0);
        let roused = shared.rouse(held.queue(lock), cpu);
        self.steps.examined(0, roused.unwrap_or(0));
        self.go_on(Step::Unlock(lock), Phase::End);
        match roused {
            Some(_) => self.steps.push(Step::Interrupt(cpu)),
            None => self.look_for_idle(shared),
        }
    }

    /// This CPU has just been published as idle, and lets its queue go. If
    /// somebody is offered whom it has not found forbidden, who came just now
    /// (see `board.rs`) or whose queue's lock was held, it waits for that lock.
    fn look_again<R: Ranking>(&mut self, shared: &RunQueues<R>) {
        let pool = shared.pool(self.cpu);
        let may_have = |place: u32| !self.forbidden.contains(&place);
        let (offer, words) = pool.offers.best_above_bar(may_have);
        self.steps.examined(0, words);
        if let Some(offer) = offer {
            let lock = LockIndex(pool.cpus[offer.place as usize].0);
            self.go_on(Step::Lock(lock), Phase::Fetch(offer.place));
        } else if pool.real_time_arrivals() != self.real_time_arrivals {
            self.phase = Phase::Start;
        }
    }

    /// Only that queue is held: takes the best that may run here, whatever was
    /// offered, if it is better than all in its own, and begins again with it.
    fn fetch<R: Ranking>(&mut self, shared: &RunQueues<R>, held: &mut impl Held, place: u32) {
        let ranking = &shared.ranking;
        let pool = shared.pool(self.cpu);
        let cpu = pool.cpus[place as usize];
        let lock = LockIndex(cpu.0);
        let queue = held.queue(lock);
        let examined = queue.catch_up(ranking, pool.clock());
        let found = scan(queue, ranking, self.cpu, None, Candidate::IDLE);
        let is_better = found.best.total > self.best.total;
        let slot = found.best.slot.filter(|_| is_better);
        self.fetched_at = queue.recalculations();
        self.fetched = slot.map(|slot| queue.remove(slot));
        if found.best.slot.is_none() {
            self.forbidden.push(place);
        }
        let words = shared.publish(queue, cpu, found.heads.without(slot));
        self.steps.examined(examined + found.examined, words);
        self.go_on(Step::Unlock(lock), Phase::Start);
    }

    /// The recalculation lock is held: moves the clock on, unless another CPU
    /// has done so since, and visits the queues where somebody waits. Those
    /// where nobody does catch up when they are looked at next.
    fn recalculate<R: Ranking>(&mut self, shared: &RunQueues<R>) {
        let pool = shared.pool(self.cpu);
        if pool.clock() == self.expired_at {
            pool.advance_clock(self.expired_at + 1);
            self.outcome.recalculated = true;
            let (somebody, words) = pool.offers.best_above_bar(|_| true);
            self.steps.examined(0, words);
            if somebody.is_some() {
                return self.visit_from(shared, 0);
            }
        }
        self.go_on(
            Step::Unlock(shared.recalculation_lock(self.cpu)),
            Phase::Start,
        );
    }

    fn visit_from<R: Ranking>(&mut self, shared: &RunQueues<R>, place: u32) {
        let pool = shared.pool(self.cpu);
        let mut places = place..pool.offers.places();
        match places.find(|&place| pool.offers.get(place) != NOBODY) {
            Some(next) => {
                self.steps.examined(0, next - place + 1);
                let lock = LockIndex(pool.cpus[next as usize].0);
                self.go_on(Step::Lock(lock), Phase::CatchUp(next));
            }
            None => {
                let lock = shared.recalculation_lock(self.cpu);
                self.go_on(Step::Unlock(lock), Phase::Start);
            }
        }
    }

    fn catch_up<R: Ranking>(&mut self, shared: &RunQueues<R>, held: &mut impl Held, place: u32) {
        let pool = shared.pool(self.cpu);
        let cpu = pool.cpus[place as usize];
        let lock = LockIndex(cpu.0);
        let queue = held.queue(lock);
        let examined = queue.catch_up(&shared.ranking, pool.clock());
        let words = shared.publish_afresh(queue, cpu);
        self.steps.examined(examined, words);
        self.steps.push(Step::Unlock(lock));
        self.visit_from(shared, place + 1);
    }
}

fn pool_offer<R: Ranking>(shared: &RunQueues<R>, cpu: Cpu, held: &mut impl Held, lock: LockIndex) {
    let head = head(held.queue(lock), &shared.ranking);
    shared.pool(cpu).offer_real_time(head);
}
