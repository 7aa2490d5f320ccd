//! A CPU at work: it ends a turn, decides, begins the next.

use std::ops::{AddAssign, Sub};

use prorata_core::rng::{SeedableRng as _, Xoshiro256PlusPlus, below};
use prorata_core::run_queue::{Cpu, End, Outcome, Ranking, TaskIndex, Turn};
use serde::Serialize;

use super::lock::Lock;
use super::machine::{Machine, Processor};
use super::tokens::Tokens;

/// Between two ticks (2001, 2).
pub const TICK_NS: u64 = 10_000_000;

/// What a CPU did.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Counts {
    /// Decisions who runs next: `schedule()`.
    pub schedules: u64,
    /// Decisions where a task that wakes or was displaced goes:
    /// `reschedule_idle()`.
    pub placements: u64,
    /// Queues that were passed over in the first.
    pub skipped: u64,
    /// Recalculations of all time slices.
    pub recalculations: u64,
}

impl Counts {
    /// Decisions of both kinds.
    pub fn decisions(&self) -> u64 {
        self.schedules + self.placements
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.schedules += other.schedules;
        self.placements += other.placements;
        self.skipped += other.skipped;
        self.recalculations += other.recalculations;
    }
}

impl Sub for Counts {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            schedules: self.schedules - before.schedules,
            placements: self.placements - before.placements,
            skipped: self.skipped - before.skipped,
            recalculations: self.recalculations - before.recalculations,
        }
    }
}

/// A CPU that runs tokens' tasks, whose turns take no time.
pub struct Worker<'m, R, L: Lock, C> {
    machine: &'m Machine<R, L>,
    tokens: &'m Tokens,
    processor: Processor<'m, R, L>,
    /// Nanoseconds from some beginning; never goes back.
    clock: C,
    chance: Xoshiro256PlusPlus,
    current: Option<TaskIndex>,
    began_ns: u64,
    next_tick_ns: u64,
    counts: Counts,
}

impl<'m, R: Ranking, L: Lock, C: FnMut() -> u64> Worker<'m, R, L, C> {
    /// The CPU, idle, by a clock of the caller's.
    pub fn new(machine: &'m Machine<R, L>, tokens: &'m Tokens, cpu: Cpu, mut clock: C) -> Self {
        let now_ns = clock();
        Self {
            machine,
            tokens,
            processor: machine.processor(cpu),
            clock,
            chance: Xoshiro256PlusPlus::seed_from_u64(cpu.0.into()),
            current: None,
            began_ns: now_ns,
            next_tick_ns: now_ns + TICK_NS,
            counts: Counts::default(),
        }
    }

    /// What it did so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Ends the turn of who runs, as Reflex does: by a yield or, as often, by
    /// passing the token on and blocking. A turn ends by preemption if the CPU
    /// was told to decide or the time slice is over. False, and nothing
    /// happens, if it idles and was told nothing.
    #[inline]
    pub fn turn(&mut self) -> bool {
        let told = self.machine.take_told(self.processor.cpu());
        let Some(task) = self.current else {
            if told {
                self.decide(End::Runnable);
            }
            return told;
        };
        let now_ns = (self.clock)();
        let expired = now_ns >= self.next_tick_ns && self.tick(now_ns);
        let end = if told || expired {
            End::Runnable
        } else if below(&mut self.chance, 2) == 0 {
            End::Yields
        } else {
            self.tokens.pass(task, &mut self.processor);
            self.counts.placements += 1;
            End::Blocks
        };
        self.tokens.ends(task);
        self.decide(end);
        true
    }

    fn tick(&mut self, now_ns: u64) -> bool {
        self.next_tick_ns = now_ns + TICK_NS;
        self.processor.tick()
    }

    fn decide(&mut self, end: End) {
        let now_ns = (self.clock)();
        let used_ns = now_ns - self.began_ns;
        self.began_ns = now_ns;
        let outcome = self.processor.schedule(Turn { end, used_ns }, now_ns);
        self.counts.schedules += 1;
        self.counts.skipped += u64::from(outcome.skipped);
        self.counts.recalculations += u64::from(outcome.recalculated);
        self.settle(outcome);
    }

    fn settle(&mut self, outcome: Outcome) {
        self.current = outcome.next;
        if let Some(next) = outcome.next {
            self.tokens.begins(next);
        }
        if let Some(task) = outcome.blocked {
            self.tokens.block(task, &mut self.processor);
        }
        if let Some(displaced) = outcome.displaced {
            self.processor.displace(displaced);
            self.counts.placements += 1;
        }
    }
}
