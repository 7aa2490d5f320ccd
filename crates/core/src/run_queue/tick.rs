//! The timer's tick: 10 ms of a time slice have passed (2001, 2).

use super::decision::{Decision, Held, Step};
use super::layout::RunQueues;
use super::queue::Queue;
use super::ranking::Ranking;
use super::search::head;
use super::single_pass::SinglePass;
use super::task::Cpu;

/// A tick on a CPU.
#[derive(Debug)]
pub struct Tick {
    cpu: Cpu,
    progress: SinglePass,
    expired: bool,
}

impl Tick {
    /// A tick on `cpu`.
    pub fn new(cpu: Cpu) -> Self {
        Self {
            cpu,
            progress: SinglePass::NEW,
            expired: false,
        }
    }

    /// Whether the time slice of who runs there has ended, so that the CPU
    /// should decide anew; after [`Step::Done`].
    pub fn expired(&self) -> bool {
        self.expired
    }
}

impl<R: Ranking> Decision<R> for Tick {
    fn step(&mut self, shared: &RunQueues<R>, held: &mut impl Held, _granted: bool) -> Step {
        let (cpu, expired) = (self.cpu, &mut self.expired);
        self.progress.step(shared.queue_of(cpu), held, |queue| {
            let examined;
            (*expired, examined) = shared.tick(queue, cpu);
            examined
        })
    }
}

impl<R: Ranking> RunQueues<R> {
    /// Whether the time slice of who runs has ended, and the tasks and words
    /// looked at.
    fn tick(&self, queue: &mut Queue, cpu: Cpu) -> (bool, (u32, u32)) {
        let (ranking, pool) = (&self.ranking, self.pool(cpu));
        let examined = queue.catch_up(ranking, pool.clock());
        let current = queue.cpu(cpu).current;
        let expired =
            current.is_some_and(|slot| queue.change(slot, ranking, |task| ranking.tick(task)));
        let head = match examined {
            0 => pool.offers.get(self.place(cpu).place),
            _ => head(queue, ranking),
        };
        (expired, (examined, self.publish(queue, cpu, head)))
    }
}
