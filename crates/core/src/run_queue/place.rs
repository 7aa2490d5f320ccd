//! `reschedule_idle()`: a CPU for a task that could run (2001, 2 and 4).
//!
//! The CPU where it ran last, if that is idle; else the one that has been idle
//! longest; else whichever runs the task that it gains most on, if preemption
//! is worth that. Otherwise it waits where it ran last, and nobody is told.
//! Among equals: where it ran last, then the lowest number.
//!
//! Where each CPU has a queue, a task that wakes is put into the queue of the
//! CPU that is told, after what was read about that CPU has been verified
//! under its lock. Any other stands in a queue already: one that was displaced,
//! one of real time, and one that woke when no CPU was ready. Who is told
//! finds it among the offers. There an idle CPU is told under the lock of its
//! queue, so that two tasks which wait do not tell the same.
//!
//! A task that may not run everywhere is found a CPU by one search of what is
//! published of those where it may. Who wakes and is refused twice, as a lock was
//! held or a CPU no longer what it seemed, waits where it ran last, and has somebody
//! told from there.
//!
//! That has no limit: a CPU that seemed idle and is not, once its lock is held, is
//! passed over, as often as it takes, since who gave up might wait beside another
//! one that idles. Each time that CPU was told by somebody else in between, or has
//! found work, so what one goes on with another has done.

use alloc::vec::Vec;

use super::availability::Availability;
use super::balance::Moving;
use super::decision::{Decision, Held, LockIndex, MOST_REFUSALS, Step, Steps};
use super::layout::RunQueues;
use super::queue::{AmongEquals, Queue, Slot};
use super::ranking::{Rank, Ranking};
use super::task::{Cpu, Task, TaskIndex};

/// A task that was displaced by another and waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Displaced {
    /// Who.
    pub task: TaskIndex,
    pub(super) lock: LockIndex,
    pub(super) slot: Slot,
}

/// A task that could run looks for a CPU.
#[derive(Debug)]
pub struct Place {
    /// Who woke, until it stands in a queue.
    woken: Option<Task>,
    displaced: Option<Displaced>,
    /// Who stands in a queue, as it was when it began to wait there.
    waiting: Option<Task>,
    /// A CPU was told that runs somebody: only an idle one is to be told, too.
    has_told: bool,
    phase: Phase,
    steps: Steps,
    /// The recalculations that who woke has been through.
    as_of: u64,
    /// CPUs, by their place in the pool, that seemed ready and were not, or whose
    /// lock was held: at most [`MOST_REFUSALS`]. Allocates only when there are some.
    tried: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Start,
    /// One queue for all CPUs is held.
    Single,
    /// Among queues: who woke is not yet placed, nothing is held.
    Choose,
    /// A lock on the queue of this CPU was tried.
    Verify(Cpu),
    /// The queue where it waits in any case is held.
    Wait(Cpu),
    /// The queue is held into which it goes from another pool.
    Put(Cpu),
    /// The real-time queue of its pool is held.
    RealTime(Cpu),
    /// The queue where it was displaced is held.
    Displaced(Displaced),
    /// Somebody waits in a queue, nothing is held.
    Tell,
    /// The queue of a CPU is held that seemed idle.
    Rouse(Cpu),
    End,
}

/// A CPU that seems ready for the task.
#[derive(Clone, Copy, Debug)]
struct Target {
    cpu: Cpu,
    availability: Availability,
    gain: Rank,
}

impl Place {
    /// A task that was blocked, or is new, can run.
    pub fn woken(task: Task) -> Self {
        Self::new(Some(task), None)
    }

    /// A task that ran could go on, but another was better on that CPU.
    pub fn displaced(displaced: Displaced) -> Self {
        Self::new(None, Some(displaced))
    }

    /// A task comes from another pool.
    pub fn moved(moving: Moving) -> Self {
        let mut place = Self::new(Some(moving.task), None);
        place.as_of = moving.as_of;
        // There are pools, so each CPU has a queue.
        place.go_on(Step::Lock(LockIndex(moving.to.0)), Phase::Put(moving.to));
        place
    }

    fn new(woken: Option<Task>, displaced: Option<Displaced>) -> Self {
        Self {
            woken,
            displaced,
            waiting: None,
            has_told: false,
            phase: Phase::Start,
            steps: Steps::NONE,
            as_of: 0,
            tried: Vec::new(),
        }
    }

    fn start<R: Ranking>(&mut self, shared: &RunQueues<R>) {
        let (lock, phase) = match (shared.single, self.displaced, &mut self.woken) {
            (Some(_), ..) => (LockIndex(0), Phase::Single),
            (None, Some(displaced), _) => (displaced.lock, Phase::Displaced(displaced)),
            (None, None, Some(task)) => {
                let home;
                (home, self.as_of) = shared.enter(task);
                if !shared.ranking.is_real_time(task) {
                    self.phase = Phase::Choose;
                    return;
                }
                (shared.real_time_queue(home), Phase::RealTime(home))
            }
            (None, None, None) => {
                self.phase = Phase::End;
                return;
            }
        };
        self.go_on(Step::Lock(lock), phase);
    }

    fn go_on(&mut self, step: Step, phase: Phase) {
        self.steps.push(step);
        self.phase = phase;
    }

    /// The only queue is held: everything is known.
    fn place_in_single<R: Ranking>(&mut self, shared: &RunQueues<R>, held: &mut impl Held) {
        let queue = held.queue(LockIndex(0));
        let slot = match (self.woken.take(), self.displaced) {
            (Some(mut task), _) => {
                shared.enter(&mut task);
                Some(queue.insert(task, &shared.ranking))
            }
            (None, displaced) => displaced.and_then(|displaced| queue.still_waits(displaced)),
        };
        let target = slot.and_then(|slot| best_cpu(shared, queue, queue.task(slot)));
        if let Some(cpu) = target {
            queue.cpu_mut(cpu).must_decide = true;
        }
        self.steps.examined(0, shared.cpus());
        self.steps.push(Step::Unlock(LockIndex(0)));
        self.tell(target);
    }

    fn tell(&mut self, target: Option<Cpu>) {
        if let Some(cpu) = target {
            self.steps.push(Step::Interrupt(cpu));
        }
        self.phase = Phase::End;
    }

    /// Chooses by what is published.
    fn choose<R: Ranking>(&mut self, shared: &RunQueues<R>) {
        let Some(task) = self.woken.take() else {
            self.phase = Phase::End;
            return;
        };
        let target = match (self.tried.len() as u32) < MOST_REFUSALS {
            true => self.best_published(shared, &task),
            false => None,
        };
        match target {
            Some(Target { cpu, .. }) => {
                self.go_on(Step::TryLock(shared.queue_of(cpu)), Phase::Verify(cpu));
            }
            None => {
                let home = shared.home(&task);
                self.go_on(Step::Lock(shared.queue_of(home)), Phase::Wait(home));
            }
        }
        self.woken = Some(task);
    }

    fn best_published<R: Ranking>(&mut self, shared: &RunQueues<R>, task: &Task) -> Option<Target> {
        let home = shared.home(task);
        let (pool, place) = (shared.pool(home), shared.place(home).place);
        let target = |cpu: Cpu, word: Rank| {
            let availability = Availability::from_word(word);
            let gain = shared.gain(task, cpu, availability, None)?;
            Some(Target {
                cpu,
                availability,
                gain,
            })
        };
        let mut best = None;
        if !self.tried.contains(&place) {
            best = target(home, pool.available.get(place));
            if best.is_some_and(|best| matches!(best.availability, Availability::Idle(_))) {
                self.steps.examined(0, 1);
                return best;
            }
        }
        let (offer, words) = match shared.may_run(task, home, &self.tried) {
            Some(places) => pool.available.best_of(&places),
            None => pool.available.best_except(&self.tried),
        };
        self.steps.examined(0, 1 + words);
        let other = offer.and_then(|offer| target(pool.cpus[offer.place as usize], offer.value));
        match (best, other) {
            (Some(at_home), Some(other)) if other.gain <= at_home.gain => best,
            (_, None) => best,
            _ => other,
        }
    }

    /// The queue of a CPU that seemed ready is held.
    fn verify<R: Ranking>(&mut self, shared: &RunQueues<R>, held: &mut impl Held, cpu: Cpu) {
        let lock = shared.queue_of(cpu);
        let queue = held.queue(lock);
        let availability = shared.availability(queue, cpu);
        let ready = |task: &&Task| shared.gain(task, cpu, availability, None).is_some();
        if self.woken.as_ref().filter(ready).is_none() {
            self.tried.push(shared.place(cpu).place);
            self.go_on(Step::Unlock(lock), Phase::Choose);
            return;
        }
        queue.cpu_mut(cpu).must_decide = true;
        if !matches!(availability, Availability::Idle(_)) {
            // Another may be idle by now.
            self.waiting = self.woken.clone();
        }
        self.insert(shared, queue, cpu);
        self.steps.push(Step::Unlock(lock));
        self.tell(Some(cpu));
        self.has_told = true;
        self.phase = Phase::Tell;
    }

    /// Puts who woke into the queue of a CPU.
    fn insert<R: Ranking>(&mut self, shared: &RunQueues<R>, queue: &mut Queue, cpu: Cpu) {
        if let Some(task) = self.woken.take() {
            let (tasks, words) = shared.insert(queue, cpu, task, self.as_of);
            self.steps.examined(tasks, words);
        }
    }

    /// It waits where it ran last. A CPU may have been published as idle
    /// meanwhile, see `board.rs`.
    fn wait<R: Ranking>(&mut self, shared: &RunQueues<R>, held: &mut impl Held, home: Cpu) {
        let lock = shared.queue_of(home);
        self.waiting = self.woken.clone();
        self.tried.clear();
        self.insert(shared, held.queue(lock), home);
        self.go_on(Step::Unlock(lock), Phase::Tell);
    }

    /// It waits there, and is looked for from there.
    fn put<R: Ranking>(&mut self, shared: &RunQueues<R>, held: &mut impl Held, cpu: Cpu) {
        let at_home = |task: &Task| Task {
            cpu,
            ..task.clone()
        };
        self.waiting = self.woken.as_ref().map(at_home);
        let lock = shared.queue_of(cpu);
        self.insert(shared, held.queue(lock), cpu);
        self.go_on(Step::Unlock(lock), Phase::Tell);
    }

    fn place_real_time<R: Ranking>(
        &mut self,
        shared: &RunQueues<R>,
        held: &mut impl Held,
        home: Cpu,
    ) {
        let lock = shared.real_time_queue(home);
        if let Some(task) = self.woken.take() {
            self.waiting = Some(task.clone());
            let rank = shared.ranking.rank(&task);
            let queue = held.queue(lock);
            queue.insert_real_time(task, AmongEquals::First);
            shared.pool(home).real_time_arrives(rank);
        }
        self.go_on(Step::Unlock(lock), Phase::Tell);
    }

    fn place_displaced(&mut self, held: &mut impl Held, displaced: Displaced) {
        let queue = held.queue(displaced.lock);
        let slot = queue.still_waits(displaced);
        self.waiting = slot.map(|slot| queue.task(slot).clone());
        self.go_on(Step::Unlock(displaced.lock), Phase::Tell);
    }

    /// Tells an idle CPU, if there is one where the task may run, else, unless
    /// a CPU has been told, who runs the task that it would gain most on.
    fn tell_somebody<R: Ranking>(&mut self, shared: &RunQueues<R>) {
        let Some(task) = self.waiting.take() else {
            self.phase = Phase::End;
            return;
        };
        let target = match self.has_told {
            true => None,
            false => self.best_published(shared, &task),
        };
        let is_idle = |target: &Target| matches!(target.availability, Availability::Idle(_));
        let mut idle = target.filter(is_idle).map(|target| target.cpu);
        let pool = shared.pool(shared.home(&task));
        if idle.is_none() && (self.has_told || pool.available.may_miss()) {
            let (best, words) = match shared.may_run(&task, shared.home(&task), &[]) {
                Some(places) => pool.available.best_of_above_bar(&places),
                None => pool.available.best_above_bar(|_| true),
            };
            self.steps.examined(0, words);
            idle = best.map(|best| pool.cpus[best.place as usize]);
        }
        match idle {
            Some(cpu) => self.go_on(Step::Lock(shared.queue_of(cpu)), Phase::Rouse(cpu)),
            None => self.tell(target.map(|target| target.cpu)),
        }
        self.waiting = Some(task);
    }

    /// The queue of a CPU that seemed idle is held.
    fn rouse<R: Ranking>(&mut self, shared: &RunQueues<R>, held: &mut impl Held, cpu: Cpu) {
        let lock = shared.queue_of(cpu);
        let roused = shared.rouse(held.queue(lock), cpu);
        self.steps.examined(0, roused.unwrap_or(0));
        self.go_on(Step::Unlock(lock), Phase::Tell);
        if roused.is_some() {
            self.tell(Some(cpu));
        }
    }
}

impl Queue {
    /// Where a task waits that was displaced; it may be gone or run by now.
    fn still_waits(&self, displaced: Displaced) -> Option<Slot> {
        let task = self.get(displaced.slot)?;
        let waits = task.index == displaced.task && !self.runs(displaced.slot);
        waits.then_some(displaced.slot)
    }
}

impl<R: Ranking> RunQueues<R> {
    /// A blocked task becomes runnable in the pool of its home. Returns that,
    /// and the clock there as of which it does.
    fn enter(&self, task: &mut Task) -> (Cpu, u64) {
        let home = self.home(task);
        let clock = self.pool(task.cpu).clock();
        self.ranking.enter(task, clock);
        if self.place(home).pool == self.place(task.cpu).pool {
            return (home, clock);
        }
        (home, self.change_pool(task, task.cpu, home))
    }

    /// A task in no queue goes from the pool of one CPU to that of another.
    /// Returns the clock there as of which it does.
    pub(super) fn change_pool(&self, task: &mut Task, from: Cpu, to: Cpu) -> u64 {
        self.ranking.leave(task, self.pool(from).clock());
        let clock = self.pool(to).clock();
        task.recalculations = clock;
        self.ranking.enter(task, clock);
        clock
    }
}

/// The CPU that a task in the only queue should run on.
fn best_cpu<R: Ranking>(shared: &RunQueues<R>, queue: &Queue, task: &Task) -> Option<Cpu> {
    let home = shared.home(task);
    let gain = |cpu: Cpu| {
        let availability = shared.availability(queue, cpu);
        let gain = shared.gain(task, cpu, availability, queue.cpu(cpu).mm)?;
        Some((gain, availability))
    };
    let at_home = gain(home);
    if let Some((_, Availability::Idle(_))) = at_home {
        return Some(home);
    }
    let mut best = at_home.map(|(gain, _)| (gain, home));
    for cpu in (0..shared.cpus()).map(Cpu) {
        if let Some((gain, _)) = gain(cpu)
            && best.is_none_or(|(least, _)| gain > least)
        {
            best = Some((gain, cpu));
        }
    }
    best.map(|(_, cpu)| cpu)
}

impl<R: Ranking> Decision<R> for Place {
    fn step(&mut self, shared: &RunQueues<R>, held: &mut impl Held, granted: bool) -> Step {
        loop {
            if let Some(step) = self.steps.pop() {
                return step;
            }
            match self.phase {
                Phase::Start => self.start(shared),
                Phase::Single => self.place_in_single(shared, held),
                Phase::Choose => self.choose(shared),
                Phase::Verify(cpu) if granted => self.verify(shared, held, cpu),
                Phase::Verify(cpu) => {
                    self.tried.push(shared.place(cpu).place);
                    self.phase = Phase::Choose;
                }
                Phase::Wait(cpu) => self.wait(shared, held, cpu),
                Phase::Put(cpu) => self.put(shared, held, cpu),
                Phase::RealTime(home) => self.place_real_time(shared, held, home),
                Phase::Displaced(displaced) => self.place_displaced(held, displaced),
                Phase::Tell => self.tell_somebody(shared),
                Phase::Rouse(cpu) => self.rouse(shared, held, cpu),
                Phase::End => return Step::Done,
            }
        }
    }
}
