//! Linux's own reservation of CPU time, `SCHED_DEADLINE` (sched(7)).

use std::io;

use nix::libc;
use serde::Serialize;

/// So much CPU time of each period for one thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct DeadlineReservation {
    /// CPU time of each period.
    pub time_ns: u64,
    /// The period, whose end is the deadline.
    pub period_ns: u64,
}

impl DeadlineReservation {
    /// Gives the calling thread the reservation.
    ///
    /// # Errors
    /// The kernel's refusal: no privilege, an affinity of fewer CPUs than there are, or too little
    /// time left.
    pub fn take(self) -> io::Result<()> {
        let attributes = libc::sched_attr {
            size: size_of::<libc::sched_attr>() as u32,
            sched_policy: libc::SCHED_DEADLINE as u32,
            sched_flags: 0,
            sched_nice: 0,
            sched_priority: 0,
            sched_runtime: self.time_ns,
            sched_deadline: self.period_ns,
            sched_period: self.period_ns,
        };
        // SAFETY: `attributes` outlives the call, has the size that it states and is only read; 0 is
        // this thread.
        match unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0u32) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
