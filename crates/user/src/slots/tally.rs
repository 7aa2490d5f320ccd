//! What became of the slots of each row.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::SlotMechanism;
use super::histogram::Histogram;

/// The slots of one row since the table is enforced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowReport {
    /// The row's CPU.
    pub cpu: u32,
    /// Boundaries at which a claimed slot began and that the keeper kept: it woke in that slot.
    pub boundaries: u64,
    /// Claimed slots that the keeper slept through.
    pub missed: u64,
    /// Slots in which the schedulee used CPU time.
    pub ran: u64,
    /// Slots in which it used none and did not wait for a CPU at their end, or could not be raised: it
    /// has ended, is suspended, or is a gift of another user.
    pub not_runnable: u64,
    /// Slots in which it used none and was runnable at their end.
    pub lost: u64,
    /// How late slots began: from the boundary until the schedulee was raised. Slots whose schedulee
    /// has the slot before, too, do not count.
    pub late_p50_ns: u64,
    /// The same, 99 of 100.
    pub late_p99_ns: u64,
    /// The same, the longest.
    pub late_max_ns: u64,
    /// How long schedulees of one thread were without the CPU from the time that they were raised until
    /// the slot's end, as far as they waited for a CPU: for threads of higher classes, for the daemon,
    /// and for other schedulees. In each slot this is the time less the CPU time used, and at most the
    /// growth of the kernel's `run_delay`. One slot in eight is measured, and counts eight times.
    /// Interrupts are not in it, nor slots that are lost whole.
    pub stolen_ns: u64,
}

/// How the timetable is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlotReport {
    /// How schedulees get their CPUs.
    pub mechanism: SlotMechanism,
    /// Row by row.
    pub rows: Vec<RowReport>,
}

/// The counters of one row. The keeper adds, and others read.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) boundaries: AtomicU64,
    pub(crate) missed: AtomicU64,
    pub(crate) ran: AtomicU64,
    pub(crate) not_runnable: AtomicU64,
    pub(crate) lost: AtomicU64,
    pub(crate) late: Histogram,
    pub(crate) stolen_ns: AtomicU64,
}

impl Tally {
    pub(crate) fn new() -> Self {
        Self {
            boundaries: AtomicU64::new(0),
            missed: AtomicU64::new(0),
            ran: AtomicU64::new(0),
            not_runnable: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            late: Histogram::new(),
            stolen_ns: AtomicU64::new(0),
        }
    }

    pub(crate) fn report(&self, cpu: u32) -> RowReport {
        RowReport {
            cpu,
            boundaries: self.boundaries.load(Relaxed),
            missed: self.missed.load(Relaxed),
            ran: self.ran.load(Relaxed),
            not_runnable: self.not_runnable.load(Relaxed),
            lost: self.lost.load(Relaxed),
            late_p50_ns: self.late.percentile(50),
            late_p99_ns: self.late.percentile(99),
            late_max_ns: self.late.max_ns(),
            stolen_ns: self.stolen_ns.load(Relaxed),
        }
    }
}

/// Adds to a counter that only the calling thread changes.
pub(crate) fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Relaxed);
}
