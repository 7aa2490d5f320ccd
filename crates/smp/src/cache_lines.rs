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

#[cfg(test)]
mod tests {
    use super::*;

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
