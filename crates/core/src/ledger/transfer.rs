//! Transfers of tickets from client to client, or from client to currency
//! (1994, 3.1 and 4.6; 1995, 3.1).
//!
//! A transfer carves *pieces* out of the tickets that fund the giver. A piece
//! is a ticket of the same currency that funds the receiver and remembers the
//! ticket it was taken from, its lender. What a ticket holds itself and what
//! it has lent always add up to its face value:
//!
//! ```text
//!   ticket, 100 of u, funds A        A transfers 30 to B, B transfers 10 to C
//!
//!   ticket   70  lent 30   funds A
//!     piece  20  lent 10   funds B   (first transfer)
//!       piece  10          funds C   (second transfer)
//! ```
//!
//! (The 1994 prototype issued a ticket in a currency that each client had;
//! pieces need no such currency, and so no transfers between clients can close
//! a cycle of currencies.)
//!
//! When a transfer ends, each of its pieces goes back to its lender, having
//! first taken back what was lent on from it. So transfers may end in any
//! order, along chains and round circles, and every ticket is then as it was.
//! A transfer that has lost its last piece this way has ended too.
//!
//! A piece competes exactly while its receiver does, whatever its giver does:
//! a blocked client's tickets work for the one it waits for. A client that has
//! transferred everything keeps its tickets, with an amount of zero.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::arena::Handle;
use super::check::Plan;
use super::error::LedgerError;
use super::list::{Chain, List};
use super::objects::{Client, Currency, Holder, Transfer};
use super::operation::Portion;
use super::permission::{Access, Principal};
use super::ticket::{Loan, Ticket};
use super::{Ledger, Target};
use crate::ids::TransferId;

/// One ticket that a transfer is about to make.
#[derive(Debug)]
pub(super) struct Piece {
    /// Holds at least `amount`, all pieces before this one subtracted.
    lender: Handle<Ticket>,
    /// At least one.
    amount: u32,
    receiver: Holder,
}

/// What a client could transfer: its tickets that hold something, by currency.
type Holdings = BTreeMap<Handle<Currency>, Vec<Handle<Ticket>>>;

/// Decoding: nothing here changes the ledger.
impl Ledger {
    /// The pieces that a transfer makes.
    pub(super) fn plan_transfer(
        &self,
        principal: &Principal,
        from: Handle<Client>,
        portion: &Portion,
    ) -> Result<Vec<Piece>, LedgerError> {
        if self.transfers.len() >= self.limits.transfers {
            return Err(LedgerError::TransferLimit {
                limit: self.limits.transfers,
            });
        }
        let pieces = match portion {
            Portion::Whole(targets) => {
                self.plan_whole(from, self.receivers(principal, from, targets.iter())?)?
            }
            Portion::Part { currency, shares } => {
                let receivers =
                    self.receivers(principal, from, shares.iter().map(|(target, _)| target))?;
                let currency = currency.map(|id| self.known_currency(id)).transpose()?;
                let amounts = shares.iter().map(|(_, amount)| u64::from(*amount));
                self.plan_part(from, currency, receivers.into_iter().zip(amounts).collect())?
            }
        };
        let mut edge = None;
        for piece in &pieces {
            let currency = self.tickets[piece.lender].currency;
            // Pieces come sorted by both, so each edge is checked once.
            if edge.replace((currency, piece.receiver)) != Some((currency, piece.receiver))
                && let Holder::Currency(target) = piece.receiver
            {
                self.check_edge(currency, target)?;
            }
            self.check_lending_depth(piece.lender)?;
        }
        self.check_ticket_limit(pieces.len())?;
        Ok(pieces)
    }

    fn receivers<'a>(
        &self,
        principal: &Principal,
        from: Handle<Client>,
        targets: impl ExactSizeIterator<Item = &'a Target>,
    ) -> Result<Vec<Holder>, LedgerError> {
        let receivers = targets.len();
        if receivers == 0 {
            return Err(LedgerError::NoReceivers {
                from: self.client_name(from),
            });
        }
        if receivers > self.limits.receivers as usize {
            let limit = self.limits.receivers;
            return Err(LedgerError::TooManyReceivers {
                from: self.client_name(from),
                receivers,
                limit,
            });
        }
        let mut holders = Vec::with_capacity(receivers);
        for target in targets {
            let holder = self.known_target(*target)?;
            match holder {
                Holder::Client(client) if client == from => {
                    return Err(LedgerError::SelfTransfer {
                        client: self.client_name(from),
                    });
                }
                Holder::Client(_) => {}
                Holder::Currency(currency) => {
                    self.check_access(principal, currency, Access::Fund)?
                }
            }
            holders.push(holder);
        }
        Ok(holders)
    }

    fn plan_whole(
        &self,
        from: Handle<Client>,
        receivers: Vec<Holder>,
    ) -> Result<Vec<Piece>, LedgerError> {
        let mut pieces = Vec::new();
        for tickets in self.holdings(from).into_values() {
            let held = self.held(&tickets);
            let (each, odd) = (held / receivers.len() as u64, held % receivers.len() as u64);
            let share = |(place, receiver): (usize, &Holder)| {
                (*receiver, each + u64::from((place as u64) < odd))
            };
            self.carve(
                &tickets,
                receivers.iter().enumerate().map(share),
                &mut pieces,
            );
        }
        if pieces.is_empty() {
            return Err(LedgerError::NothingHeld {
                from: self.client_name(from),
            });
        }
        Ok(pieces)
    }

    fn plan_part(
        &self,
        from: Handle<Client>,
        currency: Option<Handle<Currency>>,
        shares: Vec<(Holder, u64)>,
    ) -> Result<Vec<Piece>, LedgerError> {
        if shares.iter().any(|(_, amount)| *amount == 0) {
            return Err(LedgerError::ZeroAmount);
        }
        let holdings = self.holdings(from);
        let mut currencies = holdings.keys();
        let currency = match (currency, currencies.next(), currencies.next()) {
            (Some(currency), ..) => currency,
            (None, Some(only), None) => *only,
            (None, None, _) => {
                return Err(LedgerError::NothingHeld {
                    from: self.client_name(from),
                });
            }
            (None, Some(first), Some(second)) => {
                return Err(LedgerError::AmbiguousCurrency {
                    from: self.client_name(from),
                    first: self.currency_name(*first),
                    second: self.currency_name(*second),
                });
            }
        };
        let tickets = holdings.get(&currency).map_or(&[][..], Vec::as_slice);
        let wanted = shares.iter().map(|(_, amount)| amount).sum();
        let held = self.held(tickets);
        if wanted > held {
            let (from, currency) = (self.client_name(from), self.currency_name(currency));
            return Err(LedgerError::NotHeld {
                from,
                currency,
                wanted,
                held,
            });
        }
        let mut pieces = Vec::new();
        self.carve(tickets, shares.into_iter(), &mut pieces);
        Ok(pieces)
    }

    fn holdings(&self, client: Handle<Client>) -> Holdings {
        let mut holdings = Holdings::new();
        for handle in self.clients[client]
            .funding
            .list
            .iter(&self.tickets, Chain::Holder)
        {
            let ticket = &self.tickets[handle];
            if ticket.amount > 0 {
                holdings.entry(ticket.currency).or_default().push(handle);
            }
        }
        holdings
    }

    fn held(&self, tickets: &[Handle<Ticket>]) -> u64 {
        tickets
            .iter()
            .map(|ticket| u64::from(self.tickets[*ticket].amount))
            .sum()
    }

    /// Cuts `shares`, together no more than `tickets` hold, out of them in order.
    fn carve(
        &self,
        tickets: &[Handle<Ticket>],
        shares: impl Iterator<Item = (Holder, u64)>,
        pieces: &mut Vec<Piece>,
    ) {
        let mut lenders = tickets
            .iter()
            .map(|ticket| (*ticket, u64::from(self.tickets[*ticket].amount)));
        let mut lender = None;
        for (receiver, mut wanted) in shares {
            while wanted > 0 {
                let Some((ticket, left)) = lender.or_else(|| lenders.next()) else {
                    unreachable!("the shares were checked against what is held");
                };
                let amount = left.min(wanted);
                pieces.push(Piece {
                    lender: ticket,
                    amount: amount as u32,
                    receiver,
                });
                wanted -= amount;
                lender = (left > amount).then_some((ticket, left - amount));
            }
        }
    }

    /// A transfer is ended by its giver's owner, or by a user with the right to
    /// take back what it moved.
    pub(super) fn plan_end_transfer(
        &self,
        principal: &Principal,
        id: TransferId,
    ) -> Result<Plan, LedgerError> {
        let transfer = self
            .transfers
            .find(id)
            .ok_or(LedgerError::UnknownTransfer(id))?;
        let Transfer { from, pieces } = &self.transfers[transfer];
        let mut currencies = pieces
            .iter(&self.tickets, Chain::Transfer)
            .map(|piece| self.tickets[piece].currency);
        if !currencies.all(|currency| {
            self.check_access(principal, currency, Access::Issue)
                .is_ok()
        }) {
            self.check_client_owner(principal, *from)?;
        }
        Ok(Plan::EndTransfer(transfer))
    }

    fn check_lending_depth(&self, lender: Handle<Ticket>) -> Result<(), LedgerError> {
        let loan =
            |ticket: &Handle<Ticket>| self.tickets[*ticket].lending().loan.map(|loan| loan.lender);
        let transfers = core::iter::successors(loan(&lender), loan).count();
        let limit = self.limits.lending_depth;
        if transfers >= limit as usize {
            return Err(LedgerError::LentTooFar {
                ticket: self.tickets.id(lender),
                limit,
            });
        }
        Ok(())
    }
}

/// Applying: nothing here can fail.
impl Ledger {
    pub(super) fn start_transfer(
        &mut self,
        from: Handle<Client>,
        pieces: Vec<Piece>,
    ) -> Handle<Transfer> {
        let transfer = self.transfers.insert(Transfer {
            from,
            pieces: List::default(),
        });
        for piece in pieces {
            self.lend(transfer, piece);
        }
        transfer
    }

    /// The receiver gains before the lender loses, here and the other way
    /// round in [`Ledger::take_back`], so that a currency which is active
    /// before and after never stops being so in between.
    fn lend(
        &mut self,
        transfer: Handle<Transfer>,
        Piece {
            lender,
            amount,
            receiver,
        }: Piece,
    ) {
        let Ticket {
            currency,
            amount: own,
            ..
        } = self.tickets[lender];
        let piece = self.issue(currency, amount, Some(Loan { transfer, lender }));
        self.transfers[transfer]
            .pieces
            .push_back(&mut self.tickets, Chain::Transfer, piece);
        let mut pieces = self.tickets[lender].lending().pieces;
        pieces.push_back(&mut self.tickets, Chain::Lender, piece);
        let lending = self.tickets[lender].lending_mut();
        lending.pieces = pieces;
        lending.lent += amount;
        self.fund(piece, receiver);
        self.set_own_amount(lender, own - amount);
    }

    /// Ends a transfer, and with it whatever was lent on from its pieces.
    pub(super) fn end_transfer(&mut self, transfer: Handle<Transfer>) {
        while let Some(piece) = self
            .transfers
            .get(transfer)
            .and_then(|transfer| transfer.pieces.first())
        {
            self.reclaim(piece);
        }
    }

    /// Takes a piece back, first all that was lent on from it.
    pub(super) fn reclaim(&mut self, piece: Handle<Ticket>) {
        let mut last = piece;
        loop {
            while let Some(lent_on) = self.tickets[last].lending().pieces.first() {
                last = lent_on;
            }
            let lender = self.take_back(last);
            if last == piece {
                return;
            }
            last = lender;
        }
    }

    /// Takes a piece back of which nothing is lent on; returns its lender.
    fn take_back(&mut self, piece: Handle<Ticket>) -> Handle<Ticket> {
        let Ticket { amount, .. } = self.tickets[piece];
        let Some(Loan { transfer, lender }) = self.tickets[piece].lending().loan else {
            unreachable!("only pieces are taken back");
        };
        let own = self.tickets[lender].amount;
        self.set_own_amount(lender, own + amount);
        let mut pieces = self.tickets[lender].lending().pieces;
        pieces.remove(&mut self.tickets, Chain::Lender, piece);
        let lending = self.tickets[lender].lending_mut();
        lending.pieces = pieces;
        lending.lent -= amount;
        self.transfers[transfer]
            .pieces
            .remove(&mut self.tickets, Chain::Transfer, piece);
        if self.transfers[transfer].pieces.is_empty() {
            self.transfers.remove(transfer);
        }
        self.destroy_ticket(piece);
        lender
    }
}
