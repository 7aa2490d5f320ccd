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
    /// The role that had it until now; as above.
    pub(crate) former: Option<Arc<Role>>,
    /// The slot is claimed, and the former one was.
    pub(crate) is_claimed: bool,
    pub(crate) was_claimed: bool,
    /// The first tick after the present one that is claimed; `u64::MAX` if none is.
    pub(crate) next_claimed: u64,
    /// When the row was last seen to.
    pub(crate) begun_ns: u64,
    /// When the role was raised for this slot, or the slot went on, and its clocks then.
    raised_ns: u64,
    clock_ns: u64,
    waited_ns: Option<u64>,
}

impl Row {
    pub(crate) fn new(cpu: u32) -> Self {
        Self {
            cpu,
            role: None,
            next: None,
            former: None,
            is_claimed: false,
            was_claimed: false,
            next_claimed: 0,
            begun_ns: 0,
            raised_ns: 0,
            clock_ns: 0,
            waited_ns: None,
        }
    }

    /// Whether the same part has the slot that begins.
    pub(crate) fn goes_on(&self) -> bool {
        let part = |role: &Option<Arc<Role>>| role.as_ref().map(|role| role.part);
        part(&self.role) == part(&self.next)
    }

    /// Counts what is over, after the row's role was raised: that must not wait. `begin_ns`: a slot
    /// began then.
    pub(crate) fn count(&mut self, begin_ns: Option<u64>, tally: &Tally) {
        let former = self.former.take();
        let part = |role: &Option<Arc<Role>>| role.as_ref().map(|role| role.part);
        let is_new = part(&former) != part(&self.role);
        if begin_ns.is_some() && self.was_claimed {
            self.end_slot(former.as_deref(), tally);
        }
        if is_new || begin_ns.is_some() {
            self.begin_slot();
        }
        if let Some(begin_ns) = begin_ns
            && self.is_claimed
        {
            add(&tally.boundaries, 1);
            if is_new && self.role.is_some() {
                tally.late.add(self.begun_ns.saturating_sub(begin_ns));
            }
        }
    }

    fn end_slot(&self, role: Option<&Role>, tally: &Tally) {
        let Some(role) = role else {
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
            // A wait that began before the slot counts wholly where it ends.
            let without_ns = self.begun_ns.saturating_sub(self.raised_ns + used_ns);
            add(&tally.stolen_ns, without_ns.min(now.saturating_sub(before)));
        }
    }

    /// Notes where the schedulee's clocks stand.
    fn begin_slot(&mut self) {
        if let Some(role) = &self.role {
            self.raised_ns = self.begun_ns;
            self.clock_ns = role.clock_ns();
            self.waited_ns = role.waited_ns();
        }
    }
}
