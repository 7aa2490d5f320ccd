//! What queues and pools count for when pools are balanced (2001, 6).
//!
//! ```text
//!   no more tasks than CPUs    tasks a CPU: one more has a CPU for itself
//!   more, which is above that  what a CPU is worth: nobody's tickets being
//!                              worth more than one, the sum of them a CPU
//! ```
//!
//! Who is worth a CPU or more has one for itself, so what a CPU is worth is what
//! the others have on each of the CPUs that are left. By number all have the
//! same, and it is tasks a CPU in either case.

use alloc::boxed::Box;
use core::cmp::Ordering as By;

use super::atomic::{AtomicU64, Ordering};

/// Of a queue, those who run included.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(super) struct Load {
    /// Tasks that are worth a CPU or more.
    pub(super) whole: u64,
    /// What the others count for.
    pub(super) shared: u64,
    /// All tasks.
    pub(super) tasks: u64,
}

impl Load {
    /// One more, which counts for so much; `None` for a whole CPU.
    pub(super) fn add(&mut self, load: Option<u32>) {
        self.tasks += 1;
        match load {
            Some(load) => self.shared += u64::from(load),
            None => self.whole += 1,
        }
    }

    pub(super) fn remove(&mut self, load: Option<u32>) {
        self.tasks -= 1;
        match load {
            Some(load) => self.shared -= u64::from(load),
            None => self.whole -= 1,
        }
    }
}

/// What each queue of a pool counts for, and all together, to be read without
/// their locks. Numbers that are read while they change may not belong together.
///
/// Whoever changes what a queue counts for does so under its lock and adds the
/// difference to the sum. So a part of the sum is at any time what each queue
/// counted for at some time: never less than nothing, and right when all changes
/// are over.
#[derive(Debug)]
pub(super) struct Loads {
    queues: Box<[Line]>,
    sum: Line,
}

/// On a cache line of its own (two, as they are fetched in pairs).
#[repr(align(128))]
#[derive(Debug)]
struct Line {
    whole: AtomicU64,
    shared: AtomicU64,
    tasks: AtomicU64,
}

impl Line {
    fn new() -> Self {
        Self {
            whole: AtomicU64::new(0),
            shared: AtomicU64::new(0),
            tasks: AtomicU64::new(0),
        }
    }

    fn get(&self) -> Load {
        Load {
            whole: self.whole.load(Ordering::Relaxed),
            shared: self.shared.load(Ordering::Relaxed),
            tasks: self.tasks.load(Ordering::Relaxed),
        }
    }

    /// Adds what one queue counts for now, and takes off what it did before.
    /// Only what differs is written.
    fn change(&self, before: Load, after: Load) {
        let add = |part: &AtomicU64, before: u64, after: u64| {
            if before != after {
                part.fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
            }
        };
        add(&self.whole, before.whole, after.whole);
        add(&self.shared, before.shared, after.shared);
        add(&self.tasks, before.tasks, after.tasks);
    }
}

impl Loads {
    pub(super) fn new(places: u32) -> Self {
        Self {
            queues: (0..places).map(|_| Line::new()).collect(),
            sum: Line::new(),
        }
    }

    pub(super) fn get(&self, place: u32) -> Load {
        self.queues[place as usize].get()
    }

    /// To be called under the lock of the queue. Written only when it changes.
    /// Returns the lines of other CPUs that were written or compared.
    pub(super) fn set(&self, place: u32, load: Load) -> u32 {
        let queue = &self.queues[place as usize];
        let before = queue.get();
        if before == load {
            return 1;
        }
        // Nobody else writes to it.
        queue.change(before, load);
        self.sum.change(before, load);
        2
    }

    /// Of all together.
    pub(super) fn of_pool(&self) -> PoolLoad {
        PoolLoad {
            sum: self.sum.get(),
            cpus: self.queues.len() as u64,
        }
    }
}

/// Of a pool of so many CPUs.
#[derive(Clone, Copy, Debug)]
pub(super) struct PoolLoad {
    sum: Load,
    cpus: u64,
}

impl PoolLoad {
    /// Less load a CPU.
    pub(super) fn cmp(self, other: Self) -> By {
        // A fraction that is beyond all if its second part is zero.
        let product = |(of, _): (u64, u64), (_, by): (u64, u64)| u128::from(of) * u128::from(by);
        let by = |a, b| product(a, b).cmp(&product(b, a));
        match [self, other].map(Self::is_crowded) {
            [false, false] => by((self.sum.tasks, self.cpus), (other.sum.tasks, other.cpus)),
            [true, true] => by(self.shared_by(), other.shared_by()),
            [one, another] => one.cmp(&another),
        }
    }

    pub(super) fn is_less(self, other: Self) -> bool {
        self.cmp(other).is_lt()
    }

    /// The same with one task more.
    pub(super) fn with(mut self, load: Option<u32>) -> Self {
        self.sum.add(load);
        self
    }

    fn is_crowded(self) -> bool {
        self.sum.tasks > self.cpus
    }

    /// What those have who share CPUs, and how many these are. At least one in
    /// a pool that is crowded; what was read while others change may say none.
    fn shared_by(self) -> (u64, u64) {
        let cpus = self.cpus.saturating_sub(self.sum.whole);
        (self.sum.shared, cpus)
    }
}
