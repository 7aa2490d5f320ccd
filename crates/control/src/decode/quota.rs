//! How much of the ledger one user may fill, so that there is room for the
//! others.

use std::collections::BTreeMap;

use prorata_core::ledger::Ledger;

use crate::refusal::Refusal;
use crate::state::{Change, LIMITS, State};

/// A user who does not own the daemon may have one in so many of everything
/// that the ledger holds at most.
pub(crate) const QUOTA: u32 = 8;

/// What a user has: its clients and currencies, the tickets issued in its
/// currencies, the transfers from its clients.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Holdings {
    currencies: u32,
    clients: u32,
    tickets: u32,
    transfers: u32,
}

/// Refuses changes that take a user past its quota, or further past it. Cost:
/// a clone of the state, and a look at everything in both.
pub(super) fn check(state: &State, changes: &[Change], daemon_uid: u32) -> Result<(), Refusal> {
    if changes.is_empty() {
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

fn holdings(ledger: &Ledger) -> BTreeMap<u32, Holdings> {
    let mut all: BTreeMap<u32, Holdings> = BTreeMap::new();
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
