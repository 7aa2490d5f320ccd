//! What tasks do on the machine: the programs, pipes and mutexes of every
//! scenario.

use prorata_core::ledger::{Ledger, Operation, Outcome, Principal};
use prorata_core::rng::Rng as _;
use prorata_scenario::RunError;
use prorata_scenario::event::{Event, Why};
use prorata_scenario::file::Time;
use prorata_scenario::plan::{Instruction, group_of, limits};
use prorata_scenario::stream::{Purpose, small_stream};
use prorata_scenario::threads::ThreadState;
use prorata_scenario::world::{Objects, Onwards, Waiting as _, World};

use crate::open_decision::Waking;
use crate::processor::{Doing, Leaves, Then};
use crate::simulation::{Due, SmpSimulation};

impl SmpSimulation {
    /// The task of a CPU takes its next step, as it has nothing left to compute.
    /// Returns whether the CPU goes on at once.
    pub(crate) fn next_step(&mut self, cpu: u32) -> bool {
        let task = self.cpus[cpu as usize].task;
        let thread = &mut self.threads.all[task as usize];
        let instruction = self.code.instructions[thread.instruction as usize];
        match instruction {
            Instruction::Compute(_)
            | Instruction::Set { .. }
            | Instruction::Again { .. }
            | Instruction::Unless { .. }
            | Instruction::Past { .. }
            | Instruction::Jump(_) => {
                self.steps_at_once += 1;
                if self.steps_at_once > limits::STEPS_AT_ONCE {
                    self.fail(task, |at, client| RunError::Stuck { at, client });
                    return false;
                }
                self.take_step(cpu, task);
                true
            }
            _ => self.call(cpu, task, instruction),
        }
    }

    /// The task of a CPU begins a system call. Returns whether the CPU goes on at once.
    fn call(&mut self, cpu: u32, task: u32, instruction: Instruction) -> bool {
        if let Instruction::Send(pipe) = instruction
            && self.costs.socket_locks
            && !self.sockets.lock(pipe, task)
        {
            self.counts.socket_waits += 1;
            self.block(task, Why::WaitsForMutex);
            return true;
        }
        let mut ns = self.costs.system_call.0;
        if self.brings_segment(cpu, instruction) {
            self.counts.segments += 1;
            // A writer's soft interrupt runs as the call returns.
            if !matches!(instruction, Instruction::Send(_)) {
                ns += self.costs.segment.0;
            }
        }
        self.stay(cpu, self.costs.on_bus_ns(ns), Then::Acts)
    }

    /// Whether a step brings a segment to the other end of a socket.
    fn brings_segment(&mut self, cpu: u32, instruction: Instruction) -> bool {
        if self.costs.segment == Time::ZERO {
            return false;
        }
        match instruction {
            Instruction::Send(pipe) => {
                let leaves = self.sockets.begin_write(pipe);
                self.cpus[cpu as usize].leaves_at_once = leaves;
                leaves
            }
            Instruction::Receive(pipe) => self.sockets.begin_read(pipe),
            _ => false,
        }
    }

    pub(crate) fn take_step(&mut self, cpu: u32, task: u32) {
        let thread = &mut self.threads.all[task as usize];
        let instruction = self.code.instructions[thread.instruction as usize];
        thread.instruction += 1;
        match instruction {
            Instruction::Compute(draw) => {
                let draw = &self.code.draws[draw as usize];
                let ns = self.threads.draw(task, draw);
                self.threads.all[task as usize].remaining_ns = self.costs.on_bus_ns(ns);
            }
            Instruction::Sleep(draw) | Instruction::Block { draw, .. } => {
                self.counts.sleeps += 1;
                let draw = &self.code.draws[draw as usize];
                let wake_ns = self.now_ns + self.threads.draw(task, draw);
                self.sleep(task, wake_ns);
            }
            Instruction::Set { register, to } => *self.threads.register(task, register) = to,
            Instruction::Again { register, to } => {
                let left = self.threads.register(task, register);
                *left -= 1;
                if *left > 0 {
                    self.threads.all[task as usize].instruction = to;
                }
            }
            Instruction::Jump(to) => thread.instruction = to,
            Instruction::Unless { chance, to } => {
                if thread.rng.next_u64() >> 32 >= u64::from(chance) {
                    thread.instruction = to;
                }
            }
            Instruction::Past { draw, to } => {
                let draw = &self.code.draws[draw as usize];
                if self.now_ns >= self.threads.draw(task, draw) {
                    self.threads.all[task as usize].instruction = to;
                }
            }
            Instruction::Yield => {
                self.counts.yields += 1;
                self.cpus[cpu as usize].leaves = Some(Leaves::Yields);
            }
            Instruction::Fork(program) => self.fork(task, program),
            Instruction::Exit => {
                self.drop_obligations(task);
                self.cpus[cpu as usize].leaves = Some(Leaves::Exits);
            }
            other => {
                if let Instruction::Send(pipe) = other {
                    self.end_write(cpu, pipe);
                }
                let onwards = self.meet(task, other);
                self.has_met(cpu, other, onwards == Onwards::Waits);
                if onwards == Onwards::Yields {
                    self.cpus[cpu as usize].leaves = Some(Leaves::Yields);
                }
            }
        }
    }

    /// A writer releases its socket, which wakes another writer. Then the soft interrupt carries
    /// the segment and wakes the reader.
    fn end_write(&mut self, cpu: u32, pipe: u32) {
        if self.costs.socket_locks
            && let Some(next) = self.sockets.release(pipe)
        {
            self.ready(next);
        }
        let state = &mut self.cpus[cpu as usize];
        if state.leaves_at_once {
            state.soft_interrupt_ns = self.costs.segment.0;
        }
    }

    /// A step that involves other threads has been taken.
    fn has_met(&mut self, cpu: u32, instruction: Instruction, waits: bool) {
        let has_segments = self.costs.segment > Time::ZERO;
        match instruction {
            Instruction::Signal(_) => self.counts.sends += 1,
            Instruction::Send(_) if waits => self.counts.waits_for_room += 1,
            Instruction::Send(pipe) => {
                self.counts.sends += 1;
                let left_at_once = self.cpus[cpu as usize].leaves_at_once;
                if has_segments {
                    self.sockets.wrote(pipe, left_at_once);
                }
            }
            Instruction::Receive(pipe) if has_segments => self.sockets.read(pipe, waits),
            _ => {}
        }
    }

    fn fork(&mut self, parent: u32, program: u32) {
        let client = self.threads.all[parent as usize].client;
        if self.threads.len() as u64 >= u64::from(limits::THREADS) {
            self.fail(parent, |at, client| RunError::TooManyThreads { at, client });
            return;
        }
        self.add_thread(client, program);
    }

    /// Adds a thread of a client. The CPU at work makes it runnable.
    pub(crate) fn add_thread(&mut self, client: u32, program: u32) {
        let entry = self.code.entries[program as usize];
        let rng = small_stream(self.seed, Purpose::Durations, self.threads.made);
        let thread = self.threads.add(client, entry, rng);
        self.threads.all[thread as usize].state = ThreadState::Waiting;
        let nice = group_of(&self.groups, client).nice;
        self.queues.add(thread, client, nice, self.here);
        self.alive += 1;
        self.ready(thread);
    }

    fn sleep(&mut self, task: u32, wake_ns: u64) {
        self.queue.push(wake_ns, Due::Wake { task });
        self.block(task, Why::Sleeps);
    }

    /// A sleep is over: the CPU that the task ran on wakes it.
    pub(crate) fn wake_due(&mut self, task: u32) {
        self.here = u32::from(self.threads.all[task as usize].cpu);
        self.ready(task);
        let cpu = &self.cpus[self.here as usize];
        if matches!(cpu.doing, Doing::Idles | Doing::Computes) {
            self.interrupt(self.here, self.costs.timer.0);
        }
    }

    /// The run cannot go on.
    fn fail(&mut self, task: u32, error: impl FnOnce(Time, String) -> RunError) {
        let client = self.threads.all[task as usize].client;
        let group = self.groups.iter().find(|g| g.clients.contains(&client));
        let name = group.map_or(String::new(), |group| group.name.clone());
        let at = Time(self.now_ns);
        self.failure.get_or_insert_with(|| error(at, name));
    }
}

impl World for SmpSimulation {
    /// As `wake_up_interruptible()` of Linux 2.4 on a socket that has room.
    const WAKES_ALL_SENDERS: bool = true;

    fn wakes_senders(&self, capacity: u32, messages: u32) -> bool {
        self.writers.wake(capacity, messages)
    }

    fn objects(&mut self) -> &mut Objects {
        &mut self.objects
    }

    fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn apply(&mut self, operation: Operation) -> Option<Outcome> {
        let checked = self.ledger.check(&Principal::ROOT, operation).ok()?;
        Some(self.ledger.apply(checked))
    }

    fn client_of(&self, thread: u32) -> u32 {
        self.threads.all[thread as usize].client
    }

    fn threads_of(&self, client: u32) -> u32 {
        let threads = self.threads.all.iter();
        let own =
            threads.filter(|thread| thread.client == client && thread.state != ThreadState::Free);
        own.count() as u32
    }

    fn waits_in(&self, thread: u32) -> Instruction {
        let next = self.threads.all[thread as usize].instruction;
        self.code.instructions[next as usize - 1]
    }

    fn waited_ns(&self, thread: u32) -> u64 {
        self.now_ns - self.threads.all[thread as usize].since_ns
    }

    fn block(&mut self, thread: u32, _: Why) {
        let waiter = &mut self.threads.all[thread as usize];
        waiter.state = ThreadState::Waiting;
        waiter.since_ns = self.now_ns;
        self.cpus[usize::from(waiter.cpu)].leaves = Some(Leaves::Blocks);
    }

    /// As `wake_up_process()`: the CPU at work wakes the task, which may not have blocked yet.
    fn ready(&mut self, thread: u32) {
        let waiter = &mut self.threads.all[thread as usize];
        waiter.state = ThreadState::Ready;
        waiter.since_ns = self.now_ns;
        let waking = Waking {
            task: thread,
            cpu: waiter.cpu.into(),
            again: false,
            by_soft_interrupt: self.cpus[self.here as usize].soft_interrupt_ns > 0,
        };
        self.cpus[self.here as usize].wakes.push_back(waking);
    }

    fn repeat(&mut self, thread: u32) {
        self.threads.all[thread as usize].instruction -= 1;
        self.ready(thread);
    }

    fn tell(&mut self, _: Event<'_>) {}
}
