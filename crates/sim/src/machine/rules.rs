//! Tickets that change by themselves.

use prorata_scenario::event::Event;
use prorata_scenario::world::World as _;

use super::{Due, Machine, NONE, Simulation};
use crate::observer::Observer;

impl<O: Observer> Simulation<O> {
    /// A client with a rule starts.
    pub(super) fn start_rule(&mut self, client: u32) {
        if self.machine.rules.begins(client) {
            self.follow_rule(client);
        }
    }

    pub(super) fn rule_due(&mut self, client: u32) {
        if self.machine.clients[client as usize].threads > 0 {
            self.follow_rule(client);
        } else {
            self.machine.rules.rest(client);
        }
    }

    fn follow_rule(&mut self, client: u32) {
        let machine = &mut self.machine;
        let received_ns = machine.received_ns(client);
        let Some(change) = machine.rules.follow(client, received_ns) else {
            return;
        };
        machine
            .queue
            .push(machine.now_ns + change.every_ns, Due::Rule { client });
        if self.apply(change.operation).is_some() {
            let amount = change.amount;
            self.tell(Event::TicketsSet { client, amount });
        }
    }
}

impl Machine {
    /// CPU time that a client has received up to now.
    pub fn received_ns(&self, client: u32) -> u64 {
        let charged = self.dispatcher.usage(self.client_id(client)).received_ns;
        let turn = self.turns.get(self.clients[client as usize].turn);
        let mut running = turn.map_or(NONE, |turn| turn.running);
        let mut received_ns = charged;
        while let Some(thread) = self.threads.all.get(running as usize) {
            let since_ns = self.cpus.all[thread.cpu as usize].since_ns;
            received_ns += self.now_ns.saturating_sub(since_ns);
            running = thread.next;
        }
        for cpu in (0..self.machine.cpus).filter(|_| self.slots.is_some()) {
            if self.in_slot(cpu) == Some(client) {
                let since_ns = self.cpus.all[cpu as usize].since_ns;
                received_ns += self.now_ns.saturating_sub(since_ns);
            }
        }
        received_ns
    }
}
