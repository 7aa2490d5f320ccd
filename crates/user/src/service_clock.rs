//! The clock by which clients are due CPU time: it passes as fast as clients are served.
//!
//! A client's due is its part of what the machine gives. While programs without a client, or
//! another guest of the host, take a half of a CPU, a second of its clients lasts two: leads
//! (1999; [`prorata_core::hybrid`]) would otherwise drain faster than clients are served.
//! While clients leave CPUs unused, nothing is taken from them, and the clock is the monotonic one.

/// The clock, which never runs ahead of the monotonic one.
#[derive(Default, Debug)]
pub(crate) struct ServiceClock {
    now_ns: u64,
    /// The monotonic clock when it was read last.
    read_ns: Option<u64>,
    /// Service of all CPUs for which the clock has not passed yet: CPU clocks are up to a tick late.
    owed_ns: u64,
}

/// Service that is made up for later, for each CPU.
const MOST_OWED_NS: u64 = 20_000_000;

impl ServiceClock {
    /// The time now. Clients were served for so long since the last call, and could use all CPUs
    /// or not.
    pub(crate) fn advance(
        &mut self,
        monotonic_ns: u64,
        served_ns: u64,
        cpus: u32,
        used_all: bool,
    ) -> u64 {
        let before_ns = self.read_ns.replace(monotonic_ns);
        let passed_ns = monotonic_ns.saturating_sub(before_ns.unwrap_or(monotonic_ns));
        let cpus = u64::from(cpus.max(1));
        let step_ns = match used_all {
            true => {
                self.owed_ns += served_ns;
                let step_ns = passed_ns.min(self.owed_ns / cpus);
                let left_ns = self.owed_ns - step_ns * cpus;
                self.owed_ns = left_ns.min(MOST_OWED_NS * cpus);
                step_ns
            }
            false => {
                self.owed_ns = 0;
                passed_ns
            }
        };
        self.now_ns += step_ns;
        self.now_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_served_machine_has_the_time_of_the_clock() {
        let mut clock = ServiceClock::default();
        assert_eq!(clock.advance(1_000, 0, 2, true), 0, "it begins at zero");
        assert_eq!(clock.advance(1_100, 200, 2, true), 100);
        // What was seen too late is made up for.
        assert_eq!(clock.advance(1_200, 150, 2, true), 175);
        assert_eq!(clock.advance(1_300, 250, 2, true), 275);
        assert_eq!(clock.advance(1_400, 250, 2, true), 375);
        assert_eq!(clock.advance(1_500, 150, 2, true), 475);
    }

    #[test]
    fn load_outside_slows_the_clock_and_idle_cpus_do_not() {
        let mut clock = ServiceClock::default();
        clock.advance(0, 0, 1, true);
        assert_eq!(clock.advance(100, 25, 1, true), 25);
        assert_eq!(clock.advance(200, 10, 1, false), 125);
        assert_eq!(clock.advance(300, 0, 1, true), 125);
    }

    #[test]
    fn little_service_is_made_up_for_and_no_more() {
        let mut clock = ServiceClock::default();
        clock.advance(0, 0, 1, true);
        assert_eq!(clock.advance(1, 3 * MOST_OWED_NS, 1, true), 1);
        let later_ns = 10 * MOST_OWED_NS;
        assert_eq!(clock.advance(later_ns, 0, 1, true), 1 + MOST_OWED_NS);
    }
}
