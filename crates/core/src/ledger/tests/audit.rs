//! Every invariant of the ledger's own data, held against everything else.

use super::super::list::{Chain, Link, List};
use super::super::objects::{Currency, Holder};
use super::super::ticket::Ticket;
use super::*;
use alloc::collections::BTreeMap;

/// Panics unless every invariant holds.
pub(super) fn audit(ledger: &Ledger) {
    audit_lists(ledger);
    audit_amounts(ledger);
    audit_transfers(ledger);
    audit_graph(ledger);
    audit_names(ledger);
}

/// Every ticket stands in exactly the lists where its fields say it stands.
fn audit_lists(ledger: &Ledger) {
    let tickets = &ledger.tickets;
    let mut places: BTreeMap<Handle<Ticket>, Vec<Membership>> = BTreeMap::new();
    let mut meet = |list: List, chain: Chain, place: Membership| {
        for ticket in list.audit(tickets, chain) {
            places.entry(ticket).or_default().push(place);
        }
    };
    for (handle, currency) in ledger.currencies.iter() {
        meet(currency.backs, Chain::Issued, Membership::Backs(handle));
        meet(currency.others, Chain::Issued, Membership::Others(handle));
    }
    for (handle, currency) in ledger.currencies.iter() {
        meet(
            currency.backing.list,
            Chain::Holder,
            Membership::Holder(Holder::Currency(handle)),
        );
    }
    for (handle, client) in ledger.clients.iter() {
        meet(
            client.funding.list,
            Chain::Holder,
            Membership::Holder(Holder::Client(handle)),
        );
    }
    for (handle, transfer) in ledger.transfers.iter() {
        meet(
            transfer.pieces,
            Chain::Transfer,
            Membership::Transfer(handle),
        );
    }
    for (handle, ticket) in tickets.iter() {
        meet(
            ticket.lending().pieces,
            Chain::Lender,
            Membership::Lender(handle),
        );
    }
    for (handle, ticket) in tickets.iter() {
        let mut expected = Vec::new();
        expected.push(match ticket.holder {
            Some(Holder::Currency(_)) => Membership::Backs(ticket.currency),
            Some(Holder::Client(_)) | None => Membership::Others(ticket.currency),
        });
        expected.extend(ticket.holder.map(Membership::Holder));
        if let Some(loan) = ticket.lending().loan {
            expected.extend([
                Membership::Transfer(loan.transfer),
                Membership::Lender(loan.lender),
            ]);
        }
        assert_eq!(places.remove(&handle), Some(expected), "{ticket:?}");
        if ticket.holder.is_none() {
            assert_eq!(ticket.link(Chain::Holder), Link::default());
        }
    }
    assert!(places.is_empty());
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Membership {
    Backs(Handle<Currency>),
    Others(Handle<Currency>),
    Holder(Holder),
    Transfer(Handle<Transfer>),
    Lender(Handle<Ticket>),
}

/// Issued, active and lent amounts are the sums that they claim to be, and a
/// ticket is active exactly if its holder is.
fn audit_amounts(ledger: &Ledger) {
    let mut sums: BTreeMap<Handle<Currency>, (u64, u64)> = BTreeMap::new();
    let mut lent: BTreeMap<Handle<Ticket>, u32> = BTreeMap::new();
    for (handle, ticket) in ledger.tickets.iter() {
        let (issued, active) = sums.entry(ticket.currency).or_default();
        *issued += u64::from(ticket.amount);
        *active += if ledger.is_active(handle) {
            u64::from(ticket.amount)
        } else {
            0
        };
        assert!(ticket.amount > 0 || ticket.lending().lent > 0);
        let face_value = ticket
            .amount
            .checked_add(ticket.lending().lent)
            .expect("a face value fits");
        if let Some(loan) = ticket.lending().loan {
            *lent.entry(loan.lender).or_default() += face_value;
        }
    }
    let currencies = ledger
        .currencies
        .iter()
        .map(|(_, currency)| currency.backing);
    let clients = ledger.clients.iter().map(|(_, client)| client.funding);
    for funding in currencies.chain(clients) {
        let sole = match funding.list.audit(&ledger.tickets, Chain::Holder)[..] {
            [only] => Some(&ledger.tickets[only]),
            _ => None,
        };
        assert_eq!(
            funding.sole,
            sole.map(|ticket| (ticket.currency, ticket.amount))
        );
    }
    for (handle, currency) in ledger.currencies.iter() {
        let sums = sums.get(&handle).copied().unwrap_or_default();
        assert_eq!(
            (currency.issued_amount, currency.active_amount),
            sums,
            "{currency:?}"
        );
    }
    for (handle, ticket) in ledger.tickets.iter() {
        assert_eq!(
            ticket.lending().lent,
            lent.get(&handle).copied().unwrap_or_default(),
            "{ticket:?}"
        );
    }
}

/// A piece is of its lender's currency, the lender funds the giver, and no
/// transfer is without pieces.
fn audit_transfers(ledger: &Ledger) {
    assert!(
        ledger
            .transfers
            .iter()
            .all(|(_, transfer)| !transfer.pieces.is_empty())
    );
    for (_, piece) in ledger.tickets.iter() {
        let Some(loan) = piece.lending().loan else {
            continue;
        };
        let (lender, transfer) = (
            &ledger.tickets[loan.lender],
            &ledger.transfers[loan.transfer],
        );
        assert_eq!(piece.currency, lender.currency);
        assert_eq!(lender.holder, Some(Holder::Client(transfer.from)));
        assert!(piece.holder.is_some());
        let mut transfers = 1;
        let mut lender = lender;
        while let Some(loan) = lender.lending().loan {
            lender = &ledger.tickets[loan.lender];
            transfers += 1;
        }
        assert!(transfers <= ledger.limits.lending_depth);
    }
}

/// The currencies form an acyclic graph no deeper than the limit, in which
/// nothing backs the base.
fn audit_graph(ledger: &Ledger) {
    assert!(ledger.currencies[ledger.base].backing.list.is_empty());
    for (handle, _) in ledger.currencies.iter() {
        audit_chains(ledger, handle, &mut Vec::new());
    }
}

/// Walks every path from `currency` down.
fn audit_chains(ledger: &Ledger, currency: Handle<Currency>, path: &mut Vec<Handle<Currency>>) {
    assert!(!path.contains(&currency), "a cycle");
    path.push(currency);
    let below_base = path
        .iter()
        .filter(|currency| **currency != ledger.base)
        .count();
    assert!(below_base <= ledger.limits.depth as usize);
    for (_, ticket) in ledger.tickets.iter() {
        if let (true, Some(Holder::Currency(backed))) = (ticket.currency == currency, ticket.holder)
        {
            audit_chains(ledger, backed, path);
        }
    }
    path.pop();
}

fn audit_names(ledger: &Ledger) {
    assert_eq!(
        ledger.currency_names.len(),
        ledger.currencies.iter().count()
    );
    let clients = ledger.clients.iter();
    let named =
        clients.filter_map(|(handle, client)| Some((client.name.as_deref()?.clone(), handle)));
    assert!(ledger.client_names == named.collect());
    for (handle, currency) in ledger.currencies.iter() {
        assert_eq!(ledger.currency_names[&currency.name], handle);
    }
    let lengths = [
        ledger.currencies.len(),
        ledger.tickets.len(),
        ledger.clients.len(),
        ledger.transfers.len(),
    ];
    let counts = [
        ledger.currencies.iter().count(),
        ledger.tickets.iter().count(),
        ledger.clients.iter().count(),
        ledger.transfers.iter().count(),
    ];
    assert_eq!(lengths.map(|length| length as usize), counts);
}
