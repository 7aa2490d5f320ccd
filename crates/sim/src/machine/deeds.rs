//! What happens from outside.

use prorata_core::ids::{CurrencyId, TicketId};
use prorata_core::ledger::{Operation, Outcome, Target};

use super::Simulation;
use crate::observer::{Event, Observer};
use crate::plan::{Deed, PlannedTransfer, client_id};
use crate::policy::policy;
use crate::scenario::{PolicyName, Time};

impl<O: Observer> Simulation<O> {
    pub(super) fn deed_due(&mut self, index: u32) {
        // A scenario's timeline is short, and each deed happens once.
        let (_, deed) = self.machine.timeline[index as usize].clone();
        self.do_deed(deed);
    }

    pub(crate) fn do_deed(&mut self, deed: Deed) {
        match deed {
            Deed::Start(clients) => clients.into_iter().for_each(|client| self.start(client)),
            Deed::Stop(clients) => clients.into_iter().for_each(|client| self.stop(client)),
            Deed::SetTickets(holders, currency, amount) => {
                for holder in holders {
                    self.set_tickets(holder, currency, amount);
                }
            }
            Deed::Unfund(holders, currency) => {
                for holder in holders {
                    for ticket in self.own_tickets(holder, currency) {
                        self.apply(Operation::DestroyTicket { ticket });
                    }
                }
            }
            Deed::Transfer(transfer) => self.transfer(transfer),
            Deed::EndTransfer(name) => {
                let transfer = self.machine.transfers.remove(&name);
                self.end_transfer(transfer);
            }
            Deed::Move(clients, pool) => {
                clients
                    .into_iter()
                    .for_each(|client| self.move_client(client, pool));
            }
            Deed::Policy(name) => self.set_policy(name),
            Deed::Quantum(quantum_ns) => {
                self.machine.machine.quantum = Time(quantum_ns);
                self.machine.dispatcher.set_quantum(quantum_ns);
            }
            Deed::Signal(signal) => self.signal(signal),
        }
    }

    fn set_tickets(&mut self, target: Target, currency: CurrencyId, amount: u32) {
        let operation = match self.own_tickets(target, currency).first() {
            Some(&ticket) => Operation::SetAmount { ticket, amount },
            None => Operation::Issue {
                currency,
                amount,
                target: Some(target),
            },
        };
        if self.apply(operation).is_some()
            && let Target::Client(client) = target
        {
            let client = client.index();
            self.tell(Event::TicketsSet { client, amount });
        }
    }

    /// Tickets that a holder has of its own in a currency, not through a
    /// transfer.
    fn own_tickets(&self, holder: Target, currency: CurrencyId) -> Vec<TicketId> {
        let ledger = self.machine.dispatcher.ledger();
        let own = |id: &TicketId| {
            let ticket = ledger.ticket(*id);
            ticket.is_some_and(|t| t.currency == currency && t.transfer.is_none())
        };
        match holder {
            Target::Client(client) => ledger.funding(client).filter(own).collect(),
            Target::Currency(backed) => ledger.backing(backed).filter(own).collect(),
        }
    }

    fn transfer(&mut self, transfer: PlannedTransfer) {
        let operation = Operation::Transfer {
            from: client_id(transfer.from),
            portion: transfer.portion,
        };
        if let Some(Outcome::Transfer(id)) = self.apply(operation) {
            self.machine.transfers.insert(transfer.name, id);
        }
    }

    fn set_policy(&mut self, name: PolicyName) {
        self.end_all_turns();
        let machine = &mut self.machine;
        machine.machine.policy = name;
        for pool in 0..machine.pools.len() as u32 {
            let fresh = policy(name, machine.seed, machine.policies);
            machine.policies += 1;
            machine.dispatcher.set_policy_of(pool, fresh);
        }
    }
}
