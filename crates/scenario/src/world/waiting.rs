//! What threads wait for: mutexes, calls, pipes and signals.

use prorata_core::ledger::Target;

use super::objects::NONE;
use super::{Rights, World};
use crate::event::{Event, Why};
use crate::plan::Instruction;

/// The steps that involve other threads. Where they return whether the thread
/// goes on, false means that it waits.
pub trait Waiting: Rights {
    /// Takes such a step. Returns whether the thread goes on at once.
    ///
    /// # Panics
    ///
    /// If the instruction involves nobody else.
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
            other => unreachable!("{other:?} involves nobody else"),
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

    /// Lets one thread that waits, now or later, go on.
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
            self.wake_senders(pipe);
            return true;
        }
        // The place goes to the next sender, message and all.
        match state.senders.pop_front() {
            Some(sender) => self.ready(sender),
            None => state.messages -= 1,
        }
        true
    }

    /// All who wait to send do so anew. Who came last is woken first, as Linux's
    /// `add_wait_queue()` puts it at the head.
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

    /// Gives a mutex up. Returns whether the thread is to yield its CPU: so it
    /// is where there was a lottery (1994, 6.1), unless the mutex says otherwise.
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

    /// A thread has a mutex.
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

    /// While no worker is free, a call funds all who could take it: "This
    /// would accelerate all server threads, decreasing the delay until one
    /// becomes available" (1994, footnote 4). So a server without tickets of
    /// its own gets to where it takes calls, too.
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

    /// A worker takes a call; the caller's tickets work for it from now on.
    fn serve(&mut self, worker: u32, caller: u32) {
        self.objects().callers.insert(worker, caller);
        let client = self.client_of(worker);
        self.end_loan(caller);
        self.lend(caller, vec![Target::Client(self.client_id(client))]);
    }

    /// Ends the call that a worker serves, unless the caller is gone.
    fn reply(&mut self, worker: u32) {
        let Some(caller) = self.objects().callers.remove(&worker) else {
            return;
        };
        let Instruction::Call(service) = self.waits_in(caller) else {
            unreachable!("who is answered has called");
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

    /// A thread that waits is about to go.
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
                // Whoever serves it already finishes for nobody.
                objects.callers.retain(|_, caller| *caller != thread);
                &mut objects.services[service as usize].calls
            }
            other => unreachable!("nobody waits in {other:?}"),
        };
        list.retain(|waiter| *waiter != thread);
    }

    /// A thread is about to go: what others wait for from it happens now.
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

/// How a thread goes on after a step that involved others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Onwards {
    /// With the next step.
    GoesOn,
    /// With the next step, once it has given its CPU away.
    Yields,
    /// It waits.
    Waits,
}
