//! Changes of rights by the timeline.

use prorata_core::cpu_limit::CpuLimit;
use prorata_core::ids::{CurrencyId, TicketId};
use prorata_core::ledger::{Operation, Outcome, Target};

use super::{Rights, World};
use crate::event::Event;
use crate::plan::PlannedTransfer;

/// Changes of rights that a scenario's timeline asks for.
pub trait Deeds: Rights {
    /// Gives a holder's ticket in a currency a new face value; if it has none,
    /// issues one.
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

    /// Limits a client's CPU time, or ends its limit.
    fn set_max(&mut self, client: u32, max: Option<CpuLimit>) {
        let client = self.client_id(client);
        self.apply(Operation::LimitClient { client, max });
    }

    /// Takes a holder's tickets in a currency away.
    fn unfund(&mut self, holder: Target, currency: CurrencyId) {
        for ticket in self.own_tickets(holder, currency) {
            self.apply(Operation::DestroyTicket { ticket });
        }
    }

    /// Tickets that a holder has of its own in a currency, not through a
    /// transfer.
    fn own_tickets(&self, holder: Target, currency: CurrencyId) -> Vec<TicketId> {
        let ledger = self.ledger();
        let own = |id: &TicketId| {
            let ticket = ledger.ticket(*id);
            ticket.is_some_and(|t| t.currency == currency && t.transfer.is_none())
        };
        match holder {
            Target::Client(client) => ledger.funding(client).filter(own).collect(),
            Target::Currency(backed) => ledger.backing(backed).filter(own).collect(),
        }
    }

    /// Begins a transfer.
    fn begin_transfer(&mut self, transfer: PlannedTransfer) {
        let operation = Operation::Transfer {
            from: self.client_id(transfer.from),
            portion: transfer.portion,
        };
        if let Some(Outcome::Transfer(id)) = self.apply(operation) {
            self.objects().transfers.insert(transfer.name, id);
        }
    }

    /// Ends the transfer that was begun under a name.
    fn end_named_transfer(&mut self, name: &str) {
        let transfer = self.objects().transfers.remove(name);
        self.end_transfer(transfer);
    }
}

impl<W: World> Deeds for W {}
