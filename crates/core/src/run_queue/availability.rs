//! How available a CPU is for a task that wakes: an idle one more than any that
//! runs something, the one that has been idle longest most of all; of the
//! others whoever runs the lowest goodness (2001, 4).
//!
//! ```text
//!   idle          above IDLE, the higher the longer it has been idle
//!   runs a task   minus its rank, affinity included; never above IDLE
//!   was told to decide anew and has not yet: NOBODY
//! ```
//!
//! A CPU that has been told is not asked a second time (Linux 2.4 may choose
//! one idle CPU for several tasks that wake at once).

use super::layout::RunQueues;
use super::queue::Queue;
use super::ranking::{NOBODY, Rank, Ranking};
use super::task::{Cpu, Task};

const IDLE: Rank = 1 << 62;
/// Times are below this: 73 years.
const LONGEST_NS: u64 = 1 << 61;

/// What a CPU can do for a task that wakes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Availability {
    /// Since then, by the caller's clock.
    Idle(u64),
    /// Runs somebody of this rank, affinity included.
    Runs(Rank),
    Told,
}

impl Availability {
    pub(super) fn word(self) -> Rank {
        match self {
            Self::Idle(since_ns) => IDLE + (LONGEST_NS - since_ns.min(LONGEST_NS - 1)) as Rank,
            Self::Runs(total) => total.saturating_neg().min(IDLE),
            Self::Told => NOBODY,
        }
    }

    pub(super) fn from_word(word: Rank) -> Self {
        match word {
            NOBODY => Self::Told,
            _ if word > IDLE => Self::Idle(LONGEST_NS - (word - IDLE) as u64),
            _ => Self::Runs(-word),
        }
    }
}

impl<R: Ranking> RunQueues<R> {
    /// What a CPU can do, under the lock of its queue.
    pub(super) fn availability(&self, queue: &Queue, cpu: Cpu) -> Availability {
        let state = queue.cpu(cpu);
        match state.current {
            _ if state.must_decide => Availability::Told,
            None => Availability::Idle(state.idle_since_ns),
            Some(slot) => Availability::Runs(self.total_of(queue.task(slot), cpu)),
        }
    }

    /// Rank and affinity of who runs on a CPU.
    fn total_of(&self, task: &Task, cpu: Cpu) -> Rank {
        self.ranking.rank(task) + self.ranking.affinity(task, cpu, Some(task.mm))
    }

    /// Publishes what a CPU can do, under the lock of its queue. Returns the
    /// words looked at. Where one queue serves all CPUs nothing is published.
    pub(super) fn publish_availability(&self, queue: &Queue, cpu: Cpu) -> u32 {
        self.publish(cpu, self.availability(queue, cpu))
    }

    pub(super) fn publish_idle(&self, cpu: Cpu) {
        self.publish(cpu, Availability::Idle(0));
    }

    fn publish(&self, cpu: Cpu, availability: Availability) -> u32 {
        match self.single {
            Some(_) => 0,
            None => {
                let place = self.place(cpu).place;
                self.pool(cpu).available.set(place, availability.word())
            }
        }
    }

    /// What a task of this rank would gain on a CPU; `None` if it is not to be
    /// had. More than any preemption gains on an idle one, most on that which
    /// has been idle longest.
    pub(super) fn gain(
        &self,
        task: &Task,
        cpu: Cpu,
        availability: Availability,
        mm: Option<u32>,
    ) -> Option<Rank> {
        if !task.allowed.contains(cpu) {
            return None;
        }
        match availability {
            Availability::Told => None,
            Availability::Idle(_) => Some(availability.word()),
            Availability::Runs(total) => {
                let ours = self.ranking.rank(task) + self.ranking.affinity(task, cpu, mm);
                let gain = ours.saturating_sub(total);
                self.ranking.preempts(gain).then_some(gain)
            }
        }
    }
}
