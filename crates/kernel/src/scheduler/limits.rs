//! Limits of CPU time (`bpf/limits.bpf.h`).

use std::collections::{BTreeMap, BTreeSet};

use prorata_core::cpu_limit::CpuLimit;

use super::MOST_LIMITS;
use super::loaded::{Scheduler, check_own, lock};
use crate::KernelError;
use crate::prorata_skeleton::types;

const _: () = assert!(size_of::<types::limit>() == 40);
const _: () = assert!(size_of::<types::limit_request>() == 16);

/// The kernel's table: places from 1 on.
#[derive(Default)]
pub struct Limits {
    places: BTreeMap<u32, u32>,
    /// Places below `most` that are free.
    free: BTreeSet<u32>,
    /// The highest place that was ever used.
    highest: u32,
}

impl Limits {
    /// The place of a node, or the lowest free one.
    fn place(&self, node: u32) -> Option<u32> {
        if let Some(place) = self.places.get(&node) {
            return Some(*place);
        }
        let next = self.highest + 1;
        let next = (next as usize <= MOST_LIMITS).then_some(next);
        self.free.first().copied().or(next)
    }

    fn take(&mut self, node: u32, place: u32) {
        self.free.remove(&place);
        self.highest = self.highest.max(place);
        self.places.insert(node, place);
    }

    fn give_back(&mut self, node: u32) {
        self.free.extend(self.places.remove(&node));
    }
}

impl Scheduler {
    /// Limits the CPU time that the tasks of a node get together, or ends the limit. A removed
    /// node loses its limit.
    ///
    /// # Errors
    ///
    /// If the node does not exist, [`MOST_LIMITS`] others have limits, or the kernel has no
    /// timer for the ends of pauses ([`Scheduler::holds_limits`]).
    pub fn set_limit(&self, node: u32, max: Option<CpuLimit>) -> Result<(), KernelError> {
        let mut rights = lock(&self.rights);
        check_own(&rights.graph, node)?;
        let Some(max) = max else {
            return self.forget_limit(&mut rights.limits, node);
        };
        if !self.holds_limits() {
            return Err(KernelError::NoTimer);
        }
        let place = rights.limits.place(node);
        let place = place.ok_or(KernelError::TooManyLimits)?;
        self.tell_limit(node, place, max.thousandths())?;
        rights.limits.take(node, place);
        Ok(())
    }

    /// Whether this kernel can hold nodes to limits.
    pub fn holds_limits(&self) -> bool {
        self.timed
    }

    /// The node has no limit from now on.
    pub(super) fn forget_limit(&self, limits: &mut Limits, node: u32) -> Result<(), KernelError> {
        if let Some(place) = limits.places.get(&node) {
            self.tell_limit(node, *place, 0)?;
            limits.give_back(node);
        }
        Ok(())
    }

    fn tell_limit(&self, node: u32, place: u32, max: u32) -> Result<(), KernelError> {
        let told = self.ask(|progs| &progs.set_limit, [node, place, max, 0]);
        told.map(|_| ()).map_err(|why| self.refused(&why))
    }
}

/// Whether the kernel has the timer of `bpf/limits.bpf.h`: not under PREEMPT_RT.
pub(super) fn has_timer() -> bool {
    // SAFETY: all bits zero is a name, and the kernel writes one.
    let mut name: libc::utsname = unsafe { std::mem::zeroed() };
    // SAFETY: the name lives.
    if unsafe { libc::uname(&raw mut name) } != 0 {
        return false;
    }
    let version: Vec<u8> = name.version.iter().map(|byte| *byte as u8).collect();
    !version.windows(RT.len()).any(|part| part == RT)
}

const RT: &[u8] = b"PREEMPT_RT";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_places_as_limits_and_none_more() {
        let mut limits = Limits::default();
        for node in 1..=MOST_LIMITS as u32 {
            let place = limits.place(node).unwrap();
            assert_eq!(place, node);
            limits.take(node, place);
        }
        let next = MOST_LIMITS as u32 + 1;
        assert_eq!(limits.place(next), None);
        assert_eq!(limits.place(7), Some(7));
        limits.give_back(9);
        limits.give_back(5);
        assert_eq!(limits.place(next), Some(5));
        limits.take(next, 5);
        assert_eq!(limits.place(5), Some(9));
    }
}
