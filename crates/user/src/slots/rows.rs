//! What each row of the timetable runs now, as the keeper has it.

use std::sync::Arc;

use super::cast::Role;
use super::tally::{Tally, add};

/// The CPU of a row and the slot that it is in.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) cpu: u32,
    /// The role that has the slot, if anything was raised for it.
    pub(crate) role: Option<Arc<Role>>,
    /// The role that is to have it; differs only while a boundary is kept.
    pub(crate) next: Option<Arc<Role>>,
    /// The slot is claimed.
    pub(crate) is_claimed: bool,
    /// The first tick after the present one that is claimed; `u64::MAX` if none is.
    pub(crate) next_claimed: u64,
    clock_ns: u64,
    waited_ns: Option<u64>,
}

impl Row {
    pub(crate) fn new(cpu: u32) -> Self {
        Self {
            cpu,
            role: None,
            next: None,
            is_claimed: false,
            next_claimed: 0,
            clock_ns: 0,
            waited_ns: None,
        }
    }

    /// Whether the same part has the slot that begins.
    pub(crate) fn goes_on(&self) -> bool {
        let part = |role: &Option<Arc<Role>>| role.as_ref().map(|role| role.part);
        part(&self.role) == part(&self.next)
    }

    /// Counts the slot that ends, before its schedulee is lowered.
    pub(crate) fn end_slot(&mut self, tally: &Tally) {
        if !self.is_claimed {
            return;
        }
        let Some(role) = &self.role else {
            return add(&tally.not_runnable, 1);
        };
        let used_ns = role.clock_ns().saturating_sub(self.clock_ns);
        let counter = if used_ns > 0 {
            &tally.ran
        } else if role.members.iter().any(|member| member.is_runnable()) {
            &tally.lost
        } else {
            &tally.not_runnable
        };
        add(counter, 1);
        if let (Some(before), Some(now)) = (self.waited_ns, role.waited_ns()) {
            add(&tally.stolen_ns, now.saturating_sub(before));
        }
    }

    /// Notes where the schedulee's clocks stand.
    pub(crate) fn begin_slot(&mut self) {
        if let Some(role) = &self.role {
            self.clock_ns = role.clock_ns();
            self.waited_ns = role.waited_ns();
        }
    }
}
