//! Slots of the timetable (2005, 2.2 and 2.5). In a claimed slot a CPU runs the schedulee if that
//! can run, else what the policy chooses.
//!
//! ```text
//!   boundary     ends slots that are over; says whose slots begin
//!   settle       seats schedulees that can run: at the boundary, and at once when one wakes;
//!                the client that has the CPU loses its turn. Then the policy gives the rest away
//!   leave        ends the slot's turn when the schedulee blocks
//! ```
//!
//! A thread in a slot has a turn of its own in the [`TurnTable`](super::turn_table::TurnTable),
//! beside the client's turn by the policy. A schedulee that runs elsewhere by the policy is moved,
//! unless a stranger claimed the slot for it: a gift never interrupts.

use prorata_core::slots::claim::Schedulee;
use prorata_core::slots::geometry::Tick;
use prorata_core::slots::notice::Notice;
use prorata_core::slots::timetable::Timetable;
use prorata_scenario::event::{Event, Why};
use prorata_scenario::plan::{SlotDeed, SlotPlan, client_id};
use prorata_scenario::threads::ThreadState;
use prorata_scenario::world::slots::{client_of, revocations};

use super::turn_table::Kind;
use super::{Due, Imbalance, Machine, NONE, Simulation};
use crate::observer::Observer;

/// The timetable and what each CPU's slot is now.
#[derive(Debug)]
pub(super) struct Slots {
    plan: SlotPlan,
    rows: Vec<Row>,
    /// The tick that began last.
    tick: Option<Tick>,
    /// Marks the next boundary: one with an older stamp is void.
    stamp: u32,
    /// The threads of each client, in the order in which they began; [`NONE`] once they exited.
    threads: Vec<Vec<u32>>,
}

/// A CPU's slot.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Row {
    /// What is to run; nothing in an unclaimed slot.
    schedulee: Option<Schedulee>,
    /// Whether a stranger claimed the slot for it.
    is_gift: bool,
    /// Whether it ran in this slot.
    ran: bool,
}

impl Slots {
    pub(super) fn new(plan: SlotPlan, clients: usize) -> Self {
        let rows = plan.timetable.geometry().rows() as usize;
        Self {
            plan,
            rows: vec![Row::default(); rows],
            tick: None,
            stamp: 0,
            threads: vec![Vec::new(); clients],
        }
    }

    pub(super) fn period_ns(&self) -> u64 {
        let geometry = self.plan.timetable.geometry();
        geometry.period_ns()
    }

    /// The next tick at which something is to be done.
    fn next_tick(&self, now_ns: u64) -> Option<Tick> {
        let now = self.plan.tick_at(now_ns);
        let Some(tick) = self.tick.filter(|&tick| tick == now) else {
            // Nothing was claimed up to now, or the boundary is due.
            return Some(now);
        };
        let timetable = &self.plan.timetable;
        let in_slots = self.rows.iter().any(|row| row.schedulee.is_some());
        let rows = 0..self.rows.len() as u32;
        let claimed = rows.filter_map(|row| timetable.next_claimed(row, tick + 1));
        let wakes = timetable.wakes_at().map(|wakes| wakes.max(tick + 1));
        claimed
            .chain(in_slots.then_some(tick + 1))
            .chain(wakes)
            .min()
    }
}

impl<O: Observer> Simulation<O> {
    /// A boundary: slots end and begin.
    pub(super) fn slot_due(&mut self, stamp: u32) {
        let Some(slots) = &mut self.machine.slots else {
            return;
        };
        if slots.stamp != stamp {
            return;
        }
        let tick = slots.plan.tick_at(self.machine.now_ns);
        slots.tick = Some(tick);
        let notices = slots.plan.timetable.advance(tick).notices;
        self.tell_notices(&notices);
        for cpu in 0..self.machine.cpus.all.len() as u32 {
            self.change_slot(cpu, tick);
        }
        self.machine.plan_boundary();
    }

    /// The slot of a CPU is over and the next one begins.
    fn change_slot(&mut self, cpu: u32, tick: Tick) {
        let machine = &mut self.machine;
        let (before, next) = (machine.row(cpu), machine.row_at(cpu, tick));
        let missed = before.schedulee.and_then(client_of).filter(|_| !before.ran);
        let in_slot = machine.is_in_slot(cpu);
        let goes_on =
            in_slot && before.schedulee == next.schedulee && before.is_gift == next.is_gift;
        if let Some(slots) = &mut machine.slots {
            slots.rows[cpu as usize] = Row {
                ran: goes_on,
                ..next
            };
        }
        if let Some(client) = missed {
            self.tell(Event::SlotMissed { client, cpu });
        }
        if !in_slot {
            return;
        }
        self.account(cpu);
        let thread = self.machine.cpus.all[cpu as usize].thread;
        if goes_on {
            let client = self.machine.threads.all[thread as usize].client;
            self.tell(Event::SlotBegan {
                client,
                cpu,
                tick,
                late_ns: 0,
            });
        } else {
            self.leave(cpu, Why::TurnEnded);
            self.queue_up(thread);
        }
    }

    /// Gives CPUs to schedulees first, then by the policy, until no schedulee can run that does
    /// not: one may be woken by a client that begins to run.
    #[cold]
    pub(super) fn settle_with_slots(&mut self) {
        self.account_slots();
        loop {
            while let Some(cpu) = self.machine.vacant_slot() {
                self.seat(cpu);
            }
            self.give_free_cpus();
            if self.machine.vacant_slot().is_none() {
                return;
            }
        }
    }

    /// What threads in slots used is charged, as far as it is: no time passes for others by the
    /// rest.
    pub(super) fn account_slots(&mut self) {
        for cpu in 0..self.machine.cpus.all.len() as u32 {
            if self.machine.is_in_slot(cpu) {
                self.account(cpu);
            }
        }
    }

    /// The schedulee of a CPU's slot gets it.
    fn seat(&mut self, cpu: u32) {
        let row = self.machine.row(cpu);
        let Some(client) = self.machine.candidate(row) else {
            return;
        };
        if self.machine.must_move(cpu, row, client) {
            self.end_turn(client);
        }
        if let Some((runner, _)) = self.machine.running(cpu) {
            self.end_turn(runner);
        }
        let machine = &mut self.machine;
        let Some(thread) = machine.take_ready(cpu, row, client) else {
            return;
        };
        machine.cpus.take(cpu);
        machine.dispatcher.begin_slot(client_id(client));
        let turn = machine.turns.begin_slot(row.is_gift);
        let ready_ns = machine.threads.all[thread as usize].since_ns;
        let (mut begin_ns, mut now) = (ready_ns, 0);
        if let Some(slots) = &mut machine.slots {
            slots.rows[cpu as usize].ran = true;
            now = slots.plan.tick_at(machine.now_ns);
            begin_ns = begin_ns.max(slots.plan.begin_ns(now));
        }
        let delay_ns = self.place(cpu, thread, turn);
        self.tell(Event::SlotBegan {
            client,
            cpu,
            tick: now,
            late_ns: self.machine.now_ns + delay_ns - begin_ns,
        });
        self.drive(cpu);
    }

    /// The thread of a slot has left the CPU.
    pub(super) fn end_slot(&mut self, client: u32, cpu: u32, turn: u32) {
        self.machine.turns.end(turn);
        self.machine.dispatcher.end_slot(client_id(client));
        self.tell(Event::SlotEnded { client, cpu });
    }

    pub(super) fn do_slot_deed(&mut self, deed: &SlotDeed) {
        let now_ns = self.machine.now_ns;
        let Some(slots) = &mut self.machine.slots else {
            return;
        };
        let now = slots.plan.tick_at(now_ns);
        let done = deed.apply(&mut slots.plan.timetable, now);
        for why in &done.refused {
            self.tell(Event::SlotsRefused { why });
        }
        self.tell_notices(&done.notices);
        self.machine.plan_boundary();
    }

    fn tell_notices(&mut self, notices: &[Notice]) {
        revocations(notices).for_each(|event| self.tell(event));
    }

    /// A thread has exited; with the last one its client ends.
    #[cold]
    pub(super) fn thread_left_table(&mut self, client: u32, thread: u32) {
        let now_ns = self.machine.now_ns;
        let is_last = self.machine.clients[client as usize].threads == 0;
        let Some(slots) = &mut self.machine.slots else {
            return;
        };
        let now = slots.plan.tick_at(now_ns);
        let timetable = &mut slots.plan.timetable;
        let threads = &mut slots.threads[client as usize];
        let mut notices = Vec::new();
        if let Some(number) = threads.iter().position(|&of| of == thread) {
            threads[number] = NONE;
            let schedulee = prorata_scenario::world::slots::thread(client, number as u32 + 1);
            notices = timetable.end_schedulee(schedulee, now).notices;
        }
        if is_last {
            threads.clear();
            notices.extend(timetable.end_client(client_id(client), now).notices);
        }
        self.tell_notices(&notices);
        self.machine.plan_boundary();
    }
}

impl Machine {
    /// The timetable, if there is one.
    pub fn timetable(&self) -> Option<&Timetable> {
        self.slots.as_ref().map(|slots| &slots.plan.timetable)
    }

    /// Checks that each slot runs its schedulee, if that can run, and that no token is lost.
    pub(super) fn check_slots(&self) -> Result<(), Imbalance> {
        let Some(slots) = &self.slots else {
            return Ok(());
        };
        let tick = slots.plan.tick_at(self.now_ns);
        let runs_another = |cpu: &u32| {
            let schedulee = slots.plan.timetable.at(*cpu, tick);
            self.is_in_slot(*cpu) && self.in_slot(*cpu) != schedulee.and_then(client_of)
        };
        let wrong = (0..self.machine.cpus).find(runs_another);
        match wrong.or_else(|| self.vacant_slot()) {
            Some(cpu) => Err(Imbalance::Slot { cpu }),
            None if slots.plan.timetable.audit() => Ok(()),
            None => Err(Imbalance::Tokens),
        }
    }

    /// The client whose thread a CPU runs in a slot.
    pub fn in_slot(&self, cpu: u32) -> Option<u32> {
        self.is_in_slot(cpu)
            .then(|| self.running(cpu).map(|(client, _)| client))?
    }

    /// The user to whom a client belongs.
    pub fn user_of(&self, client: u32) -> u32 {
        self.group(client).user
    }

    /// CPUs that run threads of a client, in turns or in slots.
    pub fn cpus_of(&self, client: u32) -> u32 {
        let turn = self.turns.get(self.clients[client as usize].turn);
        turn.map_or(0, |turn| turn.cpus) + self.slots_of(client)
    }

    /// CPUs that run threads of a client in slots.
    pub(super) fn slots_of(&self, client: u32) -> u32 {
        if self.slots.is_none() {
            return 0;
        }
        let cpus = 0..self.machine.cpus;
        cpus.filter(|&cpu| self.in_slot(cpu) == Some(client))
            .count() as u32
    }

    /// Whether a CPU runs a thread in a slot.
    pub(super) fn is_in_slot(&self, cpu: u32) -> bool {
        let place = &self.cpus.all[cpu as usize];
        let turn = self.turns.get(place.turn).filter(|_| place.thread != NONE);
        turn.is_some_and(|turn| turn.kind != Kind::Turn)
    }

    /// Sees to it that the next boundary comes.
    pub(super) fn plan_boundary(&mut self) {
        let Some(slots) = &mut self.slots else {
            return;
        };
        slots.stamp = slots.stamp.wrapping_add(1);
        if let Some(tick) = slots.next_tick(self.now_ns) {
            let begin_ns = slots.plan.begin_ns(tick).max(self.now_ns);
            let stamp = slots.stamp;
            self.queue.push(begin_ns, Due::Slot { stamp });
        }
    }

    /// A client begins anew, or one more of its threads does.
    #[cold]
    pub(super) fn thread_in_table(&mut self, client: u32, thread: u32) {
        if let Some(slots) = &mut self.slots {
            slots.threads[client as usize].push(thread);
        }
    }

    fn row(&self, cpu: u32) -> Row {
        let slots = self.slots.as_ref();
        slots.map_or(Row::default(), |slots| slots.rows[cpu as usize])
    }

    /// What the timetable says of a tick, which is not before the present one.
    fn row_at(&self, cpu: u32, tick: Tick) -> Row {
        let Some(timetable) = self.timetable() else {
            return Row::default();
        };
        let schedulee = timetable.at(cpu, tick);
        let runs = schedulee.and_then(client_of);
        let user = runs.map(|client| self.group(client).user);
        Row {
            schedulee,
            is_gift: schedulee.is_some() && user != timetable.claimant_at(cpu, tick),
            ran: false,
        }
    }

    /// A CPU in a slot of which the schedulee could run and does not.
    fn vacant_slot(&self) -> Option<u32> {
        let slots = self.slots.as_ref()?;
        let vacant = |(row, cpu): (&Row, u32)| {
            let client = (!self.is_in_slot(cpu)).then(|| self.candidate(*row))??;
            // A gift that runs here already, by the policy, is not interrupted.
            let runs_here = self
                .running(cpu)
                .is_some_and(|(runner, _)| runner == client);
            (!row.is_gift || !runs_here).then_some(cpu)
        };
        slots.rows.iter().zip(0..).find_map(vacant)
    }

    /// The schedulee's client, if a thread of it can run in the slot and runs in no other.
    fn candidate(&self, row: Row) -> Option<u32> {
        let client = client_of(row.schedulee?)?;
        let state = &self.clients[client as usize];
        let can_run = match self.thread_of(row) {
            None => state.ready.first != NONE || (state.turn != NONE && !row.is_gift),
            Some(thread) => match self.threads.all.get(thread as usize).map(|t| t.state) {
                Some(ThreadState::Ready) => true,
                Some(ThreadState::Running) => !row.is_gift && self.is_in_turn(thread),
                _ => false,
            },
        };
        can_run.then_some(client)
    }

    /// The one thread of a row's schedulee; [`NONE`] if it has exited or not begun.
    fn thread_of(&self, row: Row) -> Option<u32> {
        let Some(Schedulee::Thread { tid, started }) = row.schedulee else {
            return None;
        };
        let threads = &self.slots.as_ref()?.threads[started as usize];
        let thread = threads.get(tid as usize - 1).copied();
        Some(thread.unwrap_or(NONE))
    }

    fn is_in_turn(&self, thread: u32) -> bool {
        let cpu = self.threads.all[thread as usize].cpu;
        !self.is_in_slot(cpu.into())
    }

    /// Whether a client's turn must end for its thread to run in a slot of a CPU.
    fn must_move(&self, cpu: u32, row: Row, client: u32) -> bool {
        let state = &self.clients[client as usize];
        if state.turn == NONE || row.is_gift {
            return false;
        }
        let runs_here = self
            .running(cpu)
            .is_some_and(|(runner, _)| runner == client);
        runs_here
            || match self.thread_of(row) {
                None => state.ready.first == NONE,
                Some(thread) => self.threads.all[thread as usize].state == ThreadState::Running,
            }
    }

    /// Takes the schedulee's thread from those that wait: the one that ran here last, else the
    /// first.
    fn take_ready(&mut self, cpu: u32, row: Row, client: u32) -> Option<u32> {
        let thread = match self.thread_of(row) {
            Some(thread) => thread,
            None => {
                let mut waiting = self.clients[client as usize].ready.first;
                let first = waiting;
                while let Some(thread) = self.threads.all.get(waiting as usize) {
                    if u32::from(thread.cpu) == cpu {
                        break;
                    }
                    waiting = thread.next;
                }
                if waiting == NONE { first } else { waiting }
            }
        };
        let state = &mut self.clients[client as usize];
        if self.threads.all.get(thread as usize)?.state != ThreadState::Ready {
            return None;
        }
        state.ready.remove(&mut self.threads.all, thread);
        self.end_waiting(client);
        Some(thread)
    }
}
