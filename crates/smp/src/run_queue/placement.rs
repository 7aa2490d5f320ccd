//! `reschedule_idle()`: a CPU for a task that could run (2001, 2 and 4).
//!
//! The task goes to the CPU where it ran last, if that CPU idles; else to the
//! CPU idle longest; else to the CPU whose task it beats by most, if that is
//! worth a preemption. Otherwise it waits where it ran last, and no CPU is
//! told. Of equals: the CPU where it ran last, then the lowest number.
//!
//! Where each CPU has a queue, a waking task goes into the queue of the CPU that
//! is told. The decision first verifies under the lock of that queue what it
//! read about the CPU. A task that is in a queue already stays there: a CPU
//! that is told finds it among the offers. An idle CPU is told under the lock
//! of its queue, so two waiting tasks do not tell the same CPU.
//!
//! A task may wake before it has blocked: Linux 2.4 says that a task sleeps before it calls
//! `schedule()`. The lock of its queue decides. If `schedule()` has the lock first, the task
//! has left. Else the task stays (`try_to_wake_up()`), and no CPU is looked for. The longer
//! CPUs wait for the lock, the more tasks stay.
//!
//! A waking task that is refused twice waits where it ran last: a lock was held,
//! or a CPU was no longer what it seemed. From there it tells an idle CPU. That
//! has no limit: a CPU that no longer idles is passed over, as often as it
//! takes. Giving up could strand the task beside an idle CPU. Each time another
//! decision has told that CPU or the CPU has found work, so all make progress.

use super::availability::Availability;
use super::balance::Moving;
use super::decision::{Decision, DecisionStep, Held, LockIndex, MOST_REFUSALS, PendingSteps};
use super::goodness::Rank;
use super::layout::RunQueues;
use super::queue::{Queue, QueueHandle};
use super::task::{Cpu, Task, TaskIndex};

/// A task that another task displaced and that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Displaced {
    pub task: TaskIndex,
    pub(super) lock: LockIndex,
    pub(super) handle: QueueHandle,
}

/// A task that could run looks for a CPU.
#[derive(Debug)]
pub struct Placement {
    /// The task that woke, until it is in a queue.
    woken: Option<Task>,
    displaced: Option<Displaced>,
    /// The task that wakes and was about to block, and its CPU, until it is found in the queue
    /// or outside.
    leaving: Option<(TaskIndex, Cpu)>,
    /// The task in a queue, as it was when it began to wait there.
    waiting: Option<Task>,
    /// A busy CPU was told: only an idle one is to be told, too.
    has_told: bool,
    phase: Phase,
    steps: PendingSteps,
    /// The recalculations that the task has been through.
    as_of: u64,
    /// CPUs, by their place in the pool, that seemed ready and were not, or
    /// whose lock was held: at most [`MOST_REFUSALS`].
    tried: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Start,
    /// The queue is held in which a task is that is about to block.
    Leaving,
    /// One queue for all CPUs is held.
    Single,
    /// Among queues: the task is in no queue yet, nothing is held.
    Choose,
    /// A lock on the queue of this CPU was tried.
    Verify(Cpu),
    /// The queue of this CPU is held, where the task waits in any case.
    Wait(Cpu),
    /// The queue is held in which the task was displaced.
    Displaced(Displaced),
    /// The task waits in a queue, nothing is held.
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

impl Placement {
    /// A task that was blocked, or is new, can run.
    pub fn woken(task: Task) -> Self {
        Self::new(Some(task), None)
    }

    /// A task wakes that is about to block, or that its CPU has not handed over yet.
    pub fn leaving(task: TaskIndex, cpu: Cpu) -> Self {
        let mut placement = Self::new(None, None);
        placement.leaving = Some((task, cpu));
        placement
    }

    /// The task that wakes, after [`DecisionStep::Done`], if it had left its queue and was
    /// not handed over yet. It is to be woken again.
    pub fn missed(&self) -> Option<(TaskIndex, Cpu)> {
        self.leaving
    }

    /// A task that ran could go on, but another was better on that CPU.
    pub fn displaced(displaced: Displaced) -> Self {
        Self::new(None, Some(displaced))
    }

    /// A task comes from another pool, and waits where the taker wants it.
    pub fn moved(moving: Moving) -> Self {
        let mut placement = Self::new(Some(moving.task), None);
        placement.as_of = moving.as_of;
        // There are pools, so each CPU has a queue.
        placement.go_on(
            DecisionStep::Lock(LockIndex(moving.to.0)),
            Phase::Wait(moving.to),
        );
        placement
    }

    fn new(woken: Option<Task>, displaced: Option<Displaced>) -> Self {
        Self {
            woken,
            displaced,
            leaving: None,
            waiting: None,
            has_told: false,
            phase: Phase::Start,
            steps: PendingSteps::NONE,
            as_of: 0,
            tried: Vec::new(),
        }
    }

    fn start(&mut self, shared: &RunQueues) {
        if let Some((_, cpu)) = self.leaving {
            self.go_on(DecisionStep::Lock(shared.queue_of(cpu)), Phase::Leaving);
            return;
        }
        match (shared.single, self.displaced) {
            (Some(_), _) => self.go_on(DecisionStep::Lock(LockIndex(0)), Phase::Single),
            (None, Some(displaced)) => {
                self.go_on(
                    DecisionStep::Lock(displaced.lock),
                    Phase::Displaced(displaced),
                );
            }
            (None, None) => {
                self.as_of = self.enter(shared);
                self.phase = Phase::Choose;
            }
        }
    }

    /// The queue of a task is held that was about to block.
    fn recall(&mut self, shared: &RunQueues, held: &mut impl Held) {
        let Some((task, cpu)) = self.leaving.take() else {
            self.phase = Phase::End;
            return;
        };
        let lock = shared.queue_of(cpu);
        if held.queue(lock).recall(cpu, task) {
            self.go_on(DecisionStep::Unlock(lock), Phase::End);
            return;
        }
        self.woken = held.take_blocked(task);
        match (self.woken, shared.single) {
            (None, _) => {
                self.leaving = Some((task, cpu));
                self.go_on(DecisionStep::Unlock(lock), Phase::End);
            }
            (Some(_), Some(_)) => self.phase = Phase::Single,
            (Some(_), None) => self.go_on(DecisionStep::Unlock(lock), Phase::Start),
        }
    }

    /// The task that wakes makes up for the recalculations during its sleep.
    /// Returns the clock as of which it has.
    fn enter(&mut self, shared: &RunQueues) -> u64 {
        self.woken.as_mut().map_or(0, |task| {
            let clock = shared.clock(task.cpu);
            task.recalculate(clock.saturating_sub(task.recalculations));
            clock
        })
    }

    fn go_on(&mut self, step: DecisionStep, phase: Phase) {
        self.steps.push(step);
        self.phase = phase;
    }

    /// The only queue is held: everything is known.
    fn place_in_single(&mut self, shared: &RunQueues, held: &mut impl Held) {
        self.enter(shared);
        let queue = held.queue(LockIndex(0));
        let handle = match (self.woken.take(), self.displaced) {
            (Some(task), _) => Some(queue.insert(task)),
            (None, displaced) => displaced.and_then(|displaced| queue.still_waits(displaced)),
        };
        let target = handle.and_then(|handle| best_cpu(shared, queue, queue.task(handle)));
        if let Some(cpu) = target {
            queue.cpu_mut(cpu).must_decide = true;
        }
        self.steps.examined(0, shared.cpus());
        self.steps.push(DecisionStep::Unlock(LockIndex(0)));
        self.tell(target);
    }

    fn tell(&mut self, target: Option<Cpu>) {
        if let Some(cpu) = target {
            self.steps.push(DecisionStep::Interrupt(cpu));
        }
        self.phase = Phase::End;
    }

    /// Chooses by what is published.
    fn choose(&mut self, shared: &RunQueues) {
        let Some(task) = self.woken else {
            self.phase = Phase::End;
            return;
        };
        let target = match (self.tried.len() as u32) < MOST_REFUSALS {
            true => self.best_published(shared, &task),
            false => None,
        };
        match target {
            Some(Target { cpu, .. }) => {
                self.go_on(
                    DecisionStep::TryLock(shared.queue_of(cpu)),
                    Phase::Verify(cpu),
                );
            }
            None => {
                let home = task.cpu;
                self.go_on(DecisionStep::Lock(shared.queue_of(home)), Phase::Wait(home));
            }
        }
    }

    fn best_published(&mut self, shared: &RunQueues, task: &Task) -> Option<Target> {
        let home = task.cpu;
        let (pool, place) = (shared.pool(home), shared.position(home).place);
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
            if best.is_some_and(|best| best.availability.is_idle()) {
                self.steps.examined(0, 1);
                return best;
            }
        }
        let (offer, words) = pool.available.best_except(&self.tried);
        self.steps.examined(0, 1 + words);
        let other = offer.and_then(|offer| target(pool.cpus[offer.place as usize], offer.value));
        match (best, other) {
            (Some(at_home), Some(other)) if other.gain <= at_home.gain => best,
            (_, None) => best,
            _ => other,
        }
    }

    /// The queue of a CPU that seemed ready is held.
    fn verify(&mut self, shared: &mut RunQueues, held: &mut impl Held, cpu: Cpu) {
        let lock = shared.queue_of(cpu);
        let queue = held.queue(lock);
        let availability = shared.availability(queue, cpu);
        let ready = |task: &Task| shared.gain(task, cpu, availability, None).is_some();
        if !self.woken.as_ref().is_some_and(ready) {
            self.tried.push(shared.position(cpu).place);
            self.go_on(DecisionStep::Unlock(lock), Phase::Choose);
            return;
        }
        queue.cpu_mut(cpu).must_decide = true;
        if !availability.is_idle() {
            // Another CPU may be idle by now.
            self.waiting = self.woken;
        }
        self.insert(shared, queue, cpu);
        self.steps.push(DecisionStep::Unlock(lock));
        self.tell(Some(cpu));
        self.has_told = true;
        self.phase = Phase::Tell;
    }

    /// Puts the task that woke into the queue of a CPU.
    fn insert(&mut self, shared: &mut RunQueues, queue: &mut Queue, cpu: Cpu) {
        if let Some(task) = self.woken.take() {
            let (tasks, words) = shared.insert(queue, cpu, task, self.as_of);
            self.steps.examined(tasks, words);
        }
    }

    /// The task waits in the queue of `home`, and looks for a CPU from there. A
    /// CPU may have been published as idle meanwhile, see `offers.rs`.
    fn wait(&mut self, shared: &mut RunQueues, held: &mut impl Held, home: Cpu) {
        let lock = shared.queue_of(home);
        self.waiting = self.woken.map(|task| Task { cpu: home, ..task });
        self.tried.clear();
        self.insert(shared, held.queue(lock), home);
        self.go_on(DecisionStep::Unlock(lock), Phase::Tell);
    }

    fn place_displaced(&mut self, held: &mut impl Held, displaced: Displaced) {
        let queue = held.queue(displaced.lock);
        let handle = queue.still_waits(displaced);
        self.waiting = handle.map(|handle| *queue.task(handle));
        self.go_on(DecisionStep::Unlock(displaced.lock), Phase::Tell);
    }

    /// Tells an idle CPU, if there is one. Else tells the CPU where the task
    /// would gain most, unless a CPU has been told.
    fn tell_a_cpu(&mut self, shared: &RunQueues) {
        let Some(task) = self.waiting else {
            self.phase = Phase::End;
            return;
        };
        let target = match self.has_told {
            true => None,
            false => self.best_published(shared, &task),
        };
        let mut idle = target
            .filter(|target| target.availability.is_idle())
            .map(|target| target.cpu);
        let pool = shared.pool(task.cpu);
        if idle.is_none() && (self.has_told || pool.available.may_miss()) {
            let (best, words) = pool.available.best_above_bar(|_| true);
            self.steps.examined(0, words);
            idle = best.map(|best| pool.cpus[best.place as usize]);
        }
        match idle {
            Some(cpu) => self.go_on(DecisionStep::Lock(shared.queue_of(cpu)), Phase::Rouse(cpu)),
            None => self.tell(target.map(|target| target.cpu)),
        }
    }

    /// The queue of a CPU that seemed idle is held.
    fn rouse(&mut self, shared: &mut RunQueues, held: &mut impl Held, cpu: Cpu) {
        let lock = shared.queue_of(cpu);
        let roused = shared.rouse(held.queue(lock), cpu);
        self.steps.examined(0, roused.unwrap_or(0));
        self.go_on(DecisionStep::Unlock(lock), Phase::Tell);
        if roused.is_some() {
            self.tell(Some(cpu));
        }
    }
}

impl Queue {
    /// The handle of a displaced task, unless it has gone or runs by now.
    fn still_waits(&self, displaced: Displaced) -> Option<QueueHandle> {
        let task = self.get(displaced.handle)?;
        let waits = task.index == displaced.task && !self.runs(displaced.handle);
        waits.then_some(displaced.handle)
    }
}

/// The CPU that a task in the only queue should run on.
fn best_cpu(shared: &RunQueues, queue: &Queue, task: &Task) -> Option<Cpu> {
    let home = task.cpu;
    let gain = |cpu: Cpu| {
        let availability = shared.availability(queue, cpu);
        let gain = shared.gain(task, cpu, availability, queue.cpu(cpu).mm)?;
        Some((gain, availability))
    };
    let at_home = gain(home);
    if at_home.is_some_and(|(_, availability)| availability.is_idle()) {
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

impl Decision for Placement {
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
            match self.phase {
                Phase::Start => self.start(shared),
                Phase::Leaving => self.recall(shared, held),
                Phase::Single => self.place_in_single(shared, held),
                Phase::Choose => self.choose(shared),
                Phase::Verify(cpu) if granted => self.verify(shared, held, cpu),
                Phase::Verify(cpu) => {
                    self.tried.push(shared.position(cpu).place);
                    self.phase = Phase::Choose;
                }
                Phase::Wait(cpu) => self.wait(shared, held, cpu),
                Phase::Displaced(displaced) => self.place_displaced(held, displaced),
                Phase::Tell => self.tell_a_cpu(shared),
                Phase::Rouse(cpu) => self.rouse(shared, held, cpu),
                Phase::End => return DecisionStep::Done,
            }
        }
    }
}
