//! Doubly linked lists of tickets, with the links inside the tickets.

use super::arena::{Arena, Handle};
use super::ticket::Ticket;
use crate::ids::TicketId;

/// Where a list's tickets live.
pub(super) type Tickets = Arena<Ticket, TicketId>;

/// The lists that a ticket can stand in, at most one of each kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Chain {
    /// All tickets of its currency.
    Issued,
    /// All tickets that fund what it funds.
    Holder,
    /// All tickets made by the transfer that made it.
    Transfer,
    /// All tickets carved out of the one it was carved out of.
    Lender,
}

/// A ticket's neighbours in one list.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Link {
    before: Option<Handle<Ticket>>,
    after: Option<Handle<Ticket>>,
}

/// A list's ends: both or neither. Every method takes the arena of the
/// tickets and the chain that this list uses, the same at every call.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct List {
    first: Option<Handle<Ticket>>,
    last: Option<Handle<Ticket>>,
}

impl List {
    pub(super) fn first(&self) -> Option<Handle<Ticket>> {
        self.first
    }

    /// The ticket, where there is exactly one.
    pub(super) fn only(&self) -> Option<Handle<Ticket>> {
        self.first.filter(|_| self.first == self.last)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// O(1). `ticket` stands in no list of this chain.
    pub(super) fn push_back(
        &mut self,
        tickets: &mut Tickets,
        chain: Chain,
        ticket: Handle<Ticket>,
    ) {
        let before = self.last.replace(ticket);
        *link(tickets, chain, ticket) = Link {
            before,
            after: None,
        };
        match before {
            Some(before) => link(tickets, chain, before).after = Some(ticket),
            None => self.first = Some(ticket),
        }
    }

    /// O(1). `ticket` stands in this list.
    pub(super) fn remove(&mut self, tickets: &mut Tickets, chain: Chain, ticket: Handle<Ticket>) {
        let Link { before, after } = core::mem::take(link(tickets, chain, ticket));
        match before {
            Some(before) => link(tickets, chain, before).after = after,
            None => self.first = after,
        }
        match after {
            Some(after) => link(tickets, chain, after).before = before,
            None => self.last = before,
        }
    }

    /// The tickets in order.
    pub(super) fn iter<'a>(
        &self,
        tickets: &'a Tickets,
        chain: Chain,
    ) -> impl Iterator<Item = Handle<Ticket>> + use<'a> {
        core::iter::successors(self.first, move |ticket| tickets[*ticket].next(chain))
    }
}

#[cfg(test)]
impl List {
    /// The tickets in order, having held every link against its counterpart.
    pub(super) fn audit(&self, tickets: &Tickets, chain: Chain) -> alloc::vec::Vec<Handle<Ticket>> {
        let mut before = None;
        let mut met = alloc::vec::Vec::new();
        while let Some(ticket) = before.map_or(self.first, |before: Handle<Ticket>| {
            tickets[before].next(chain)
        }) {
            assert_eq!(tickets[ticket].link(chain).before, before);
            assert!(met.len() < tickets.len() as usize, "a ring of tickets");
            met.push(ticket);
            before = Some(ticket);
        }
        assert_eq!(self.last, before);
        met
    }
}

impl Ticket {
    /// The ticket after this one in its list of that chain.
    pub(super) fn next(&self, chain: Chain) -> Option<Handle<Ticket>> {
        self.link(chain).after
    }
}

fn link(tickets: &mut Tickets, chain: Chain, ticket: Handle<Ticket>) -> &mut Link {
    tickets[ticket].link_mut(chain)
}
