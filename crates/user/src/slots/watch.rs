//! What a keeper does at each boundary of its rows.
//!
//! ```text
//!   sleep -> [lead] look up the slot, take seats for the schedulee that begins, leave those of the one
//!            that ends, count -> [boundary] sleep: the kernel switches to the schedulee
//! ```
//!
//! Nothing is allocated at a boundary. A schedulee that goes on is left alone.
//!
//! A keeper promises the guardian each of its wakes while anything is raised. A promise that is missed
//! by a slot has the guardian lower what is raised there, and keepers begin anew when they notice.

use std::sync::Arc;

use prorata_bulletin::{Reader, Rows};
use prorata_core::slots::geometry::{Cell, Tick};
use rustix::thread::CpuSet;

use super::cast::{Cast, Role};
use super::lead::Lead;
use super::rows::Row;
use super::tally::add;
use super::{Play, SlotMechanism};
use crate::priority::{self, Raise};
use crate::process::Treatment;
use crate::table::Table;
use crate::time::{MILLISECOND_NS, monotonic_ns};

/// A promise is missed only after so long, however short the slots are.
const SHORTEST_GRACE_NS: u64 = 10 * MILLISECOND_NS;

/// Most slots that are looked at after the keeper slept through them.
const MOST_MISSED: u64 = 10_000;

/// The thread's own state.
pub(super) struct Watch {
    play: Arc<Play>,
    reader: Arc<Reader>,
    rows: Vec<Row>,
    cast: Arc<Cast>,
    /// Of the cast.
    version: u64,
    raise: Option<Raise>,
    table: Arc<Table>,
    lead: Lead,
    /// It is bound to the CPU of its only row.
    is_bound: bool,
    /// The tick whose slots are kept.
    tick: Option<Tick>,
    /// The tick at which to look next.
    due: Tick,
    /// Lowerings by the guardian that the keeper knows of.
    lowerings: u64,
    /// Work space.
    cpus: Vec<u32>,
}

impl Watch {
    pub(super) fn new(
        play: Arc<Play>,
        reader: Arc<Reader>,
        rows: Vec<Row>,
        raise: Option<Raise>,
        table: Arc<Table>,
    ) -> Self {
        let lead = match play.mechanism {
            SlotMechanism::Raise => Lead::new(reader.geometry().slot_ns()),
            // Elsewhere the schedulee that ends would lose what the next one cannot have yet.
            SlotMechanism::Lower | SlotMechanism::Stop => Lead::NONE,
        };
        Self {
            lowerings: table.lowerings(),
            cpus: Vec::with_capacity(rows.len()),
            play,
            reader,
            rows,
            cast: Arc::default(),
            version: 0,
            raise,
            table,
            lead,
            is_bound: false,
            tick: None,
            due: Tick::MAX,
        }
    }

    pub(super) fn keep(mut self) {
        priority::wake_promptly(priority::KEEPER);
        let mut sequence = None;
        loop {
            let now = self.reader.sequence();
            let is_changed = sequence.replace(now) != Some(now);
            let before = self.play.casting.newer_than(&mut self.version);
            let before = before.map(|cast| std::mem::replace(&mut self.cast, cast));
            self.boundary();
            if is_changed {
                self.read_rows();
            }
            self.find_due();
            drop(before);
            if self.play.has_ended() || !self.reader.is_open() {
                break;
            }
            self.sleep(now);
        }
        self.leave_all();
        self.promise(u64::MAX);
    }

    /// Does what the table says of the slot that begins or is under way.
    fn boundary(&mut self) {
        let geometry = *self.reader.geometry();
        let now_ns = monotonic_ns();
        self.promise(now_ns);
        if self.table.lowerings() != self.lowerings {
            self.lowerings = self.table.lowerings();
            self.leave_all();
        }
        let ahead_ns = now_ns + self.lead.ns();
        if ahead_ns < geometry.begin_ns(0) {
            return;
        }
        // A shorter lead must not lead back.
        let tick = geometry.tick_at(ahead_ns).max(self.tick.unwrap_or(0));
        let begins = self.tick != Some(tick);
        if begins {
            self.count_missed(tick);
        }
        for row in &mut self.rows {
            let schedulee = self.reader.at(row.index, tick);
            let column = geometry.column(tick);
            let cell = geometry.index(Cell {
                row: row.index,
                column,
            });
            let role = schedulee.and_then(|it| self.cast.role(cell.ok()?, it));
            row.next = role.filter(|role| !role.members.is_empty()).cloned();
            row.was_claimed = row.is_claimed;
            row.is_claimed = schedulee.is_some();
        }
        self.tick = Some(tick);
        self.change(begins.then(|| geometry.begin_ns(tick)));
    }

    /// Raises the roles whose slots begin, and then lowers those whose slots have ended: so a role
    /// that moves to another row stays raised. `begin_ns`: slots begin then.
    fn change(&mut self, begin_ns: Option<u64>) {
        let any_is_new = self.rows.iter().any(|row| !row.goes_on());
        if any_is_new && self.play.mechanism != SlotMechanism::Raise {
            self.let_schedulees_go_on();
        }
        for row in &mut self.rows {
            row.take_seats(self.raise, &self.table);
        }
        for row in &mut self.rows {
            row.leave_seats(self.raise, &self.table);
        }
        self.treat_rivals();
        let raised_ns = monotonic_ns();
        for row in &mut self.rows {
            row.count(begin_ns, raised_ns, &self.play.tallies[row.index as usize]);
        }
        let begins_anew = any_is_new && self.rows.iter().any(|row| row.role.is_some());
        let Some(begin_ns) = begin_ns.filter(|_| begins_anew) else {
            return;
        };
        self.lead.await_boundary(begin_ns);
        let late_ns = match self.play.mechanism {
            SlotMechanism::Raise => monotonic_ns().saturating_sub(begin_ns),
            SlotMechanism::Lower | SlotMechanism::Stop => raised_ns.saturating_sub(begin_ns),
        };
        for row in self.rows.iter_mut().filter(|row| row.is_new) {
            self.play.tallies[row.index as usize].late.add(late_ns);
        }
    }

    /// Notes which slots of the rows are claimed, and binds the keeper to its row's CPU.
    fn read_rows(&mut self) {
        let tick = self.tick.unwrap_or(0);
        for row in &mut self.rows {
            row.read(&self.reader, tick);
        }
        let [row] = &self.rows[..] else {
            return;
        };
        let is_online = self.reader.is_online(row.index);
        if is_online && !self.is_bound && self.play.mechanism == SlotMechanism::Raise {
            let mut cpus = CpuSet::new();
            cpus.set(row.cpu as usize);
            // Elsewhere its changes take longer, and no more.
            let _ = rustix::thread::sched_setaffinity(None, &cpus);
        }
        // A CPU that goes sends its threads away.
        self.is_bound = is_online;
    }

    /// Finds the next tick at which a claimed slot begins or ends.
    fn find_due(&mut self) {
        let Some(tick) = self.tick else {
            self.due = 0;
            return;
        };
        let column = self.reader.geometry().column(tick);
        let dues = self.rows.iter().map(|row| match row.is_claimed {
            true => tick + 1,
            false => row.next_claimed(tick, column),
        });
        self.due = dues.min().unwrap_or(Tick::MAX);
    }

    /// Counts claimed slots that passed since the tick that was due.
    fn count_missed(&mut self, tick: Tick) {
        let first = self.due.max(tick.saturating_sub(MOST_MISSED));
        for missed in first..tick {
            for row in &self.rows {
                if self.reader.at(row.index, missed).is_some() {
                    add(&self.play.tallies[row.index as usize].missed, 1);
                }
            }
        }
    }

    /// Sleeps until shortly before the next boundary, or until a row of its own changes.
    fn sleep(&self, sequence: u32) {
        let until_ns = match self.due {
            Tick::MAX => None,
            due => {
                let begin_ns = self.reader.geometry().begin_ns(due);
                Some(begin_ns.saturating_sub(self.lead.ns()))
            }
        };
        self.promise(until_ns.unwrap_or(u64::MAX));
        let rows: Rows = self.rows.iter().map(|row| row.index).collect();
        // A thread that cannot wait looks again soon.
        if self.reader.wait_for(rows, sequence, until_ns).is_err() {
            std::thread::sleep(std::time::Duration::from_nanos(MILLISECOND_NS));
        }
    }

    /// Promises to wake at this time, while anything is raised or about to be.
    fn promise(&self, wake_ns: u64) {
        let grace_ns = self.reader.geometry().slot_ns().max(SHORTEST_GRACE_NS);
        let until_ns = wake_ns.saturating_add(grace_ns);
        if let Some(row) = self.rows.first() {
            self.table.promise_as_keeper(row.cpu, until_ns);
        }
    }

    /// Those that gave way until now.
    fn let_schedulees_go_on(&self) {
        let roles = self.rows.iter().filter_map(|row| row.next.as_ref());
        for member in roles.flat_map(|role| &role.members) {
            let mut threads = member.threads.lock();
            threads.go_on(&member.handle, &self.table);
        }
    }

    /// Has rivals give way to the roles that have slots, or go on, where nothing is raised. A client
    /// with a slot on any CPU gives way on none.
    fn treat_rivals(&mut self) {
        let how = match self.play.mechanism {
            SlotMechanism::Raise => return,
            SlotMechanism::Lower => Treatment::Idle,
            SlotMechanism::Stop => Treatment::Stopped,
        };
        self.cpus.clear();
        let has_slot = self.rows.iter().filter(|row| row.role.is_some());
        self.cpus.extend(has_slot.map(|row| row.cpu));
        let roles: fn(&Row) -> Option<&Arc<Role>> = |row| row.role.as_ref();
        for rival in &self.cast.rivals {
            let mut plays = self.rows.iter().filter_map(roles).flat_map(|r| &r.members);
            let mut threads = rival.threads.lock();
            match self.cpus.is_empty() || plays.any(|member| member.client == rival.client) {
                true => threads.go_on(&rival.handle, &self.table),
                false => threads.give_way(&rival.handle, how, &self.cpus, &self.table),
            }
        }
    }

    fn leave_all(&mut self) {
        for row in &mut self.rows {
            row.next = None;
            row.leave_seats(self.raise, &self.table);
            row.role = None;
        }
        self.treat_rivals();
    }
}
