//! What a timetable says of slots, and what became of them.

use crate::observe::Waits;

/// Buckets of lateness: up to 2^32 ns.
#[cfg(any(feature = "bpf", test))]
pub(super) const LATENESS_BUCKETS: usize = 896;

/// Beside a schedulee's number in a word: the claim is a gift of another user.
pub const GIFT: u32 = 1 << 19;

/// What runs in a slot. Times of start are in hundredths of a second since boot, as `/proc` has them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum InSlot {
    /// All tasks of a node.
    Node(u32),
    /// The threads of a process.
    Process {
        /// The process.
        pid: u32,
        /// When it began.
        started: u64,
    },
    /// One thread.
    Thread {
        /// The thread.
        tid: u32,
        /// When it began.
        started: u64,
    },
}

/// What became of the claimed slots of a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowTally {
    /// The CPU.
    pub cpu: u32,
    /// Slots whose beginning the CPU saw.
    pub begun: u64,
    /// Slots that it did not see.
    pub missed: u64,
    /// Slots in which the schedulee ran.
    pub ran: u64,
    /// Slots in which it did not run, nor want to at the end.
    pub idle: u64,
    /// Slots in which it did not run, and wanted to at the end.
    pub lost: u64,
    /// For how long tasks of other classes, and others that had waited too long, ran instead of
    /// schedulees that had begun to run.
    pub stolen_ns: u64,
    /// How late schedulees that waited began to run.
    pub late: Waits,
}

impl RowTally {
    /// So many per cent of the schedulees that waited began to run no later than this; zero if none
    /// did.
    pub fn late_ns(&self, percent: u64) -> u64 {
        self.late.quantile_ns(percent * 10).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_lateness_are_those_of_the_counts() {
        let mut tally = RowTally {
            cpu: 0,
            begun: 100,
            missed: 0,
            ran: 100,
            idle: 0,
            lost: 0,
            stolen_ns: 0,
            late: Waits {
                counts: vec![0; LATENESS_BUCKETS],
                longest_ns: 40,
            },
        };
        assert_eq!(tally.late_ns(99), 0);
        tally.late.counts[3] = 98;
        tally.late.counts[20] = 1;
        tally.late.counts[36] = 1;
        assert_eq!(tally.late_ns(50), 3);
        assert_eq!(tally.late_ns(99), 20);
        assert_eq!(tally.late_ns(100), 36);
    }
}
