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

/// What each queue of a pool counts for, to be read without its lock. Numbers
/// of one queue that are read while it changes may not belong together.
#[derive(Debug)]
pub(super) struct Loads(Box<[Line]>);

/// On a cache line of its own (two, as they are fetched in pairs).
#[repr(align(128))]
#[derive(Debug)]
struct Line {
    whole: AtomicU64,
    shared: AtomicU64,
    tasks: AtomicU64,
}

impl Loads {
    pub(super) fn new(places: u32) -> Self {
        let line = |_| Line {
            whole: AtomicU64::new(0),
            shared: AtomicU64::new(0),
            tasks: AtomicU64::new(0),
        };
        Self((0..places).map(line).collect())
    }

    pub(super) fn get(&self, place: u32) -> Load {
        let line = &self.0[place as usize];
        Load {
            whole: line.whole.load(Ordering::Relaxed),
            shared: line.shared.load(Ordering::Relaxed),
            tasks: line.tasks.load(Ordering::Relaxed),
        }
    }

    /// To be called under the lock of the queue. Written only when it changes.
    /// Returns the words of other CPUs that were written or compared.
    pub(super) fn set(&self, place: u32, load: Load) -> u32 {
        if self.get(place) != load {
            let line = &self.0[place as usize];
            line.whole.store(load.whole, Ordering::Relaxed);
            line.shared.store(load.shared, Ordering::Relaxed);
            line.tasks.store(load.tasks, Ordering::Relaxed);
        }
        1
    }

    /// Of all together.
    pub(super) fn of_pool(&self) -> PoolLoad {
        let places = 0..self.0.len() as u32;
        let sum = places.fold(Load::default(), |sum, place| {
            let load = self.get(place);
            Load {
                whole: sum.whole + load.whole,
                shared: sum.shared + load.shared,
                tasks: sum.tasks + load.tasks,
            }
        });
        let cpus = self.0.len() as u64;
        PoolLoad { sum, cpus }
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
