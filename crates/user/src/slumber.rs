//! Processes that slumber: of a client with many processes, those that have slept for some time.
//!
//! A user has a hundred processes, of which a few run. A slumbering process costs next to nothing:
//! it is sampled in turn, and it is neither looked at, nor demoted or bound. A sample shows that it
//! has woken. Then it is treated like the others, and its client is charged for all that it used
//! meanwhile.

use crate::client::Client;
use crate::process::Process;

/// In clients with more processes than this, some may slumber.
const CROWD: usize = 64;

/// A process slumbers after so many samples in a row that show no use, while nothing held it down.
const SLUMBERS_AFTER: u32 = 25;

/// Each sample looks after one of so many parts of the slumbering processes.
const PARTS: usize = 16;

/// So many processes of a crowd are reviewed at once.
const REVIEWED_OF_CROWD: usize = 16;

impl Process {
    /// Whether it slumbers, and nothing about it is to be undone.
    pub(crate) fn is_left_in_peace(&self) -> bool {
        self.slumbers && !self.is_touched()
    }

    /// Notes whether it slumbers after it was sampled. Returns whether it has woken.
    fn note_rest(&mut self, used_ns: u64, is_in_crowd: bool) -> bool {
        if used_ns > 0 || self.gone {
            self.rested = 0;
        } else if !self.is_held_down() {
            self.rested = self.rested.saturating_add(1);
        }
        let may_slumber = is_in_crowd && self.rested >= SLUMBERS_AFTER && !self.is_touched();
        let slumbers = may_slumber && (self.slumbers || self.sleeps());
        std::mem::replace(&mut self.slumbers, slumbers) && !slumbers
    }

    /// Whether none of its threads is runnable. One that waits for a CPU among many others shows no
    /// use, too.
    fn sleeps(&mut self) -> bool {
        let Ok(stat) = self.look() else {
            return false;
        };
        match stat.threads {
            0 | 1 => !stat.is_runnable() && !stat.has_ended(),
            _ => !self.threads.is_stale() && self.threads.runnable(1) == 0,
        }
    }
}

impl Client {
    /// Samples its processes, of the slumbering ones some in turn. Returns the CPU time that they
    /// used, and whether any is gone.
    pub(crate) fn sample_processes(&mut self) -> (u64, bool) {
        let is_crowd = self.processes.len() > CROWD;
        self.slumber_part = (self.slumber_part + 1) % PARTS;
        let (mut used_ns, mut any_gone) = (0, false);
        for (index, process) in self.processes.iter_mut().enumerate() {
            if process.slumbers && index % PARTS != self.slumber_part {
                continue;
            }
            let used_by_it_ns = process.sample();
            used_ns += used_by_it_ns;
            any_gone |= process.gone;
            self.unsettled |= process.note_rest(used_by_it_ns, is_crowd);
        }
        (used_ns, any_gone)
    }

    /// The processes to be reviewed now: all, or of a crowd the next ones.
    pub(crate) fn next_to_review(&mut self) -> std::ops::Range<usize> {
        let count = self.processes.len();
        if count <= CROWD {
            return 0..count;
        }
        let from = self.review_from % count;
        let to = (from + REVIEWED_OF_CROWD).min(count);
        self.review_from = to;
        from..to
    }
}
