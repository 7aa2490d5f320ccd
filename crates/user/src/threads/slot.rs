//! What slots do to threads: a schedulee is bound to the CPU of its slot, and raised above all that
//! is ordinary where that is permitted (2005, 3.1).

use std::io;

use rustix::process::Signal;
use rustix::thread::CpuSet;

use super::{Binding, Heritage, Thread, Threads};
use crate::priority::{self, Raise, SLOT};
use crate::process_id::Handle;
use crate::procfs::SchedStatFile;
use crate::reach::Target;
use crate::scheduler::{self, Policy};
use crate::table::{Journal, Table, flag};

/// Bindings that children may have inherited and that are remembered: one for each set of CPUs that
/// a schedulee has at a time, the oldest forgotten first.
const MOST_BINDINGS: usize = 8;

/// Slots that a process has at a time without an allocation.
const USUAL_SEATS: usize = 16;

/// A thread that is raised, and what it has without that.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Ascent {
    pub(crate) own_policy: Policy,
    pub(crate) own_priority: u32,
    pub(crate) binding: Binding,
}

impl Ascent {
    /// Lowers the thread, which gets its own policy and CPUs back unless it has chosen others since.
    pub(crate) fn undo(&self, target: Target<'_>) -> io::Result<()> {
        self.lower_to(target, self.own_policy, &self.binding.own)
    }

    fn lower_to(&self, target: Target<'_>, policy: Policy, cpus: &CpuSet) -> io::Result<()> {
        let now = priority::of(target.tid)?;
        let was_raised = Raise::is_of_slot(now.0, now.1);
        if was_raised && now != (self.own_policy, self.own_priority) {
            let own_priority = match policy.is_real_time() {
                true => self.own_priority,
                false => 0,
            };
            target.set_priority(now, (policy, own_priority))?;
        } else if now.0.is_fair() && policy.is_idle() && !now.0.is_idle() {
            target.set_policy(now.0, policy)?;
        }
        if *cpus == self.binding.ours {
            return Ok(());
        }
        let now = scheduler::affinity(target.tid)?;
        if now == self.binding.ours {
            target.set_affinity(&now, cpus)?;
        }
        Ok(())
    }
}

/// A slot on a CPU that a process has now, or only one of its threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Seat {
    pub(crate) cpu: u32,
    pub(crate) only: Option<u32>,
}

impl Seat {
    fn is_for(&self, tid: u32) -> bool {
        self.only.is_none_or(|only| only == tid)
    }
}

/// The place for what slots do to a thread. Made before the first slot, so that nothing is allocated
/// at a boundary.
#[derive(Debug)]
pub(super) struct InSlot {
    pub(super) is_raised: bool,
    /// Its clock, if it may be raised without the other threads, and how that stood when it was.
    pub(super) clock: Option<SchedStatFile>,
    pub(super) since_ns: Option<u64>,
    /// As of the last slot, and as in the table.
    ascent: Ascent,
}

impl InSlot {
    fn new() -> Self {
        let nowhere = Binding {
            own: CpuSet::new(),
            ours: CpuSet::new(),
        };
        Self {
            is_raised: false,
            clock: None,
            since_ns: None,
            ascent: Ascent {
                own_policy: Policy::OTHER,
                own_priority: 0,
                binding: nowhere,
            },
        }
    }
}

impl Thread {
    /// What it has without the slot that it is in.
    pub(super) fn raised(&self) -> Option<&Ascent> {
        let slot = self.slot.as_deref().filter(|slot| slot.is_raised)?;
        Some(&slot.ascent)
    }

    /// The CPUs that it may use, or will when its slot ends.
    pub(super) fn cpus_outside_slots(&self) -> io::Result<CpuSet> {
        match self.raised() {
            None => scheduler::affinity(self.tid),
            Some(ascent) => Ok(match &self.binding {
                Some(binding) => binding.ours,
                None => ascent.binding.own,
            }),
        }
    }

    /// What it has outside of its slots, and the CPUs that they give; `None` if it may use none of them.
    fn ascent_to(&self, seats: &[Seat], now: &Now, is_idle: bool) -> Option<Ascent> {
        let own = match &self.binding {
            Some(binding) if binding.ours == now.outside => binding.own,
            _ => now.outside,
        };
        let mut ours = CpuSet::new();
        let of_it = seats.iter().filter(|seat| seat.is_for(self.tid));
        let permitted = of_it.filter(|seat| own.is_set(seat.cpu as usize));
        permitted.for_each(|seat| ours.set(seat.cpu as usize));
        if ours.count() == 0 {
            return None;
        }
        let (own_policy, own_priority) = match self.raised() {
            Some(ascent) => (ascent.own_policy, ascent.own_priority),
            None if now.policy.0.is_idle() && is_idle => (self.own, 0),
            None => now.policy,
        };
        let binding = Binding { own, ours };
        Some(Ascent {
            own_policy,
            own_priority,
            binding,
        })
    }

    /// How it is now. A raised thread is as it was raised.
    fn now(&self, raise: Option<Raise>) -> io::Result<Now> {
        let outside = self.cpus_outside_slots()?;
        match self.raised() {
            None => Ok(Now {
                outside,
                cpus: outside,
                policy: priority::of(self.tid)?,
            }),
            Some(ascent) => Ok(Now {
                outside,
                cpus: ascent.binding.ours,
                policy: match raise {
                    Some(raise) if ascent.is_lower_than_slots() => (raise.policy, SLOT),
                    _ => (ascent.own_policy, ascent.own_priority),
                },
            }),
        }
    }
}

/// How a thread is before it is raised or moved.
struct Now {
    /// The CPUs that it may use outside of slots.
    outside: CpuSet,
    cpus: CpuSet,
    policy: (Policy, u32),
}

impl Ascent {
    fn is_lower_than_slots(&self) -> bool {
        let own = self.own_policy;
        own.is_fair() || own.is_real_time() && self.own_priority < SLOT
    }

    /// Binds and raises the thread, as its record says by now.
    fn ascend(&self, target: Target<'_>, now: &Now, raise: Option<Raise>) -> io::Result<()> {
        if now.cpus != self.binding.ours {
            target.set_affinity(&now.cpus, &self.binding.ours)?;
        }
        let before = now.policy;
        match raise {
            Some(raise) if self.is_lower_than_slots() && before != (raise.policy, SLOT) => {
                target.set_priority(before, (raise.policy, SLOT))
            }
            None if before.0.is_idle() && !self.own_policy.is_idle() => {
                target.set_policy(before.0, self.own_policy)
            }
            _ => Ok(()),
        }
    }
}

impl Threads {
    /// Lets the keeper raise threads from now on, or only one.
    pub(crate) fn cast(&mut self, only: Option<u32>, journal: &mut Journal) {
        self.is_cast = true;
        self.slot_bindings.reserve_exact(MOST_BINDINGS);
        self.seats.reserve(USUAL_SEATS);
        self.prepare(journal);
        let pid = self.pid;
        let thread = self.list.iter_mut().find(|thread| Some(thread.tid) == only);
        if let Some(Thread { tid, slot, .. }) = thread
            && let Some(slot) = slot
        {
            slot.clock
                .get_or_insert_with(|| SchedStatFile::of(pid, *tid));
        }
    }

    pub(crate) fn is_cast(&self) -> bool {
        self.is_cast
    }

    /// Makes the places for what slots do. Threads without a record, since the table is full, are not
    /// raised.
    pub(super) fn prepare(&mut self, journal: &mut Journal) {
        for index in 0..self.list.len() {
            if self.list[index].slot.is_none() && self.record_of(index, journal).is_some() {
                self.list[index].slot = Some(Box::new(InSlot::new()));
                self.has_standing |= !self.seats.is_empty();
            }
        }
    }

    /// Undoes what slots did, and lets the keepers raise nothing any more.
    pub(crate) fn uncast(&mut self, process: &Handle, table: &Table) {
        self.is_cast = false;
        self.seats.clear();
        self.lower_unseated(process, table);
        self.go_on(process, table);
    }

    /// Gives all threads, or only one, a slot on a CPU: binds them to the CPUs of all their slots, as
    /// far as they may use them, and raises them. Does nothing unless the process is cast.
    pub(crate) fn take_seat(
        &mut self,
        process: &Handle,
        seat: Seat,
        raise: Option<Raise>,
        table: &Table,
    ) {
        if !self.is_cast || self.seats.contains(&seat) && !self.has_standing {
            return;
        }
        if !self.seats.contains(&seat) {
            self.seats.push(seat);
        }
        self.settle_in_seats(process, raise, table);
    }

    /// Ends such a slot: lowers the threads that have no other one.
    pub(crate) fn leave_seat(
        &mut self,
        process: &Handle,
        seat: Seat,
        raise: Option<Raise>,
        table: &Table,
    ) {
        let before = self.seats.len();
        self.seats.retain(|other| *other != seat);
        if self.seats.len() < before {
            self.settle_in_seats(process, raise, table);
        }
    }

    fn settle_in_seats(&mut self, process: &Handle, raise: Option<Raise>, table: &Table) {
        self.has_standing = false;
        for index in 0..self.list.len() {
            let thread = &self.list[index];
            if !self.seats.iter().any(|seat| seat.is_for(thread.tid)) {
                continue;
            }
            let ascent = thread.now(raise).ok().and_then(|now| {
                let ascent = thread.ascent_to(&self.seats, &now, self.idle)?;
                Some((ascent, now))
            });
            match ascent {
                Some(ascent) => self.raise_one(index, process, ascent, raise, table),
                None => self.lower_one(index, process, table),
            }
        }
        self.lower_unseated(process, table);
        if self.in_slot && self.stopped {
            let _ = process.signal(Signal::CONT);
        }
    }

    fn raise_one(
        &mut self,
        index: usize,
        process: &Handle,
        (ascent, now): (Ascent, Now),
        raise: Option<Raise>,
        table: &Table,
    ) {
        let thread = &mut self.list[index];
        let (Some(slot), Some(record)) = (&mut thread.slot, &thread.record) else {
            return;
        };
        let is_noted = slot.ascent == ascent;
        if slot.is_raised && is_noted {
            return;
        }
        match is_noted {
            true => table.mark(record, flag::RAISED),
            false => table.keep_ascent(record, &ascent),
        }
        let binding = ascent.binding;
        slot.ascent = ascent.clone();
        slot.is_raised = true;
        if !self.slot_bindings.contains(&binding) {
            if self.slot_bindings.len() == MOST_BINDINGS {
                self.slot_bindings.remove(0);
            }
            self.slot_bindings.push(binding);
        }
        let thread = &self.list[index];
        let target = self.target(process, thread.tid);
        if ascent.ascend(target, &now, raise).is_err() {
            self.lower_one(index, process, table);
        }
    }

    /// Gives all threads without a slot what they have outside of slots.
    pub(crate) fn lower_unseated(&mut self, process: &Handle, table: &Table) {
        for index in 0..self.list.len() {
            let tid = self.list[index].tid;
            if !self.seats.iter().any(|seat| seat.is_for(tid)) {
                self.lower_one(index, process, table);
            }
        }
        let was_in_slot = self.in_slot;
        self.in_slot = self.list.iter().any(|thread| thread.raised().is_some());
        self.account_service();
        if was_in_slot && !self.in_slot && self.stopped {
            let _ = process.signal(Signal::STOP);
        }
    }

    /// What is refused stays noted.
    fn lower_one(&mut self, index: usize, process: &Handle, table: &Table) {
        let thread = &self.list[index];
        let Some(ascent) = thread.raised() else {
            return;
        };
        let own = ascent.own_policy;
        let policy = match self.idle && own.is_fair() {
            true => own.demoted(),
            false => own,
        };
        let cpus = match &thread.binding {
            Some(binding) => binding.ours,
            None => ascent.binding.own,
        };
        let lowered = ascent.lower_to(self.target(process, thread.tid), policy, &cpus);
        let is_gone = |error: &io::Error| error.raw_os_error() == Some(libc::ESRCH);
        if lowered.is_err_and(|error| !is_gone(&error)) {
            return;
        }
        let thread = &mut self.list[index];
        if let Some(slot) = &mut thread.slot {
            slot.is_raised = false;
        }
        if let Some(record) = &thread.record {
            table.unmark(record, flag::RAISED);
        }
    }

    /// Whether any thread is raised.
    pub(crate) fn are_in_slot(&self) -> bool {
        self.in_slot
    }

    /// Notes it if a newly listed thread inherited the policy and priority of a slot. It is lowered
    /// with the others.
    pub(super) fn inherits_raise(
        &mut self,
        index: usize,
        now: Policy,
        heritage: &Heritage,
        journal: &mut Journal,
    ) -> bool {
        let tid = self.list[index].tid;
        let is_raised = now.is_real_time()
            && priority::of(tid).is_ok_and(|(now, priority)| Raise::is_of_slot(now, priority));
        let Some(ours) = is_raised.then(|| scheduler::affinity(tid).ok()).flatten() else {
            return false;
        };
        let inherited = heritage.bindings.iter().find(|b| b.ours == ours);
        let binding = inherited.copied().unwrap_or(Binding { own: ours, ours });
        let ascent = Ascent {
            own_policy: heritage.own,
            own_priority: 0,
            binding,
        };
        let Some(record) = self.record_of(index, journal) else {
            return false;
        };
        let table = journal.table();
        table.keep_ascent(record, &ascent);
        self.list[index].slot = Some(Box::new(InSlot {
            is_raised: true,
            clock: None,
            since_ns: None,
            ascent,
        }));
        self.in_slot = true;
        // Unless it has the slot, too, it is lowered at the next boundary.
        self.has_standing |= !self.seats.is_empty();
        true
    }
}
