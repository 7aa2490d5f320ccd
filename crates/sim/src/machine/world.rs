//! The simulated machine as a world in which threads meet.

use prorata_core::ledger::{Ledger, Operation, Outcome, Principal};
use prorata_scenario::event::{Event, Why};
use prorata_scenario::plan::Instruction;
use prorata_scenario::threads::ThreadState;
use prorata_scenario::world::{Objects, World};

use super::Simulation;
use crate::observer::Observer;

impl<O: Observer> World for Simulation<O> {
    fn objects(&mut self) -> &mut Objects {
        &mut self.machine.objects
    }

    fn ledger(&self) -> &Ledger {
        self.machine.dispatcher.ledger()
    }

    fn apply(&mut self, operation: Operation) -> Option<Outcome> {
        let dispatcher = &mut self.machine.dispatcher;
        match dispatcher.ledger().check(&Principal::ROOT, operation) {
            Ok(checked) => Some(dispatcher.apply(checked)),
            Err(error) => {
                self.machine.counts.refused += 1;
                Simulation::tell(self, Event::Refused { error: &error });
                None
            }
        }
    }

    fn client_of(&self, thread: u32) -> u32 {
        self.machine.threads.all[thread as usize].client
    }

    fn threads_of(&self, client: u32) -> u32 {
        self.machine.clients[client as usize].threads
    }

    fn waits_in(&self, thread: u32) -> Instruction {
        let next = self.machine.threads.all[thread as usize].instruction;
        self.machine.code.instructions[next as usize - 1]
    }

    fn waited_ns(&self, thread: u32) -> u64 {
        self.machine.now_ns - self.machine.threads.all[thread as usize].since_ns
    }

    fn block(&mut self, thread: u32, why: Why) {
        let cpu = self.machine.threads.all[thread as usize].cpu;
        self.leave_for(cpu.into(), thread, ThreadState::Waiting, why);
    }

    fn ready(&mut self, thread: u32) {
        self.go_on(thread);
    }

    fn tell(&mut self, event: Event<'_>) {
        Simulation::tell(self, event);
    }
}
