//! From what a journal holds to what is so now: some of the clients have
//! ended while no daemon watched, and no connection holds anything.

use prorata_core::ids::ClientId;
use prorata_core::ledger::Operation;

use crate::host::Host;
use crate::process::ProcessId;
use crate::state::{Change, State};

/// Brings a replayed state up to date: drops the clients none of whose roots
/// live, and the transfers that a connection held. Lasting currencies, tickets
/// and transfers stay.
///
/// `same_boot` says whether the roots were recorded since the machine started.
pub(crate) fn reconcile(state: &mut State, host: &dyn Host, same_boot: bool) {
    let lives = |root: &ProcessId| {
        same_boot
            && host
                .process(root.pid)
                .is_some_and(|process| process.id == *root)
    };
    let clients: Vec<ClientId> = state.ledger.clients().map(|client| client.id).collect();
    for client in clients {
        let roots = state.roots.get(&client).cloned().unwrap_or_default();
        let living: Vec<ProcessId> = roots.iter().copied().filter(lives).collect();
        if living.is_empty() {
            apply(state, Change::Ledger(Operation::DestroyClient { client }));
        } else if living.len() < roots.len() {
            apply(
                state,
                Change::Roots {
                    client,
                    roots: living,
                },
            );
        }
    }
    while let Some(transfer) = state.held.first().copied() {
        apply(state, Change::Ledger(Operation::EndTransfer { transfer }));
    }
}

fn apply(state: &mut State, change: Change) {
    state
        .apply(&change)
        .expect("it concerns what is in the state");
}
