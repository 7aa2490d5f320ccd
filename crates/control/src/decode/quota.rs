//! How much of the ledger one user may fill, so that other users have room.

use std::collections::BTreeMap;

use prorata_core::ledger::{Ledger, Operation, Portion};

use crate::refusal::Refusal;
use crate::state::{Change, LIMITS, State};

/// A user that does not own the daemon may have at most one in so many of the
/// ledger's clients, currencies, tickets and transfers.
pub(crate) const QUOTA: u32 = 8;

/// What a user has: its clients and currencies, the tickets issued in its
/// currencies, the transfers from its clients.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct UserHoldings {
    currencies: u32,
    clients: u32,
    tickets: u32,
    transfers: u32,
}

/// Refuses changes that take a user past its quota, or further past it.
///
/// Cost: a count of what the changes create. Where all users together have more
/// than one user may have: a clone of the state, and a look at everything in
/// both.
pub(super) fn check(state: &State, changes: &[Change], daemon_uid: u32) -> Result<(), Refusal> {
    if has_room(&state.ledger, changes) {
        return Ok(());
    }
    let mut next = state.clone();
    for change in changes {
        next.apply(change)?;
    }
    let before = holdings(&state.ledger);
    for (uid, now) in holdings(&next.ledger) {
        let then = before.get(&uid).copied().unwrap_or_default();
        let owns_daemon = uid == 0 || uid == daemon_uid;
        for (what, then, now, limit) in [
            (
                "currencies",
                then.currencies,
                now.currencies,
                LIMITS.currencies,
            ),
            ("clients", then.clients, now.clients, LIMITS.clients),
            ("tickets", then.tickets, now.tickets, LIMITS.tickets),
            ("transfers", then.transfers, now.transfers, LIMITS.transfers),
        ] {
            let quota = limit / QUOTA;
            if !owns_daemon && now > quota && now > then {
                return Err(Refusal::Quota { uid, what, quota });
            }
        }
    }
    Ok(())
}

/// Whether every user certainly stays within its quota. This counts everything
/// that the changes create as each user's, and nothing that they destroy.
fn has_room(ledger: &Ledger, changes: &[Change]) -> bool {
    let more = changes
        .iter()
        .map(|change| made_by(ledger, change))
        .fold(UserHoldings::default(), UserHoldings::plus);
    if more == UserHoldings::default() {
        return true;
    }
    let within = |all: usize, more: u32, limit: u32| {
        // One user has no more than all users together.
        more == 0 || u32::try_from(all).is_ok_and(|all| all.saturating_add(more) <= limit / QUOTA)
    };
    within(
        ledger.currencies().count(),
        more.currencies,
        LIMITS.currencies,
    ) && within(ledger.clients().count(), more.clients, LIMITS.clients)
        && within(ledger.tickets().count(), more.tickets, LIMITS.tickets)
        && within(ledger.transfers().count(), more.transfers, LIMITS.transfers)
}

/// The most that a change makes.
fn made_by(ledger: &Ledger, change: &Change) -> UserHoldings {
    let mut made = UserHoldings::default();
    match change {
        Change::Ledger(Operation::CreateCurrency { .. }) => made.currencies = 1,
        Change::Ledger(Operation::CreateClient { .. }) => made.clients = 1,
        Change::Ledger(Operation::Issue { .. }) => made.tickets = 1,
        Change::Ledger(Operation::Transfer { from, portion }) => {
            let receivers = match portion {
                Portion::Whole(targets) => targets.len(),
                Portion::Part { shares, .. } => shares.len(),
            };
            made.transfers = 1;
            // A piece of each ticket for each receiver.
            let pieces = ledger.funding(*from).count() * receivers;
            made.tickets = u32::try_from(pieces).unwrap_or(u32::MAX);
        }
        _ => {}
    }
    made
}

impl UserHoldings {
    fn plus(self, other: Self) -> Self {
        Self {
            currencies: self.currencies.saturating_add(other.currencies),
            clients: self.clients.saturating_add(other.clients),
            tickets: self.tickets.saturating_add(other.tickets),
            transfers: self.transfers.saturating_add(other.transfers),
        }
    }
}

fn holdings(ledger: &Ledger) -> BTreeMap<u32, UserHoldings> {
    let mut all: BTreeMap<u32, UserHoldings> = BTreeMap::new();
    for currency in ledger.currencies() {
        let own = all.entry(currency.owner).or_default();
        own.currencies += 1;
        own.tickets += ledger.issued(currency.id).count() as u32;
    }
    for client in ledger.clients() {
        all.entry(client.owner).or_default().clients += 1;
    }
    for transfer in ledger.transfers() {
        if let Some(giver) = ledger.client(transfer.from) {
            all.entry(giver.owner).or_default().transfers += 1;
        }
    }
    all
}
