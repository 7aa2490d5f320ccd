//! Tickets that change by themselves.

use std::collections::BTreeMap;

use prorata_core::ids::TicketId;
use prorata_core::ledger::Operation;

use super::{Due, Lots, Machine, NONE, Simulation};
use crate::observer::{Event, Observer};
use crate::plan::Group;
use crate::stream::{Purpose, stream};
use crate::world::World as _;

/// What a client's rule needs.
#[derive(Debug)]
pub(super) struct RuleState {
    ticket: TicketId,
    lots: Lots,
    /// Whether its next change is due some time.
    pending: bool,
}

pub(super) fn states(groups: &[Group], seed: u64) -> BTreeMap<u32, RuleState> {
    let ruled = groups
        .iter()
        .flat_map(|group| group.clients.clone().zip(&group.ruled));
    let states = ruled.map(|(client, &ticket)| {
        let state = RuleState {
            ticket,
            lots: stream(seed, Purpose::Tickets, client.into()),
            pending: false,
        };
        (client, state)
    });
    states.collect()
}

impl<O: Observer> Simulation<O> {
    /// A client with a rule starts.
    pub(super) fn start_rule(&mut self, client: u32) {
        if let Some(state) = self.machine.rules.get(&client)
            && !state.pending
        {
            self.follow_rule(client);
        }
    }

    pub(super) fn rule_due(&mut self, client: u32) {
        if self.machine.clients[client as usize].threads > 0 {
            self.follow_rule(client);
        } else if let Some(state) = self.machine.rules.get_mut(&client) {
            state.pending = false;
        }
    }

    fn follow_rule(&mut self, client: u32) {
        let machine = &mut self.machine;
        let received_ns = machine.received_ns(client);
        let Some(rule) = machine.group(client).rule.clone() else {
            return;
        };
        let Some(state) = machine.rules.get_mut(&client) else {
            return;
        };
        let amount = rule.tickets(&mut state.lots, received_ns);
        state.pending = true;
        let ticket = state.ticket;
        machine
            .queue
            .push(machine.now_ns + rule.every().0, Due::Rule { client });
        if self
            .apply(Operation::SetAmount { ticket, amount })
            .is_some()
        {
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
        received_ns
    }
}
