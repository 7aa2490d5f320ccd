//! The keeper: a thread that does what the timetable says at each boundary.
//!
//! It sleeps until the next slot that is claimed or ends, or until the table changes. At a boundary
//! it looks up each row once, lowers what ran, and raises what runs now; a schedulee that goes on is
//! left alone. Nothing is allocated there. What a change of the table needs is found out afterwards.
//!
//! It promises the guardian each of its wakes while anything is raised. A promise that is missed by a
//! slot has the guardian lower everything, and the keeper begins anew when it notices.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use prorata_bulletin::{Owners, Part, Reader};
use prorata_core::slots::geometry::{Cell, Tick};

use super::SlotMechanism;
use super::cast::{Cast, Casting, Role};
use super::rows::Row;
use super::tally::{SlotReport, Tally, add};
use crate::events::CommandSender;
use crate::priority::{self, Raise};
use crate::process::Treatment;
use crate::table::Table;
use crate::time::{MILLISECOND_NS, monotonic_ns};

/// The keeper wakes so often even if nothing is claimed, to notice that it is to end.
const LONGEST_SLEEP_NS: u64 = 100 * MILLISECOND_NS;

/// A promise is missed only after so long, however short the slots are.
const SHORTEST_GRACE_NS: u64 = 10 * MILLISECOND_NS;

/// Most slots that are looked at after the keeper slept through them.
const MOST_MISSED: u64 = 10_000;

/// What keeper and engine share.
#[derive(Debug)]
pub(crate) struct Play {
    pub(crate) mechanism: SlotMechanism,
    pub(crate) casting: Casting,
    /// Of the table.
    pub(crate) period_ns: u64,
    cpus: Vec<u32>,
    tallies: Vec<Tally>,
    ended: AtomicBool,
}

impl Play {
    pub(crate) fn new(mechanism: SlotMechanism, reader: &Reader) -> Self {
        let cpus = reader.cpus().to_vec();
        Self {
            mechanism,
            casting: Casting::default(),
            period_ns: u64::from(reader.geometry().columns()) * reader.geometry().slot_ns(),
            tallies: cpus.iter().map(|_| Tally::new()).collect(),
            cpus,
            ended: AtomicBool::new(false),
        }
    }

    /// Has the keeper lower everything and end soon.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    fn report(&self) -> SlotReport {
        let rows = self.tallies.iter().zip(&self.cpus);
        SlotReport {
            mechanism: self.mechanism,
            rows: rows.map(|(tally, &cpu)| tally.report(cpu)).collect(),
        }
    }
}

/// The keeper as its engine has it. Dropping it lowers everything.
#[derive(Debug)]
pub(crate) struct Keeper {
    play: Arc<Play>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    pub(crate) fn start(
        play: Arc<Play>,
        reader: Reader,
        raise: Option<Raise>,
        table: Arc<Table>,
        commands: CommandSender,
    ) -> io::Result<Keeper> {
        let stage = Stage {
            mechanism: play.mechanism,
            rows: play.cpus.iter().map(|&cpu| Row::new(cpu)).collect(),
            cpus: Vec::with_capacity(play.cpus.len()),
            cast: Cast::default(),
            raise,
            table,
        };
        let watch = Watch {
            lowerings: stage.table.lowerings(),
            play: play.clone(),
            reader,
            owners: Owners::default(),
            stage,
            commands,
            tick: None,
            due: Tick::MAX,
        };
        let thread = std::thread::Builder::new()
            .name("keeper".into())
            .spawn(move || watch.keep())?;
        Ok(Keeper {
            play,
            thread: Some(thread),
        })
    }

    pub(crate) fn report(&self) -> SlotReport {
        self.play.report()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.play.end();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The thread's own state.
struct Watch {
    play: Arc<Play>,
    reader: Reader,
    owners: Owners,
    stage: Stage,
    commands: CommandSender,
    /// The tick whose slots are kept.
    tick: Option<Tick>,
    /// The tick at which to look next.
    due: Tick,
    /// Lowerings by the guardian that the keeper knows of.
    lowerings: u64,
}

impl Watch {
    fn keep(mut self) {
        priority::wake_promptly(priority::ENGINE);
        let mut sequence = None;
        loop {
            let now = self.reader.sequence();
            let is_changed = sequence != Some(now);
            let cast = self.play.casting.take();
            let before = cast.map(|cast| std::mem::replace(&mut self.stage.cast, cast));
            self.boundary();
            self.find_due(is_changed);
            drop(before);
            if self.play.ended.load(Ordering::Acquire) || !self.reader.is_open() {
                break;
            }
            // After the boundary: this takes longer.
            sequence = Some(now);
            if is_changed && !self.read_table() {
                sequence = None;
            }
            self.sleep(now);
        }
        self.stage.lower_all();
        self.stage.table.promise_as_keeper(u64::MAX);
    }

    /// Does what the table says now.
    fn boundary(&mut self) {
        let geometry = *self.reader.geometry();
        let now_ns = monotonic_ns();
        self.promise(now_ns);
        if self.stage.table.lowerings() != self.lowerings {
            self.lowerings = self.stage.table.lowerings();
            self.stage.lower_all();
        }
        let tick = geometry.tick_at(now_ns);
        let begins = self.tick != Some(tick) && now_ns >= geometry.begin_ns(0);
        if begins {
            self.count_missed(tick);
        }
        for (index, row) in (0..).zip(&mut self.stage.rows) {
            let schedulee = match now_ns >= geometry.begin_ns(0) {
                true => self.reader.at(index, tick),
                false => None,
            };
            let column = geometry.column(tick);
            let cell = geometry.index(Cell { row: index, column });
            let part = schedulee.and_then(|it| self.owners.part(cell.ok()?, it));
            let role = part.and_then(|part| self.stage.cast.role(part));
            row.next = role.filter(|role| !role.members.is_empty()).cloned();
            row.was_claimed = row.is_claimed;
            row.is_claimed = schedulee.is_some();
        }
        self.tick = Some(tick);
        let begin_ns = begins.then(|| geometry.begin_ns(tick));
        self.stage.change(begin_ns, &self.play.tallies);
    }

    /// Finds the next tick at which a claimed slot begins or ends.
    fn find_due(&mut self, is_changed: bool) {
        let tick = self.tick.unwrap_or(0);
        self.due = Tick::MAX;
        for (index, row) in (0..).zip(&mut self.stage.rows) {
            if row.next_claimed <= tick || is_changed {
                let next = self.reader.next_claimed(index, tick + 1);
                row.next_claimed = next.unwrap_or(Tick::MAX);
            }
            self.due = self.due.min(match row.is_claimed {
                true => tick + 1,
                false => row.next_claimed,
            });
        }
    }

    /// Counts claimed slots that passed since the tick that was due.
    fn count_missed(&mut self, tick: Tick) {
        let first = self.due.max(tick.saturating_sub(MOST_MISSED));
        for missed in first..tick {
            for (index, tally) in (0..).zip(&self.play.tallies) {
                if self.reader.at(index, missed).is_some() {
                    add(&tally.missed, 1);
                }
            }
        }
    }

    /// Finds out whose claims there are, and has their processes found. Returns false if the table
    /// changes too fast.
    fn read_table(&mut self) -> bool {
        if !self.owners.look(&self.reader) {
            return false;
        }
        let parts: Vec<Part> = self.owners.parts();
        let play = self.play.clone();
        // A decision thread that has ended has released everything.
        let cast = move |thread: &mut crate::decision::DecisionThread, _| {
            thread.cast_parts(parts, &play);
        };
        let _ = self.commands.send(cast);
        true
    }

    fn sleep(&self, sequence: u32) {
        let longest_ns = monotonic_ns() + LONGEST_SLEEP_NS;
        let until_ns = longest_ns.min(self.reader.geometry().begin_ns(self.due));
        self.promise(until_ns);
        // What fails is tried again, and ends by then.
        if self.reader.wait(sequence, Some(until_ns)).is_err() {
            std::thread::sleep(std::time::Duration::from_nanos(MILLISECOND_NS));
        }
    }

    /// Promises to wake at this time, while anything is raised or about to be.
    fn promise(&self, wake_ns: u64) {
        let grace_ns = self.reader.geometry().slot_ns().max(SHORTEST_GRACE_NS);
        self.stage
            .table
            .promise_as_keeper(wake_ns.saturating_add(grace_ns));
    }
}

/// What is raised, and what it takes to change that.
struct Stage {
    mechanism: SlotMechanism,
    rows: Vec<Row>,
    /// Work space.
    cpus: Vec<u32>,
    cast: Cast,
    raise: Option<Raise>,
    table: Arc<Table>,
}

impl Stage {
    /// Lowers the roles whose slots have ended, and raises those whose slots begin. `begin_ns`: slots
    /// began then.
    fn change(&mut self, begin_ns: Option<u64>, tallies: &[Tally]) {
        for index in 0..self.rows.len() {
            let row = &self.rows[index];
            // A role that was cast anew is lowered, too: it may have lost members.
            if let Some(role) = &row.role
                && !self.rows.iter().any(|row| is_of(&row.next, role))
            {
                lower(role, &self.table);
            }
        }
        if self.rows.iter().any(|row| !row.goes_on()) {
            self.let_schedulees_go_on();
        }
        for index in 0..self.rows.len() {
            let row = &mut self.rows[index];
            row.former = std::mem::replace(&mut row.role, row.next.take());
            self.raise(index);
            self.rows[index].begun_ns = monotonic_ns();
        }
        self.treat_rivals();
        for (row, tally) in self.rows.iter_mut().zip(tallies) {
            row.count(begin_ns, tally);
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

    /// Raises the role of a row on the CPUs of all its rows.
    fn raise(&mut self, index: usize) {
        let Some(role) = self.rows[index].role.clone() else {
            return;
        };
        self.cpus.clear();
        for (other, row) in self.rows.iter().enumerate() {
            let role_then = if other <= index { &row.role } else { &row.next };
            if is_of(role_then, &role) {
                self.cpus.push(row.cpu);
            }
        }
        for member in &role.members {
            let mut threads = member.threads.lock();
            threads.raise(
                &member.handle,
                member.only,
                &self.cpus,
                self.raise,
                &self.table,
            );
        }
    }

    /// Has rivals give way to the roles that have slots, or go on, where nothing is raised. A client
    /// with a slot on any CPU gives way on none.
    fn treat_rivals(&mut self) {
        let how = match self.mechanism {
            SlotMechanism::Raise => return,
            SlotMechanism::Lower => Treatment::Idle,
            SlotMechanism::Stop => Treatment::Stopped,
        };
        self.cpus.clear();
        let has_slot = self.rows.iter().filter(|row| row.role.is_some());
        self.cpus.extend(has_slot.map(|row| row.cpu));
        for rival in &self.cast.rivals {
            let roles = self.rows.iter().filter_map(|row| row.role.as_ref());
            let mut plays = roles.flat_map(|role| &role.members);
            let mut threads = rival.threads.lock();
            match self.cpus.is_empty() || plays.any(|member| member.client == rival.client) {
                true => threads.go_on(&rival.handle, &self.table),
                false => threads.give_way(&rival.handle, how, &self.cpus, &self.table),
            }
        }
    }

    fn lower_all(&mut self) {
        for row in &mut self.rows {
            if let Some(role) = row.role.take() {
                lower(&role, &self.table);
            }
        }
        self.treat_rivals();
    }
}

fn is_of(role: &Option<Arc<Role>>, other: &Arc<Role>) -> bool {
    role.as_ref().is_some_and(|role| Arc::ptr_eq(role, other))
}

fn lower(role: &Role, table: &Table) {
    for member in &role.members {
        let mut threads = member.threads.lock();
        threads.lower(&member.handle, member.only, table);
    }
}
