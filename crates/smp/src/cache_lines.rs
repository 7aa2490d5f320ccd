//! Cache lines that several CPUs write to, and whose cache has them.

/// Lines in sets, such as the tasks of a queue or the words of a pool. A CPU waits
/// for a line that another CPU wrote last.
///
/// The lines are counted, not followed one by one. Of the lines of a set that a
/// CPU reads, the same part comes from elsewhere as other CPUs have written
/// there since its last look.
#[derive(Debug)]
pub(crate) struct CacheLines {
    cpus: usize,
    /// By set.
    writes: Vec<u64>,
    /// By set and CPU: the writes that the CPU has seen, or has made.
    seen: Vec<u64>,
}

impl CacheLines {
    pub(crate) fn new(sets: usize, cpus: u32) -> CacheLines {
        let cpus = cpus as usize;
        CacheLines {
            cpus,
            writes: vec![0; sets],
            seen: vec![0; sets * cpus],
        }
    }

    /// A CPU writes so many lines of a set.
    pub(crate) fn wrote(&mut self, set: usize, cpu: u32, lines: u64) {
        self.writes[set] += lines;
        self.seen[set * self.cpus + cpu as usize] += lines;
    }

    /// A CPU reads so many of the `of` lines of a set. Returns how many come from
    /// other CPUs.
    pub(crate) fn read(&mut self, set: usize, cpu: u32, lines: u64, of: u64) -> u64 {
        let of = of.max(1);
        let seen = &mut self.seen[set * self.cpus + cpu as usize];
        let written = (self.writes[set] - *seen).min(of);
        // A CPU that reads a part has seen that part.
        let read = written * lines.min(of) / of;
        *seen = self.writes[set] - (written - read);
        read
    }
}

/// Ways of a second-level cache of a Pentium III Xeon.
const WAYS: u32 = 4;

/// The part of so many tasks that is no longer in a CPU's second-level cache when the CPU examines
/// them one after another, again and again. The cache has room for `cached` tasks, at least one
/// set of them; nothing is lost if `cached` is zero.
///
/// The words that the scheduler examines are at the same place of each 8 KiB, so they share a
/// few sets of the cache, and chance decides which task is in which set. A set with more
/// tasks than ways loses each of them before it is examined again, as the line used least
/// recently makes room. So those tasks are lost that share their set with [`WAYS`] others or
/// more: a Poisson law. (Measured by Yamamura and others, *Speeding Up Kernel Scheduler by
/// Reducing Cache Misses*, USENIX 2002, Freenix.)
pub(crate) fn part_lost(tasks: u64, cached: u32) -> f64 {
    if cached == 0 || tasks <= 1 {
        return 0.0;
    }
    let sets = (cached / WAYS).max(1);
    let others = (tasks - 1) as f64 / f64::from(sets);
    let (mut chance, mut kept) = ((-others).exp(), 0.0);
    for same_set in 1..=WAYS {
        kept += chance;
        chance *= others / f64::from(same_set);
    }
    1.0 - kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_lost_from_sets_that_hold_too_many() {
        let lost = |tasks, cached| (100.0 * part_lost(tasks, cached)).round();
        // Few of 64 tasks in 64 sets of four, and nearly all of 800.
        assert_eq!(
            [lost(64, 256), lost(250, 256), lost(800, 256)],
            [2.0, 54.0, 100.0]
        );
        assert_eq!([lost(0, 256), lost(1, 1), lost(800, 0)], [0.0; 3]);
    }

    /// Tasks thrown into sets, each examined in turn by a cache that keeps the last four.
    #[test]
    fn the_poisson_law_matches_a_cache_that_keeps_the_last_lines() {
        use prorata_core::rng::{SeedableRng, Xoshiro256PlusPlus, below};
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(2001);
        for (tasks, cached) in [(100, 256), (250, 256), (400, 256), (100, 128)] {
            let sets = u64::from(cached / WAYS);
            let runs = 400;
            let mut missed = 0;
            for _ in 0..runs {
                let of: Vec<u64> = (0..tasks).map(|_| below(&mut chance, sets)).collect();
                let mut caches = vec![Vec::new(); sets as usize];
                // The second round finds what the first has left.
                for round in 0..2 {
                    for (task, set) in of.iter().enumerate() {
                        let cache = &mut caches[*set as usize];
                        let place = cache.iter().position(|other| *other == task);
                        missed += u64::from(round == 1 && place.is_none());
                        place.map(|place| cache.remove(place));
                        cache.push(task);
                        if cache.len() > WAYS as usize {
                            cache.remove(0);
                        }
                    }
                }
            }
            let mean = missed as f64 / f64::from(runs);
            let ours = tasks as f64 * part_lost(tasks, cached);
            assert!(
                (mean - ours).abs() < 2.0,
                "{tasks} in {cached}: {mean}, {ours}"
            );
        }
    }

    #[test]
    fn a_line_comes_once_from_another_cpu_that_wrote_it_last() {
        let mut lines = CacheLines::new(2, 3);
        lines.wrote(1, 0, 4);
        assert_eq!(lines.read(1, 0, 10, 10), 0, "its own writes");
        assert_eq!(lines.read(0, 2, 10, 10), 0, "another set");
        assert_eq!(lines.read(1, 2, 10, 10), 4);
        assert_eq!(lines.read(1, 2, 10, 10), 0, "the CPU has them now");
        assert_eq!(
            lines.read(1, 1, 5, 10),
            2,
            "half of the set, half of the four"
        );
        assert_eq!(lines.read(1, 1, 10, 10), 2, "the other half");
    }

    #[test]
    fn no_more_lines_come_than_there_are() {
        let mut lines = CacheLines::new(1, 2);
        lines.wrote(0, 0, 1000);
        assert_eq!(lines.read(0, 1, 50, 8), 8);
        assert_eq!(lines.read(0, 1, 50, 0), 0);
    }
}
