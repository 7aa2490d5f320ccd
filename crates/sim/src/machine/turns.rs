//! Turns of clients on CPUs: their choice, length and use.

use prorata_core::choice::{Choice, Reason};
use prorata_scenario::event::{Event, Why};
use prorata_scenario::plan::client_id;
use prorata_scenario::threads::{NO_CPU, ThreadState};

use prorata_core::prefetch::prefetch;

use super::turn_table::Kind;
use super::{Due, MANY_CLIENTS, NONE, Simulation};
use crate::observer::Observer;

/// Memory is prefetched so many winners ahead: early enough to arrive, and late enough to
/// stay in the cache.
const WINNERS_AHEAD: usize = 16;

impl<O: Observer> Simulation<O> {
    /// Everything that was due now has happened: gives free CPUs away.
    #[inline]
    pub(super) fn settle(&mut self) {
        if std::mem::take(&mut self.machine.tick_now) {
            self.end_all_turns();
        }
        match self.machine.slots {
            None => self.give_free_cpus(),
            Some(_) => self.settle_with_slots(),
        }
        if !self.machine.woken.is_empty() {
            self.preempt();
        }
    }

    // For every event: in a call of its own it would cost all scenarios half a percent.
    #[inline(always)]
    pub(super) fn give_free_cpus(&mut self) {
        while let Some(choice) = self.machine.next_choice() {
            self.machine.prefetch_winners(choice.client.0);
            self.give(choice);
        }
        self.machine.plan_resumption();
    }

    /// A client gets a CPU: its turn begins, or it gets a further one.
    fn give(&mut self, choice: Choice) {
        let machine = &mut self.machine;
        let client = choice.client.0;
        let begins = machine.clients[client as usize].turn == NONE;
        debug_assert!(!begins || choice.why != Reason::Spare);
        if begins {
            machine.counts.turns += 1;
            let turn_end_ns = machine.turn_end_ns(choice);
            machine.clients[client as usize].turn = machine.turns.begin(turn_end_ns);
            self.tell(Event::TurnBegan { client });
        } else if machine.is_limited(client) {
            // Its allowance does not last as long on more CPUs.
            let turn = machine.turns.of(machine.clients[client as usize].turn);
            turn.end_ns = turn.end_ns.min(choice.until_ns);
        }
        let machine = &mut self.machine;
        let Some(thread) = machine.next_ready(client) else {
            return;
        };
        let wanted = machine.threads.all[thread as usize].cpu;
        let cpu = match machine.confines {
            false => machine.take_idle_cpu(wanted.into(), client),
            true => self.make_room(wanted.into(), client),
        };
        let turn = self.machine.clients[client as usize].turn;
        let delay_ns = self.place(cpu, thread, turn);
        if begins && !self.machine.is_aligned() {
            // The quantum is counted from when it begins to run.
            self.machine.turns.of(turn).end_ns += delay_ns;
        }
        self.drive(cpu);
    }

    /// Puts a thread, neither ready nor running, on a CPU taken for it, in a turn.
    /// Returns the time that passes before it runs.
    // For every turn, as `queue_up`.
    #[inline(always)]
    pub(super) fn place(&mut self, cpu: u32, thread: u32, turn: u32) -> u64 {
        let machine = &mut self.machine;
        let now_ns = machine.now_ns;
        let costs = &machine.machine.costs;
        let place = &mut machine.cpus.all[cpu as usize];
        let mover = &mut machine.threads.all[thread as usize];
        let switched = place.last != thread;
        let migrated = u32::from(mover.cpu) != cpu && mover.cpu != NO_CPU;
        let idle_ns = now_ns - place.since_ns;
        let mut delay_ns = 0;
        if switched {
            delay_ns += costs.context_switch.0;
            machine.counts.context_switches += 1;
        }
        if idle_ns > 0 {
            delay_ns += costs.interrupt.0;
        }
        if migrated {
            mover.remaining_ns += costs.cache_refill.0;
            machine.counts.migrations += 1;
        }
        machine.counts.idle_ns += idle_ns;
        machine.counts.overhead_ns += delay_ns;
        machine.counts.dispatches += 1;
        place.thread = thread;
        place.turn = turn;
        place.since_ns = now_ns + delay_ns;
        let since_sum_ns = &mut machine.cpus.since_sum_ns;
        *since_sum_ns = since_sum_ns.wrapping_add(now_ns + delay_ns);
        let client = mover.client;
        let turn = machine.turns.of(turn);
        mover.state = ThreadState::Running;
        mover.cpu = cpu as u16;
        mover.next = std::mem::replace(&mut turn.running, thread);
        turn.cpus += 1;
        let event = Event::Dispatched {
            client,
            thread,
            cpu,
            start_ns: now_ns + delay_ns,
            ready_ns: mover.since_ns,
            switched,
            migrated,
        };
        self.tell(event);
        delay_ns
    }

    /// Continues the thread on a CPU, and when it leaves, the client's next one, until a
    /// thread computes or none is left.
    pub(super) fn drive(&mut self, cpu: u32) {
        loop {
            let machine = &self.machine;
            let place = &machine.cpus.all[cpu as usize];
            let (thread, turn) = (place.thread, place.turn);
            let waits_for_switch = place.since_ns > machine.now_ns;
            if waits_for_switch || self.advance(cpu, thread) {
                self.plan_end(cpu);
                return;
            }
            let machine = &mut self.machine;
            let client = machine.threads.all[thread as usize].client;
            // The turn may have ended with the thread, as a slot's always does.
            if machine.clients[client as usize].turn != turn {
                return;
            }
            let Some(next) = machine.next_ready(client) else {
                return;
            };
            machine.cpus.take(cpu);
            self.place(cpu, next, turn);
        }
    }

    /// The thread on a CPU computes: sees to it that its step and its turn
    /// end in time.
    fn plan_end(&mut self, cpu: u32) {
        let machine = &mut self.machine;
        let place = &machine.cpus.all[cpu as usize];
        let thread = &machine.threads.all[place.thread as usize];
        let turn = machine.turns.of(place.turn);
        let (kind, turn_end_ns) = (turn.kind, turn.end_ns);
        let step_end_ns = place.since_ns + thread.remaining_ns;
        let due = Due::Cpu {
            cpu: cpu as u16,
            stamp: place.stamp,
        };
        if kind != Kind::Turn {
            machine.queue.push(step_end_ns, due);
        } else if machine.is_aligned() && !machine.may_end_early(thread.client) {
            // The tick ends the turn, also one that began under a limit.
            if step_end_ns <= machine.tick_ns.unwrap_or(turn_end_ns) {
                machine.queue.push(step_end_ns, due);
            }
        } else if turn_end_ns <= machine.now_ns {
            let client = thread.client;
            self.end_turn(client);
        } else {
            machine.queue.push(step_end_ns.min(turn_end_ns), due);
        }
    }

    /// A step or a turn is to end on a CPU, unless its thread has left.
    pub(super) fn cpu_due(&mut self, cpu: u32, stamp: u32) {
        let place = &self.machine.cpus.all[cpu as usize];
        if place.stamp != stamp {
            return;
        }
        let thread = place.thread;
        self.account(cpu);
        if self.machine.threads.all[thread as usize].remaining_ns == 0 {
            self.drive(cpu);
        } else {
            self.plan_end(cpu);
        }
    }

    /// A client's turn is over; its threads stay runnable.
    pub(super) fn end_turn(&mut self, client: u32) {
        loop {
            let machine = &mut self.machine;
            let turn = machine.clients[client as usize].turn;
            let thread = machine.turns.of(turn).running;
            if thread == NONE {
                break;
            }
            let cpu = machine.threads.all[thread as usize].cpu;
            self.account(cpu.into());
            self.leave(cpu.into(), Why::TurnEnded);
            self.queue_up(thread);
        }
        self.machine.dispatcher.end_turn(client_id(client));
        self.close_turn(client);
    }

    pub(super) fn end_all_turns(&mut self) {
        for cpu in 0..self.machine.cpus.all.len() as u32 {
            if let Some((client, _)) = self.machine.running(cpu)
                && !self.machine.is_in_slot(cpu)
            {
                self.end_turn(client);
            }
        }
    }

    /// The dispatcher knows that the turn is over.
    pub(super) fn close_turn(&mut self, client: u32) {
        let state = &mut self.machine.clients[client as usize];
        let turn = std::mem::replace(&mut state.turn, NONE);
        let used_ns = self.machine.turns.end(turn);
        self.tell(Event::TurnEnded { client, used_ns });
    }

    /// A thread that can run goes to the end of its client's queue.
    // For every turn: in a call of its own it would take half as long again.
    #[inline(always)]
    pub(super) fn queue_up(&mut self, thread: u32) {
        let machine = &mut self.machine;
        let threads = &mut machine.threads.all;
        let state = &mut threads[thread as usize];
        state.state = ThreadState::Ready;
        state.since_ns = machine.now_ns;
        let client = state.client;
        machine.clients[client as usize].ready.push(threads, thread);
        machine.begin_waiting(client);
    }

    /// Takes the thread, accounted for, off a CPU. What becomes of it is the
    /// caller's business.
    pub(super) fn leave(&mut self, cpu: u32, why: Why) {
        let machine = &mut self.machine;
        let place = &machine.cpus.all[cpu as usize];
        let (thread, turn) = (place.thread, place.turn);
        // It may leave before the switch to it is through.
        machine.counts.overhead_ns -= place.since_ns.saturating_sub(machine.now_ns);
        machine.cpus.release(cpu, machine.now_ns);
        let client = machine.threads.all[thread as usize].client;
        let kind = machine.unlink_running(turn, thread);
        let event = Event::Left {
            client,
            thread,
            cpu,
            why,
        };
        self.tell(event);
        if kind != Kind::Turn {
            self.end_slot(client, cpu, turn);
        }
    }

    /// Brings what the thread on a CPU used up to date.
    pub(super) fn account(&mut self, cpu: u32) {
        let machine = &mut self.machine;
        let now_ns = machine.now_ns;
        let place = &mut machine.cpus.all[cpu as usize];
        let used_ns = now_ns.saturating_sub(place.since_ns);
        if place.thread == NONE || used_ns == 0 {
            return;
        }
        place.since_ns = now_ns;
        let thread = place.thread;
        let since_sum_ns = &mut machine.cpus.since_sum_ns;
        *since_sum_ns = since_sum_ns.wrapping_add(used_ns);
        let state = &mut machine.threads.all[thread as usize];
        state.remaining_ns -= used_ns;
        let client = state.client;
        let turn = machine.turns.of(place.turn);
        turn.used_ns += used_ns;
        machine.counts.busy_ns += used_ns;
        let dispatcher = &mut machine.dispatcher;
        match turn.kind {
            Kind::Turn => dispatcher.charge(client_id(client), used_ns),
            Kind::Slot { is_gift } => dispatcher.charge_slot(client_id(client), used_ns, is_gift),
        }
        self.tell(Event::Ran {
            client,
            thread,
            cpu,
            used_ns,
        });
    }

    /// Brings everything that depends on time up to date.
    pub(super) fn account_all(&mut self) {
        for cpu in 0..self.machine.cpus.all.len() as u32 {
            self.account(cpu);
        }
    }
}

impl super::Machine {
    /// When a turn that begins now ends at the latest.
    fn turn_end_ns(&mut self, choice: Choice) -> u64 {
        if !self.is_aligned() {
            return choice.until_ns;
        }
        let quantum_ns = self.machine.quantum.0;
        // A tick that is due already stands, even if the quantum changed since.
        let tick_ns = *self.tick_ns.get_or_insert_with(|| {
            let tick_ns = (self.now_ns / quantum_ns + 1) * quantum_ns;
            self.queue.push(tick_ns, Due::Tick);
            tick_ns
        });
        match self.may_end_early(choice.client.0) {
            true => tick_ns.min(choice.until_ns),
            false => tick_ns,
        }
    }

    /// Whether a turn may end before the tick: by a limit, or as an early turn does in the
    /// paper's form (1999, 3.1).
    #[inline]
    fn may_end_early(&self, client: u32) -> bool {
        self.machine.hybrid.as_printed || self.is_limited(client)
    }

    /// Whether a client's CPU time is limited.
    #[inline]
    fn is_limited(&self, client: u32) -> bool {
        self.dispatcher.is_limited(client_id(client))
    }

    /// Sees to it that CPUs are given away when the first pause ends.
    #[inline]
    fn plan_resumption(&mut self) {
        let Some(resumption_ns) = self.dispatcher.next_resumption_ns() else {
            return;
        };
        // Where the time has come and the client still pauses, no CPU is free.
        let is_planned = self.resumption_ns.is_some_and(|ns| ns <= resumption_ns);
        if resumption_ns > self.now_ns && !is_planned {
            self.resumption_ns = Some(resumption_ns);
            self.queue.push(resumption_ns, Due::Resumption);
        }
    }

    /// Prefetches the memory of the likely next winners in a winner's pool: first the
    /// dispatcher's, then the machine's, then that of the thread, whose number is known by
    /// then.
    #[inline]
    fn prefetch_winners(&self, winner: u32) {
        if self.clients.len() >= MANY_CLIENTS {
            self.prefetch_winners_in(self.pool_of(winner));
        }
    }

    fn prefetch_winners_in(&self, pool: u32) {
        let dispatcher = &self.dispatcher;
        if let Some(client) = dispatcher.likely_winner_after(pool, WINNERS_AHEAD) {
            dispatcher.prefetch(client_id(client));
            prefetch(&self.clients, client as usize);
        }
        if let Some(client) = dispatcher.likely_winner_after(pool, WINNERS_AHEAD / 2) {
            let thread = self.clients[client as usize].ready.first;
            prefetch(&self.threads.all, thread as usize);
        }
    }

    /// Takes the thread of a client that has been ready longest.
    #[inline(always)]
    fn next_ready(&mut self, client: u32) -> Option<u32> {
        let state = &mut self.clients[client as usize];
        let thread = state.ready.pop(&self.threads.all)?;
        self.end_waiting(client);
        Some(thread)
    }

    /// A thread no longer runs in a turn. Returns which kind that is.
    fn unlink_running(&mut self, turn: u32, thread: u32) -> Kind {
        let after = self.threads.all[thread as usize].next;
        let turn = self.turns.of(turn);
        turn.cpus -= 1;
        let (kind, first) = (turn.kind, turn.running);
        if first == thread {
            turn.running = after;
            return kind;
        }
        let mut before = first;
        while self.threads.all[before as usize].next != thread {
            before = self.threads.all[before as usize].next;
        }
        self.threads.all[before as usize].next = after;
        kind
    }
}
