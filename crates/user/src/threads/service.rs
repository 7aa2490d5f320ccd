//! The CPU time that threads use in slots.
//!
//! While all threads of a process are raised, its own clock tells that. A thread that is raised alone
//! has a clock that is up to a tick late in mid-slot, and exact when the thread has lost its CPU.

use super::Threads;
use super::slot::InSlot;
use crate::scheduler;

/// Of one process.
#[derive(Default, Debug)]
pub(super) struct Service {
    /// Up to the last time that threads were lowered.
    received_ns: u64,
    /// The process's clock when all its threads were raised.
    since_ns: Option<u64>,
}

impl InSlot {
    /// Zero if it is not raised, and if it has ended: what it used then counts as used outside.
    fn received_ns(&self) -> u64 {
        let now_ns = self.clock_ns();
        let used_ns = self.since_ns.zip(now_ns);
        used_ns.map_or(0, |(since_ns, now_ns)| now_ns.saturating_sub(since_ns))
    }

    fn clock_ns(&self) -> Option<u64> {
        Some(self.clock.as_ref()?.read()?.ran_ns)
    }
}

impl Threads {
    /// Threads have just been raised or lowered.
    pub(super) fn account_service(&mut self) {
        let has_all = self.in_slot && self.seats.iter().any(|seat| seat.only.is_none());
        let changes = has_all != self.service.since_ns.is_some();
        if changes {
            self.service.received_ns += self.received_since_ns();
            self.service.since_ns = match has_all {
                true => scheduler::cpu_time_ns(self.pid),
                false => None,
            };
        }
        for thread in &mut self.list {
            let Some(slot) = thread.slot.as_mut() else {
                continue;
            };
            if changes {
                slot.since_ns = None;
            }
            let is_alone = slot.is_raised && !has_all;
            if is_alone && slot.since_ns.is_none() {
                slot.since_ns = slot.clock_ns();
            } else if !is_alone && slot.since_ns.is_some() {
                self.service.received_ns += slot.received_ns();
                slot.since_ns = None;
            }
        }
    }

    /// CPU time that the threads have used in slots.
    pub(crate) fn service_in_slots_ns(&self) -> u64 {
        self.service.received_ns + self.received_since_ns()
    }

    /// What they used since they were raised.
    fn received_since_ns(&self) -> u64 {
        match self.service.since_ns {
            Some(since_ns) => {
                let now_ns = scheduler::cpu_time_ns(self.pid);
                now_ns.map_or(0, |now_ns| now_ns.saturating_sub(since_ns))
            }
            None => {
                let slots = self.list.iter().filter_map(|thread| thread.slot.as_ref());
                slots.map(|slot| slot.received_ns()).sum()
            }
        }
    }
}
