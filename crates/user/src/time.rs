//! The monotonic clock.

use rustix::time::{ClockId, clock_gettime};

use crate::procfs;

pub(crate) const MILLISECOND_NS: u64 = 1_000_000;
pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// Time since some moment before all processes here began. It stands still
/// while the machine is suspended.
pub(crate) fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * SECOND_NS + now.tv_nsec as u64
}

/// The time in which the kernel tells when processes began: whole ticks of
/// [`procfs::TICK_NS`] since boot, the suspended ones too.
pub(crate) fn ticks_since_boot() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    (now.tv_sec as u64 * SECOND_NS + now.tv_nsec as u64) / procfs::TICK_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_begins_at_the_tick_that_the_kernel_says() {
        let before = ticks_since_boot();
        let mut child = std::process::Command::new("true").spawn().expect("spawns");
        let after = ticks_since_boot();
        let stat = procfs::stat(child.id()).expect("it was not waited for");
        assert!((before..=after).contains(&stat.start_time_ticks));
        child.wait().expect("it ends");
    }
}
