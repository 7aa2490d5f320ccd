//! What each row of the timetable runs now, as its keeper has it.

use std::sync::Arc;

use prorata_bulletin::{Part, Reader};
use prorata_core::slots::geometry::Tick;
use prorata_core::slots::word::distances;

use super::cast::{Member, Role};
use super::tally::{Tally, add};
use crate::priority::Raise;
use crate::table::Table;
use crate::threads::Seat;

/// Of so many slots one has its time without a CPU measured, which takes some microseconds: it stands
/// for all of them.
const MEASURED_ONE_OF: u64 = 8;

/// The CPU of a row and the slot that it is in.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) index: u32,
    pub(crate) cpu: u32,
    /// The role that has the slot, if anything was raised for it.
    pub(crate) role: Option<Arc<Role>>,
    /// The role that is to have it; differs only while a boundary is kept.
    pub(crate) next: Option<Arc<Role>>,
    /// The role that had it until now; as above.
    former: Option<Arc<Role>>,
    /// The slot is claimed, and the former one was.
    pub(crate) is_claimed: bool,
    pub(crate) was_claimed: bool,
    /// Another role has this slot than the one before.
    pub(crate) is_new: bool,
    /// From each column to the next one that is claimed; zero if none is.
    distances: Vec<u32>,
    /// When the role was raised for this slot, or the slot went on; what it had received in slots
    /// and how long it had waited then.
    raised_ns: u64,
    received_ns: u64,
    waited_ns: Option<u64>,
    /// Slots that began.
    slots: u64,
}

impl Row {
    pub(crate) fn new(index: u32, cpu: u32) -> Self {
        Self {
            index,
            cpu,
            role: None,
            next: None,
            former: None,
            is_claimed: false,
            was_claimed: false,
            is_new: false,
            distances: Vec::new(),
            raised_ns: 0,
            received_ns: 0,
            waited_ns: None,
            slots: 0,
        }
    }

    /// Whether the same part has the slot that begins.
    pub(crate) fn goes_on(&self) -> bool {
        part(&self.role) == part(&self.next)
    }

    /// Gives the role that is to have the slot its CPU. One that has it already gets what it lacks:
    /// threads may have been born.
    pub(crate) fn take_seats(&mut self, raise: Option<Raise>, table: &Table) {
        let members = self.next.iter().flat_map(|role| &role.members);
        for member in members {
            let mut threads = member.threads.lock();
            threads.take_seat(&member.handle, self.seat(member), raise, table);
        }
    }

    /// Takes the CPU from the members of the role that had the slot until now, unless they are to have
    /// it.
    pub(crate) fn leave_seats(&mut self, raise: Option<Raise>, table: &Table) {
        self.former = std::mem::replace(&mut self.role, self.next.take());
        let (Some(former), next) = (&self.former, &self.role) else {
            return;
        };
        if next.as_ref().is_some_and(|next| Arc::ptr_eq(next, former)) {
            return;
        }
        let next = next.as_ref().map_or(&[][..], |next| &next.members);
        for member in &former.members {
            if !next.iter().any(|other| other.is_seated_as(member)) {
                let mut threads = member.threads.lock();
                threads.leave_seat(&member.handle, self.seat(member), raise, table);
            }
        }
    }

    fn seat(&self, member: &Member) -> Seat {
        Seat {
            cpu: self.cpu,
            only: member.only,
        }
    }

    /// Notes which columns are claimed. Cost: a look-up for each column.
    pub(crate) fn read(&mut self, reader: &Reader, tick: Tick) {
        let geometry = reader.geometry();
        let columns = geometry.columns() as usize;
        // Two slots longer: a change may not be in force yet.
        let end = tick + columns as Tick + 2;
        let mut claimed = vec![false; columns];
        let mut next = reader.next_claimed(self.index, tick);
        while let Some(tick) = next.filter(|&tick| tick < end) {
            claimed[geometry.column(tick) as usize] = true;
            next = reader.next_claimed(self.index, tick + 1);
        }
        self.distances = distances(&claimed);
    }

    /// The first tick after this one, which is in that column, at which a slot is claimed;
    /// [`Tick::MAX`] if none is.
    pub(crate) fn next_claimed(&self, tick: Tick, column: u32) -> Tick {
        match self.distances.get(column as usize) {
            None | Some(0) => Tick::MAX,
            Some(&distance) => tick + Tick::from(distance),
        }
    }

    /// Counts what is over. `begin_ns`: a slot begins then. `now_ns`: its role is raised.
    pub(crate) fn count(&mut self, begin_ns: Option<u64>, now_ns: u64, tally: &Tally) {
        let former = self.former.take();
        self.is_new = part(&former) != part(&self.role);
        if begin_ns.is_some() && self.was_claimed {
            self.end_slot(former.as_deref(), now_ns, tally);
        }
        if self.is_new || begin_ns.is_some() {
            self.begin_slot(now_ns);
        }
        if begin_ns.is_some() && self.is_claimed {
            add(&tally.boundaries, 1);
        }
        self.is_new &= self.role.is_some();
    }

    fn end_slot(&self, role: Option<&Role>, now_ns: u64, tally: &Tally) {
        let Some(role) = role else {
            return add(&tally.not_runnable, 1);
        };
        let used_ns = role.service_ns().saturating_sub(self.received_ns);
        let counter = if used_ns > 0 {
            &tally.ran
        } else if role.members.iter().any(|member| member.is_runnable()) {
            &tally.lost
        } else {
            &tally.not_runnable
        };
        add(counter, 1);
        if let Some(before) = self.waited_ns
            && let Some(now) = role.waited_ns()
        {
            // A wait that began before the slot counts wholly where it ends.
            let without_ns = now_ns.saturating_sub(self.raised_ns + used_ns);
            let stolen_ns = without_ns.min(now.saturating_sub(before));
            add(&tally.stolen_ns, stolen_ns * MEASURED_ONE_OF);
        }
    }

    /// Notes how the schedulee stands.
    fn begin_slot(&mut self, now_ns: u64) {
        if let Some(role) = &self.role {
            self.raised_ns = now_ns;
            self.received_ns = role.service_ns();
            self.slots += 1;
            self.waited_ns = match self.slots.is_multiple_of(MEASURED_ONE_OF) {
                true => role.waited_ns(),
                false => None,
            };
        }
    }
}

fn part(role: &Option<Arc<Role>>) -> Option<Part> {
    role.as_ref().map(|role| role.part)
}
