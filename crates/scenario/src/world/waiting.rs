//! Waits of threads: for mutexes, calls, pipes and signals.

use prorata_core::ledger::Target;

use super::objects::NONE;
use super::{Rights, World};
use crate::event::{Event, Why};
use crate::plan::Instruction;

/// The steps that involve other threads. Where they return whether the thread continues,
/// false means that it waits.
pub trait Waiting: Rights {
    /// Takes such a step. Returns how the thread continues.
    ///
    /// # Panics
    ///
    /// If the instruction involves no other thread.
    fn meet(&mut self, thread: u32, instruction: Instruction) -> Onwards {
        let goes_on = match instruction {
            Instruction::Wait(signal) => self.wait(thread, signal),
            Instruction::Signal(signal) => {
                self.signal(signal);
                true
            }
            Instruction::Lock(mutex) => self.lock(thread, mutex),
            Instruction::Unlock(mutex) => {
                return match self.unlock(thread, mutex) {
                    true => Onwards::Yields,
                    false => Onwards::GoesOn,
                };
            }
            Instruction::Call(service) => {
                self.call(thread, service);
                false
            }
            Instruction::Accept(service) => self.accept(thread, service),
            Instruction::Reply => {
                self.reply(thread);
                true
            }
            Instruction::Send(pipe) => self.send(thread, pipe),
            Instruction::Receive(pipe) => self.receive(thread, pipe),
            other => unreachable!("{other:?} involves no other thread"),
        };
        match goes_on {
            true => Onwards::GoesOn,
            false => Onwards::Waits,
        }
    }

    /// Waits for a signal, unless one was kept.
    fn wait(&mut self, thread: u32, signal: u32) -> bool {
        let state = &mut self.objects().signals[signal as usize];
        if state.kept > 0 {
            state.kept -= 1;
            return true;
        }
        state.waiters.push_back(thread);
        self.block(thread, Why::Waits);
        false
    }

    /// Wakes one thread that waits for the signal, now or later.
    fn signal(&mut self, signal: u32) {
        let state = &mut self.objects().signals[signal as usize];
        match state.waiters.pop_front() {
            Some(waiter) => self.ready(waiter),
            None => state.kept += 1,
        }
    }

    /// Puts a message into a pipe.
    fn send(&mut self, thread: u32, pipe: u32) -> bool {
        let state = &mut self.objects().pipes[pipe as usize];
        if let Some(receiver) = state.receivers.pop_front() {
            self.ready(receiver);
        } else if state.messages < state.capacity {
            state.messages += 1;
        } else {
            state.senders.push_back(thread);
            self.block(thread, Why::Waits);
            return false;
        }
        true
    }

    /// Takes a message out of a pipe.
    fn receive(&mut self, thread: u32, pipe: u32) -> bool {
        let state = &mut self.objects().pipes[pipe as usize];
        if state.messages == 0 {
            state.receivers.push_back(thread);
            self.block(thread, Why::Waits);
            return false;
        }
        if Self::WAKES_ALL_SENDERS {
            state.messages -= 1;
            let (capacity, messages) = (state.capacity, state.messages);
            if self.wakes_senders(capacity, messages) {
                self.wake_senders(pipe);
            }
            return true;
        }
        // The next sender's message takes the room at once.
        match state.senders.pop_front() {
            Some(sender) => self.ready(sender),
            None => state.messages -= 1,
        }
        true
    }

    /// Wakes all waiting senders, and each sends anew. The last to wait wakes first,
    /// because Linux's `add_wait_queue()` puts it at the head.
    fn wake_senders(&mut self, pipe: u32) {
        while let Some(sender) = self.objects().pipes[pipe as usize].senders.pop_back() {
            self.repeat(sender);
        }
    }

    /// Acquires a mutex.
    fn lock(&mut self, thread: u32, mutex: u32) -> bool {
        let state = &mut self.objects().mutexes[mutex as usize];
        if state.holder == NONE {
            state.holder = thread;
            self.move_inheritance(mutex);
            self.tell_acquired(thread, mutex, 0);
            return true;
        }
        state.waiters.push_back(thread);
        let currency = state.lottery.as_ref().map(|lottery| lottery.currency);
        self.block(thread, Why::WaitsForMutex);
        if let Some(currency) = currency {
            self.lend(thread, vec![Target::Currency(currency)]);
        }
        false
    }

    /// Releases a mutex. Returns whether the thread is to yield its CPU. It yields after a
    /// lottery (1994, 6.1) unless the mutex says otherwise.
    fn unlock(&mut self, thread: u32, mutex: u32) -> bool {
        let client = self.client_of(thread);
        self.tell(Event::Released { client, mutex });
        let next = self.next_holder(mutex);
        let state = &mut self.objects().mutexes[mutex as usize];
        state.holder = next.unwrap_or(NONE);
        let yields = state.lottery.is_some() && next.is_some() && !state.keeps_cpu;
        if let Some(next) = next {
            state.waiters.retain(|waiter| *waiter != next);
            self.end_loan(next);
        }
        self.move_inheritance(mutex);
        if let Some(next) = next {
            let waited_ns = self.waited_ns(next);
            self.tell_acquired(next, mutex, waited_ns);
            self.ready(next);
        }
        yields
    }

    /// Tells that a thread has a mutex.
    fn tell_acquired(&mut self, thread: u32, mutex: u32, waited_ns: u64) {
        let client = self.client_of(thread);
        self.tell(Event::Acquired {
            client,
            thread,
            mutex,
            waited_ns,
        });
    }

    /// Calls a service and waits for the reply.
    fn call(&mut self, thread: u32, service: u32) {
        let client = self.client_of(thread);
        self.block(thread, Why::Waits);
        self.tell(Event::Called { client, service });
        let state = &mut self.objects().services[service as usize];
        match state.workers.pop_front() {
            Some(worker) => {
                self.serve(worker, thread);
                self.ready(worker);
            }
            None => {
                state.calls.push_back(thread);
                let servers = self.servers(service);
                self.lend(thread, servers);
            }
        }
    }

    /// While no worker is free, a call funds all clients that could take it: "This would
    /// accelerate all server threads, decreasing the delay until one becomes available"
    /// (1994, footnote 4). So even a server without tickets of its own reaches the step
    /// that takes calls.
    fn servers(&mut self, service: u32) -> Vec<Target> {
        let servers = self.objects().services[service as usize].servers.clone();
        let alive = servers.into_iter().filter(|c| self.threads_of(*c) > 0);
        let receivers = self.ledger().limits().receivers as usize;
        alive
            .take(receivers)
            .map(|client| Target::Client(self.client_id(client)))
            .collect()
    }

    /// Takes a call or waits for one.
    fn accept(&mut self, thread: u32, service: u32) -> bool {
        let state = &mut self.objects().services[service as usize];
        if let Some(caller) = state.calls.pop_front() {
            self.serve(thread, caller);
            return true;
        }
        state.workers.push_back(thread);
        self.block(thread, Why::Waits);
        false
    }

    /// A worker takes a call; the caller lends it tickets from now on.
    fn serve(&mut self, worker: u32, caller: u32) {
        self.objects().callers.insert(worker, caller);
        let client = self.client_of(worker);
        self.end_loan(caller);
        self.lend(caller, vec![Target::Client(self.client_id(client))]);
    }

    /// Ends the call that a worker serves, unless the caller has exited.
    fn reply(&mut self, worker: u32) {
        let Some(caller) = self.objects().callers.remove(&worker) else {
            return;
        };
        let Instruction::Call(service) = self.waits_in(caller) else {
            unreachable!("a thread that is answered has called");
        };
        let (client, took_ns) = (self.client_of(caller), self.waited_ns(caller));
        self.end_loan(caller);
        self.tell(Event::Answered {
            client,
            service,
            took_ns,
        });
        self.ready(caller);
    }

    /// A waiting thread is about to exit.
    fn stop_waiting(&mut self, thread: u32) {
        let instruction = self.waits_in(thread);
        let objects = self.objects();
        let list = match instruction {
            Instruction::Wait(signal) => &mut objects.signals[signal as usize].waiters,
            Instruction::Lock(mutex) => &mut objects.mutexes[mutex as usize].waiters,
            Instruction::Send(pipe) => &mut objects.pipes[pipe as usize].senders,
            Instruction::Receive(pipe) => &mut objects.pipes[pipe as usize].receivers,
            Instruction::Accept(service) => &mut objects.services[service as usize].workers,
            Instruction::Call(service) => {
                // A worker that serves the call already will answer no thread.
                objects.callers.retain(|_, caller| *caller != thread);
                &mut objects.services[service as usize].calls
            }
            other => unreachable!("no thread waits in {other:?}"),
        };
        list.retain(|waiter| *waiter != thread);
    }

    /// A thread is about to exit: it releases its mutexes and answers its call now.
    fn drop_obligations(&mut self, thread: u32) {
        self.end_loan(thread);
        self.reply(thread);
        for mutex in 0..self.objects().mutexes.len() as u32 {
            if self.objects().mutexes[mutex as usize].holder == thread {
                self.unlock(thread, mutex);
            }
        }
    }
}

impl<W: World> Waiting for W {}

/// How a thread continues after a step that involved others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Onwards {
    /// It takes the next step.
    GoesOn,
    /// It yields its CPU, then takes the next step.
    Yields,
    /// It waits.
    Waits,
}
