//! A ticket, and what only few tickets have: a part in transfers.

use alloc::boxed::Box;

use super::arena::Handle;
use super::list::{Chain, Link, List};
use super::objects::{Currency, Holder, Transfer};

/// A ticket: an amount of a currency, funding a currency or a client.
///
/// It is active, that is, it competes, while what it funds is active: a client
/// that competes, or a currency that has an active amount (1994, 4.4).
///
/// It is serialised as if all were in one piece.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(from = "stored::Ticket", into = "stored::Ticket")
)]
pub(super) struct Ticket {
    pub(super) currency: Handle<Currency>,
    /// Face value, without what is lent. Zero only while all of it is lent.
    pub(super) amount: u32,
    /// What the ticket funds; always something while part of it is lent, and
    /// always if it is a piece.
    pub(super) holder: Option<Holder>,
    issued: Link,
    held: Link,
    /// Made with the first transfer that it has a part in; a ticket without
    /// one, as most are, is half as large.
    lending: Option<Box<Lending>>,
}

/// A ticket's part in transfers. The default is that of one without any.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Lending {
    /// Sum of `amount` and `lent` over `pieces`; the ticket's `amount + lent`
    /// fits in 32 bits.
    pub(super) lent: u32,
    /// Where the ticket comes from, if a transfer made it.
    pub(super) loan: Option<Loan>,
    /// What transfers have carved out of it.
    pub(super) pieces: List,
    transfer: Link,
    lender: Link,
}

/// How a ticket made by a transfer came to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Loan {
    pub(super) transfer: Handle<Transfer>,
    /// The ticket it was carved out of, and to which its amount goes back.
    pub(super) lender: Handle<Ticket>,
}

impl Ticket {
    /// One that funds nothing.
    pub(super) fn new(currency: Handle<Currency>, amount: u32, loan: Option<Loan>) -> Self {
        let lending = Lending {
            loan,
            ..Lending::default()
        };
        Self {
            currency,
            amount,
            holder: None,
            issued: Link::default(),
            held: Link::default(),
            lending: loan.map(|_| Box::new(lending)),
        }
    }

    /// Its part in transfers.
    pub(super) fn lending(&self) -> Lending {
        self.lending.as_deref().copied().unwrap_or_default()
    }

    /// The same, to change. Allocates the first time.
    pub(super) fn lending_mut(&mut self) -> &mut Lending {
        self.lending.get_or_insert_default()
    }

    /// Its neighbours in its list of that chain.
    pub(super) fn link(&self, chain: Chain) -> Link {
        match chain {
            Chain::Issued => self.issued,
            Chain::Holder => self.held,
            Chain::Transfer => self.lending().transfer,
            Chain::Lender => self.lending().lender,
        }
    }

    /// The same, to change.
    pub(super) fn link_mut(&mut self, chain: Chain) -> &mut Link {
        match chain {
            Chain::Issued => &mut self.issued,
            Chain::Holder => &mut self.held,
            Chain::Transfer => &mut self.lending_mut().transfer,
            Chain::Lender => &mut self.lending_mut().lender,
        }
    }
}

/// The form in which tickets are serialised, which journals have.
#[cfg(feature = "serde")]
mod stored {
    use alloc::boxed::Box;

    use super::{Currency, Handle, Holder, Lending, Link, List, Loan};

    #[derive(serde::Serialize, serde::Deserialize)]
    pub(super) struct Ticket {
        currency: Handle<Currency>,
        amount: u32,
        lent: u32,
        holder: Option<Holder>,
        loan: Option<Loan>,
        pieces: List,
        /// Of the issued, those of the holder, the transfer, the lender.
        links: [Link; 4],
    }

    impl From<super::Ticket> for Ticket {
        fn from(ticket: super::Ticket) -> Self {
            let lending = ticket.lending();
            let links = [ticket.issued, ticket.held, lending.transfer, lending.lender];
            Self {
                currency: ticket.currency,
                amount: ticket.amount,
                lent: lending.lent,
                holder: ticket.holder,
                loan: lending.loan,
                pieces: lending.pieces,
                links,
            }
        }
    }

    impl From<Ticket> for super::Ticket {
        fn from(ticket: Ticket) -> Self {
            let [issued, held, transfer, lender] = ticket.links;
            let lends = ticket.loan.is_some() || !ticket.pieces.is_empty();
            let lending = Lending {
                lent: ticket.lent,
                loan: ticket.loan,
                pieces: ticket.pieces,
                transfer,
                lender,
            };
            Self {
                currency: ticket.currency,
                amount: ticket.amount,
                holder: ticket.holder,
                issued,
                held,
                lending: lends.then(|| Box::new(lending)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_small() {
        assert!(size_of::<Ticket>() <= 40);
    }
}
