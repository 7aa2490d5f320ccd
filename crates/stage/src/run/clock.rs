//! The time of a scenario on a real machine.

use std::ops::Range;
use std::time::Instant;

/// The clock of a run. While a process of the run is runnable, time that other programs
/// take from the shared CPUs does not count. So a run has as many quanta on a busy machine
/// as on a quiet one, and tolerances in quanta hold on both. The clock is never ahead of
/// real time.
#[derive(Debug)]
pub(super) struct Clock {
    begin: Instant,
    cpus: Vec<u32>,
    now_ns: u64,
    /// Time available to the processes. It may run ahead by a tick of a CPU's idle time.
    had_ns: u64,
    last: Reading,
}

#[derive(Clone, Copy, Default, Debug)]
struct Reading {
    real_ns: u64,
    /// Of all CPUs together; nothing if unknown.
    idle_ns: Option<u64>,
    received_ns: u64,
    blocked: bool,
}

impl Clock {
    /// Time begins.
    pub(super) fn new(cpus: &[u32]) -> Clock {
        Clock {
            begin: Instant::now(),
            cpus: cpus.to_vec(),
            now_ns: 0,
            had_ns: 0,
            last: Reading {
                idle_ns: idle_ns(cpus),
                ..Reading::default()
            },
        }
    }

    /// The time now, if all processes together have received so much, and
    /// whether none of them wants to run.
    pub(super) fn look(&mut self, received_ns: u64, blocked: bool) -> u64 {
        let now = Reading {
            real_ns: self.real_ns(),
            idle_ns: idle_ns(&self.cpus),
            received_ns,
            blocked,
        };
        let real_ns = now.real_ns - self.last.real_ns;
        self.had_ns += match (now.idle_ns, self.last.idle_ns) {
            // No process wanted a CPU.
            _ if now.blocked && self.last.blocked => real_ns,
            (Some(idle_ns), Some(idle_before_ns)) => {
                let used_ns = received_ns.saturating_sub(self.last.received_ns);
                let idle_ns = idle_ns.saturating_sub(idle_before_ns);
                (used_ns + idle_ns) / self.cpus.len() as u64
            }
            // Idle time is unknown.
            _ => real_ns,
        };
        self.last = now;
        self.now_ns = self.now_ns.max(self.had_ns.min(now.real_ns));
        self.now_ns
    }

    /// The time of the last look.
    pub(super) fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Real time since the beginning.
    pub(super) fn real_ns(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }
}

/// Length of a clock tick in `/proc/stat` (proc(5): `USER_HZ`, which is 100 on
/// all machines that Linux runs on today).
const TICK_NS: u64 = 10_000_000;

/// For how long these CPUs have been idle since boot, together.
fn idle_ns(cpus: &[u32]) -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    idle_ticks(&stat, cpus).map(|ticks| ticks * TICK_NS)
}

/// Sums up `idle` and `iowait`, the fourth and fifth figure of a CPU's line.
fn idle_ticks(stat: &str, cpus: &[u32]) -> Option<u64> {
    cpu_ticks(stat, cpus, 3..5)
}

/// Sums up these figures of the lines of CPUs in `/proc/stat`, in ticks of 10 ms (proc_stat(5)); `None`
/// if a CPU has no line.
pub fn cpu_ticks(stat: &str, cpus: &[u32], figures: Range<usize>) -> Option<u64> {
    let mut ticks = 0;
    for cpu in cpus {
        let name = format!("cpu{cpu}");
        let mut lines = stat.lines().map(str::split_ascii_whitespace);
        let line = lines.find_map(|mut words| (words.next()? == name).then_some(words))?;
        for figure in line.skip(figures.start).take(figures.len()) {
            ticks += figure.parse::<u64>().ok()?;
        }
    }
    Some(ticks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_that_of_the_shared_cpus() {
        let stat = "cpu  10 2 3 400 50 0 0 0 0 0\ncpu0 1 1 1 100 20 6 7\ncpu1 9 1 2 300 30 6 7\ncpu10 0 0 0 7 0\nintr 5\n";
        assert_eq!(idle_ticks(stat, &[0]), Some(120));
        assert_eq!(idle_ticks(stat, &[0, 1]), Some(450));
        assert_eq!(idle_ticks(stat, &[10]), Some(7));
        assert_eq!(idle_ticks(stat, &[2]), None);
        assert_eq!(idle_ticks("", &[0]), None);
    }

    #[test]
    fn time_is_what_processes_and_idle_cpus_had_but_never_more_than_passed() {
        let mut clock = Clock::new(&[u32::MAX]);
        // Nothing is known of such a CPU: real time.
        std::thread::sleep(std::time::Duration::from_millis(2));
        let now_ns = clock.look(0, false);
        assert!((2_000_000..=clock.real_ns()).contains(&now_ns));
        let mut clock = Clock::new(&crate::own_cpus().expect("readable")[..1]);
        assert!(clock.look(u64::MAX / 4, false) <= clock.real_ns());
        let before_ns = clock.now_ns();
        assert!(clock.look(0, false) >= before_ns, "it never goes back");
    }

    #[test]
    fn time_counts_while_all_processes_are_blocked() {
        let mut clock = Clock::new(&[0]);
        clock.look(0, true);
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(clock.look(0, true) >= 20_000_000);
    }
}
