//! What threads wait for: mutexes, calls, pipes and signals.

use std::collections::VecDeque;

use prorata_core::ids::{CurrencyId, TicketId};
use prorata_core::ledger::Target;

use super::threads::State;
use super::{Lots, Machine, NONE, Simulation};
use crate::observer::{Event, Observer, Why};
use crate::plan::{Instruction, MutexPlan, ServicePlan, client_id};
use crate::stream::{Purpose, stream};

/// A mutex.
#[derive(Debug)]
pub(super) struct Mutex {
    pub(super) name: String,
    /// Which thread has it; [`NONE`] while it is free.
    pub(super) holder: u32,
    /// Threads that wait, first come first.
    pub(super) waiters: VecDeque<u32>,
    /// What a lottery among them needs, if there is one.
    pub(super) lottery: Option<MutexLottery>,
    keeps_cpu: bool,
}

/// The rights of a lottery-scheduled mutex (1994, 6.1).
#[derive(Debug)]
pub(super) struct MutexLottery {
    /// Funded by those that wait.
    pub(super) currency: CurrencyId,
    /// Issued in it, funds the holder.
    pub(super) inheritance: TicketId,
    pub(super) lots: Lots,
}

pub(super) fn mutexes(plans: Vec<MutexPlan>, seed: u64) -> Vec<Mutex> {
    let mutexes = plans.into_iter().zip(0..).map(|(plan, number)| Mutex {
        name: plan.name,
        holder: NONE,
        waiters: VecDeque::new(),
        keeps_cpu: plan.keeps_cpu,
        lottery: plan.lottery.map(|(currency, inheritance)| MutexLottery {
            currency,
            inheritance,
            lots: stream(seed, Purpose::Mutex, number),
        }),
    });
    mutexes.collect()
}

/// A pipe.
#[derive(Debug)]
pub(super) struct Pipe {
    capacity: u32,
    messages: u32,
    senders: VecDeque<u32>,
    receivers: VecDeque<u32>,
}

impl Pipe {
    pub(super) fn new(capacity: u32) -> Pipe {
        Pipe {
            capacity,
            messages: 0,
            senders: VecDeque::new(),
            receivers: VecDeque::new(),
        }
    }
}

/// A service: calls wait for workers or workers for calls.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) name: String,
    /// Threads whose call nobody serves yet, first come first.
    calls: VecDeque<u32>,
    workers: VecDeque<u32>,
    /// The clients that take its calls.
    servers: Vec<u32>,
}

impl Service {
    pub(super) fn new(plan: ServicePlan) -> Service {
        Service {
            name: plan.name,
            servers: plan.servers,
            calls: VecDeque::new(),
            workers: VecDeque::new(),
        }
    }
}

/// Signals that nobody waited for, or threads that wait.
#[derive(Clone, Default, Debug)]
pub(super) struct Signal {
    kept: u64,
    waiters: VecDeque<u32>,
}

impl Machine {
    /// What a thread did last.
    fn last_instruction(&self, thread: u32) -> Instruction {
        let next = self.threads.all[thread as usize].instruction;
        self.code.instructions[next as usize - 1]
    }
}

/// In each of these the thread runs on the CPU; false if it has left it.
impl<O: Observer> Simulation<O> {
    pub(super) fn wait(&mut self, cpu: u32, thread: u32, signal: u32) -> bool {
        let state = &mut self.machine.signals[signal as usize];
        if state.kept > 0 {
            state.kept -= 1;
            return true;
        }
        state.waiters.push_back(thread);
        self.block(cpu, thread, State::Waiting, Why::Waits);
        false
    }

    pub(super) fn signal(&mut self, signal: u32) {
        let state = &mut self.machine.signals[signal as usize];
        match state.waiters.pop_front() {
            Some(waiter) => self.ready(waiter),
            None => state.kept += 1,
        }
    }

    pub(super) fn send(&mut self, cpu: u32, thread: u32, pipe: u32) -> bool {
        let state = &mut self.machine.pipes[pipe as usize];
        if let Some(receiver) = state.receivers.pop_front() {
            self.ready(receiver);
        } else if state.messages < state.capacity {
            state.messages += 1;
        } else {
            state.senders.push_back(thread);
            self.block(cpu, thread, State::Waiting, Why::Waits);
            return false;
        }
        true
    }

    pub(super) fn receive(&mut self, cpu: u32, thread: u32, pipe: u32) -> bool {
        let state = &mut self.machine.pipes[pipe as usize];
        if state.messages == 0 {
            state.receivers.push_back(thread);
            self.block(cpu, thread, State::Waiting, Why::Waits);
            return false;
        }
        // The place goes to the next sender, message and all.
        match state.senders.pop_front() {
            Some(sender) => self.ready(sender),
            None => state.messages -= 1,
        }
        true
    }

    pub(super) fn lock(&mut self, cpu: u32, thread: u32, mutex: u32) -> bool {
        let state = &mut self.machine.mutexes[mutex as usize];
        if state.holder == NONE {
            state.holder = thread;
            self.move_inheritance(mutex);
            self.tell_acquired(thread, mutex, 0);
            return true;
        }
        state.waiters.push_back(thread);
        let currency = state.lottery.as_ref().map(|lottery| lottery.currency);
        self.block(cpu, thread, State::Waiting, Why::WaitsForMutex);
        if let Some(currency) = currency {
            self.lend(thread, vec![Target::Currency(currency)]);
        }
        false
    }

    /// Gives a mutex up. Returns whether the thread is to yield its CPU: so it
    /// is where there was a lottery (1994, 6.1), unless the mutex says otherwise.
    pub(super) fn unlock(&mut self, thread: u32, mutex: u32) -> bool {
        let client = self.machine.threads.all[thread as usize].client;
        self.tell(Event::Released { client, mutex });
        let next = self.next_holder(mutex);
        let state = &mut self.machine.mutexes[mutex as usize];
        state.holder = next.unwrap_or(NONE);
        let yields = state.lottery.is_some() && next.is_some() && !state.keeps_cpu;
        if let Some(next) = next {
            state.waiters.retain(|waiter| *waiter != next);
            self.end_loan(next);
        }
        self.move_inheritance(mutex);
        if let Some(next) = next {
            let waiter = &self.machine.threads.all[next as usize];
            let waited_ns = self.machine.now_ns - waiter.since_ns;
            self.tell_acquired(next, mutex, waited_ns);
            self.ready(next);
        }
        yields
    }

    fn tell_acquired(&mut self, thread: u32, mutex: u32, waited_ns: u64) {
        let client = self.machine.threads.all[thread as usize].client;
        self.tell(Event::Acquired {
            client,
            thread,
            mutex,
            waited_ns,
        });
    }

    pub(super) fn call(&mut self, cpu: u32, thread: u32, service: u32) {
        let client = self.machine.threads.all[thread as usize].client;
        self.block(cpu, thread, State::Waiting, Why::Waits);
        self.tell(Event::Called { client, service });
        match self.machine.services[service as usize].workers.pop_front() {
            Some(worker) => {
                self.serve(worker, thread);
                self.ready(worker);
            }
            None => {
                self.machine.services[service as usize]
                    .calls
                    .push_back(thread);
                self.lend(thread, self.servers(service));
            }
        }
    }

    /// While no worker is free, a call funds all who could take it: "This
    /// would accelerate all server threads, decreasing the delay until one
    /// becomes available" (1994, footnote 4). So a server without tickets of
    /// its own gets to where it takes calls, too.
    fn servers(&self, service: u32) -> Vec<Target> {
        let machine = &self.machine;
        let servers = machine.services[service as usize].servers.iter();
        let alive = servers.filter(|client| machine.is_alive(**client));
        let receivers = machine.dispatcher.ledger().limits().receivers as usize;
        alive
            .take(receivers)
            .map(|client| Target::Client(client_id(*client)))
            .collect()
    }

    pub(super) fn accept(&mut self, cpu: u32, thread: u32, service: u32) -> bool {
        let state = &mut self.machine.services[service as usize];
        if let Some(caller) = state.calls.pop_front() {
            self.serve(thread, caller);
            return true;
        }
        state.workers.push_back(thread);
        self.block(cpu, thread, State::Waiting, Why::Waits);
        false
    }

    /// A worker takes a call; the caller's tickets work for it from now on.
    fn serve(&mut self, worker: u32, caller: u32) {
        let threads = &mut self.machine.threads.all;
        threads[caller as usize].state = State::Served;
        threads[worker as usize].caller = caller;
        let client = threads[worker as usize].client;
        self.end_loan(caller);
        self.lend(caller, vec![Target::Client(client_id(client))]);
    }

    /// Ends the call that a worker serves, unless the caller is gone.
    pub(super) fn reply(&mut self, worker: u32) {
        let state = &mut self.machine.threads.all[worker as usize];
        let caller = std::mem::replace(&mut state.caller, NONE);
        if caller == NONE {
            return;
        }
        let Instruction::Call(service) = self.machine.last_instruction(caller) else {
            unreachable!("who is answered has called");
        };
        let thread = &self.machine.threads.all[caller as usize];
        let (client, took_ns) = (thread.client, self.machine.now_ns - thread.since_ns);
        self.end_loan(caller);
        self.tell(Event::Answered {
            client,
            service,
            took_ns,
        });
        self.ready(caller);
    }

    /// A thread that waits is about to go.
    pub(super) fn stop_waiting(&mut self, thread: u32) {
        let machine = &mut self.machine;
        if machine.threads.all[thread as usize].state == State::Served {
            // Its worker finishes for nobody.
            let mut threads = machine.threads.all.iter_mut();
            if let Some(worker) = threads.find(|worker| worker.caller == thread) {
                worker.caller = NONE;
            }
            return;
        }
        let list = match machine.last_instruction(thread) {
            Instruction::Wait(signal) => &mut machine.signals[signal as usize].waiters,
            Instruction::Lock(mutex) => &mut machine.mutexes[mutex as usize].waiters,
            Instruction::Send(pipe) => &mut machine.pipes[pipe as usize].senders,
            Instruction::Receive(pipe) => &mut machine.pipes[pipe as usize].receivers,
            Instruction::Accept(service) => &mut machine.services[service as usize].workers,
            Instruction::Call(service) => &mut machine.services[service as usize].calls,
            other => unreachable!("nobody waits in {other:?}"),
        };
        list.retain(|waiter| *waiter != thread);
    }

    /// A thread is about to go: what others wait for from it happens now.
    pub(super) fn drop_obligations(&mut self, thread: u32) {
        self.end_loan(thread);
        self.reply(thread);
        for mutex in 0..self.machine.mutexes.len() as u32 {
            if self.machine.mutexes[mutex as usize].holder == thread {
                self.unlock(thread, mutex);
            }
        }
    }
}
