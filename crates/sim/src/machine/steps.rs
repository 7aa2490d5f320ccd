//! Instructions of threads.

use prorata_core::dispatcher::Dispatcher;
use prorata_core::hybrid::WakeClass;
use prorata_core::rng::Rng as _;
use prorata_scenario::RunError;
use prorata_scenario::event::{Event, Why};
use prorata_scenario::file::Time;
use prorata_scenario::plan::{Instruction, client_id, limits};
use prorata_scenario::stream::{Purpose, small_stream};
use prorata_scenario::threads::ThreadState;
use prorata_scenario::world::{Onwards, Waiting as _};

use super::turn_table::Kind;
use super::{Due, NONE, Simulation};
use crate::observer::Observer;

impl<O: Observer> Simulation<O> {
    /// Takes the steps of the thread on a CPU until it computes (true), or
    /// has left the CPU.
    pub(super) fn advance(&mut self, cpu: u32, thread: u32) -> bool {
        loop {
            let machine = &mut self.machine;
            let threads = machine.threads.len() as u64;
            let state = &mut machine.threads.all[thread as usize];
            if state.remaining_ns > 0 {
                return true;
            }
            let instruction = machine.code.instructions[state.instruction as usize];
            state.instruction += 1;
            machine.steps_at_once += 1;
            // A thread takes up to this many steps by itself, and its program
            // has no more (`limits::STEPS`) unless it loops.
            if machine.steps_at_once / limits::STEPS_AT_ONCE > threads {
                let client = state.client;
                self.fail(client, |at, client| RunError::Stuck { at, client });
                self.exit(cpu, thread);
                return false;
            }
            let stays = match instruction {
                Instruction::Compute(draw) => {
                    let draw = &machine.code.draws[draw as usize];
                    let compute_ns = machine.threads.draw(thread, draw);
                    machine.threads.all[thread as usize].remaining_ns = compute_ns;
                    true
                }
                Instruction::Sleep(draw) | Instruction::Block { draw, .. } => {
                    self.sleep(cpu, thread, draw)
                }
                Instruction::Set { register, to } => {
                    *machine.threads.register(thread, register) = to;
                    true
                }
                Instruction::Again { register, to } => {
                    let left = machine.threads.register(thread, register);
                    *left -= 1;
                    if *left > 0 {
                        machine.threads.all[thread as usize].instruction = to;
                    }
                    true
                }
                Instruction::Jump(to) => {
                    state.instruction = to;
                    true
                }
                Instruction::Unless { chance, to } => {
                    if state.rng.next_u64() >> 32 >= u64::from(chance) {
                        state.instruction = to;
                    }
                    true
                }
                Instruction::Past { draw, to } => {
                    let until_ns = machine
                        .threads
                        .draw(thread, &machine.code.draws[draw as usize]);
                    if machine.now_ns >= until_ns {
                        machine.threads.all[thread as usize].instruction = to;
                    }
                    true
                }
                Instruction::Yield => self.give_way(cpu, thread),
                Instruction::Fork(program) => self.fork(thread, program),
                Instruction::Exit => {
                    self.exit(cpu, thread);
                    false
                }
                other => match self.meet(thread, other) {
                    Onwards::GoesOn => true,
                    Onwards::Yields => self.give_way(cpu, thread),
                    Onwards::Waits => false,
                },
            };
            if !stays {
                return false;
            }
        }
    }

    fn sleep(&mut self, cpu: u32, thread: u32, draw: u32) -> bool {
        let machine = &mut self.machine;
        let sleep_ns = machine
            .threads
            .draw(thread, &machine.code.draws[draw as usize]);
        if sleep_ns == 0 {
            return true;
        }
        machine
            .queue
            .push(machine.now_ns + sleep_ns, Due::Wake { thread });
        self.leave_for(cpu, thread, ThreadState::Sleeping, Why::Sleeps);
        false
    }

    pub(super) fn wake(&mut self, thread: u32) {
        match self.machine.threads.all[thread as usize].state {
            ThreadState::Dying => self.machine.threads.free(thread),
            _ => self.go_on(thread),
        }
    }

    /// The rest of the turn goes to the client's other threads if any waits, else to the
    /// policy's choice. A client that runs on other CPUs too keeps them all, and a slot is the
    /// client's whatever it does.
    fn give_way(&mut self, cpu: u32, thread: u32) -> bool {
        let client = self.machine.threads.all[thread as usize].client;
        let state = &self.machine.clients[client as usize];
        let place = &self.machine.cpus.all[cpu as usize];
        let turn = self.machine.turns.get(place.turn);
        let alone = state.ready.first == NONE;
        let in_slot = turn.is_some_and(|turn| turn.kind != Kind::Turn);
        if alone && (in_slot || turn.is_some_and(|turn| turn.cpus > 1)) {
            return true;
        }
        self.leave(cpu, Why::Yielded);
        self.queue_up(thread);
        if alone {
            self.machine.dispatcher.end_turn(client_id(client));
            self.close_turn(client);
        }
        false
    }

    fn fork(&mut self, thread: u32, program: u32) -> bool {
        let client = self.machine.threads.all[thread as usize].client;
        if self.machine.threads.len() as u64 >= u64::from(limits::THREADS) {
            self.fail(client, |at, client| RunError::TooManyThreads { at, client });
        } else {
            self.add_thread(client, program);
        }
        true
    }

    fn add_thread(&mut self, client: u32, program: u32) {
        let machine = &mut self.machine;
        let entry = machine.code.entries[program as usize];
        let rng = small_stream(machine.seed, Purpose::Durations, machine.threads.made);
        let thread = machine.threads.add(client, entry, rng);
        machine.clients[client as usize].threads += 1;
        if machine.slots.is_some() {
            machine.thread_in_table(client, thread);
        }
        self.go_on(thread);
    }

    /// The thread on a CPU exits.
    fn exit(&mut self, cpu: u32, thread: u32) {
        let client = self.machine.threads.all[thread as usize].client;
        self.drop_obligations(thread);
        self.leave(cpu, Why::Exited);
        self.machine.clients[client as usize].runnable -= 1;
        self.machine.threads.free(thread);
        self.runnable_changed(client);
        self.thread_gone(client, thread);
    }

    fn thread_gone(&mut self, client: u32, thread: u32) {
        let state = &mut self.machine.clients[client as usize];
        state.threads -= 1;
        if state.threads == 0 {
            self.tell(Event::Ended { client });
        }
        if self.machine.slots.is_some() {
            self.thread_left_table(client, thread);
        }
    }

    /// A client starts afresh, unless it has threads.
    pub(super) fn start(&mut self, client: u32) {
        let state = &self.machine.clients[client as usize];
        if state.threads > 0 {
            return;
        }
        let program = self.machine.group(client).program;
        self.tell(Event::Started { client });
        self.start_rule(client);
        self.add_thread(client, program);
    }

    /// From their next start on all clients do nothing but compute.
    pub(crate) fn let_all_compute(&mut self) {
        // The built-in program is the last: no scenario of this mode has its own.
        let machine = &mut self.machine;
        let built_in = machine.code.entries.len() as u32 - 1;
        for group in &mut machine.groups {
            group.program = built_in;
        }
    }

    /// Ends all threads of a client. O(all threads).
    pub(super) fn stop(&mut self, client: u32) {
        for thread in 0..self.machine.threads.all.len() as u32 {
            if self.machine.threads.all[thread as usize].client == client {
                self.kill(client, thread);
            }
        }
    }

    fn kill(&mut self, client: u32, thread: u32) {
        let machine = &mut self.machine;
        let state = &machine.threads.all[thread as usize];
        let cpu = state.cpu;
        match state.state {
            ThreadState::Free | ThreadState::Dying => return,
            ThreadState::Running => {
                self.account(cpu.into());
                self.exit(cpu.into(), thread);
                return;
            }
            ThreadState::Ready => {
                let state = &mut machine.clients[client as usize];
                state.ready.remove(&mut machine.threads.all, thread);
                state.runnable -= 1;
                machine.end_waiting(client);
                self.drop_obligations(thread);
                self.machine.threads.free(thread);
                self.runnable_changed(client);
            }
            ThreadState::Sleeping => {
                // Its number is free when the event that wakes it has come.
                machine.threads.all[thread as usize].state = ThreadState::Dying;
                self.drop_obligations(thread);
            }
            ThreadState::Waiting => {
                self.stop_waiting(thread);
                self.drop_obligations(thread);
                self.machine.threads.free(thread);
            }
        }
        self.thread_gone(client, thread);
    }

    /// The thread on a CPU sleeps or waits.
    pub(super) fn leave_for(&mut self, cpu: u32, thread: u32, state: ThreadState, why: Why) {
        let machine = &mut self.machine;
        let waiter = &mut machine.threads.all[thread as usize];
        waiter.state = state;
        waiter.since_ns = machine.now_ns;
        let client = waiter.client;
        machine.clients[client as usize].runnable -= 1;
        self.leave(cpu, why);
        self.runnable_changed(client);
    }

    /// A thread that is new or has waited can run.
    pub(super) fn go_on(&mut self, thread: u32) {
        self.queue_up(thread);
        let client = self.machine.threads.all[thread as usize].client;
        self.machine.clients[client as usize].runnable += 1;
        match self.machine.is_hybrid {
            true => self.runnable_changed_after(client, self.wake_class(thread)),
            false => self.runnable_changed(client),
        }
        self.tell(Event::Ready { client, thread });
    }

    fn runnable_changed(&mut self, client: u32) {
        self.runnable_changed_after(client, WakeClass::User);
    }

    /// One of a client's threads woke from a sleep of this class, or blocked.
    #[inline]
    fn runnable_changed_after(&mut self, client: u32, class: WakeClass) {
        if self.machine.is_hybrid {
            self.runnable_changed_hybrid(client, class);
            self.close_ended_turn(client);
            return;
        }
        let machine = &mut self.machine;
        let runnable = machine.clients[client as usize].runnable;
        if machine.dispatcher.competes(client_id(client)) != (runnable > 0) {
            if machine.slots.is_some() {
                self.account_slots();
            }
            let machine = &mut self.machine;
            machine.pass_time(machine.pool_of(client));
        }
        let dispatcher: &mut Dispatcher = &mut self.machine.dispatcher;
        dispatcher.set_runnable(client_id(client), runnable);
        self.close_ended_turn(client);
    }

    #[inline]
    fn close_ended_turn(&mut self, client: u32) {
        let state = &self.machine.clients[client as usize];
        if state.turn == NONE {
            return;
        }
        // Of a client whose other threads are in slots the dispatcher knows it.
        let in_slots = self.machine.slots.is_some();
        if state.runnable == 0 || (in_slots && !self.machine.dispatcher.runs(client_id(client))) {
            self.close_turn(client);
        }
    }

    /// The run cannot continue.
    fn fail(&mut self, client: u32, error: impl FnOnce(Time, String) -> RunError) {
        let at = Time(self.machine.now_ns);
        let name = self.machine.client_name(client).into_owned();
        self.machine.failure.get_or_insert_with(|| error(at, name));
    }
}
