//! The monotonic clock.

use rustix::time::{ClockId, clock_gettime};

pub(crate) const MILLISECOND_NS: u64 = 1_000_000;
pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// The time. It stands still while the machine is suspended.
pub(crate) fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * SECOND_NS + now.tv_nsec as u64
}
