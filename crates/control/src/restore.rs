//! From what a journal holds to what is so now.

use prorata_core::ids::ClientId;
use prorata_core::ledger::Operation;

use crate::state::{Change, State};

/// Drops from a replayed state what cannot have survived: transfers and a timetable that a
/// connection held, the clients of what users run unasked and, if the machine
/// has booted since, every timetable, all clients and the wishes that the daemon stays
/// and manages what users run. Lasting currencies, tickets, transfers and settings
/// stay. (The engine finds out which clients of this boot live, and a sweep what
/// users run.) Returns the users that had clients of what they ran unasked.
pub(crate) fn reconcile(state: &mut State, same_boot: bool) -> Vec<u32> {
    let users = state.rests.keys().copied().collect();
    let complete = |client: &ClientId| same_boot && state.roots.contains_key(client);
    let clients = state.ledger.clients().map(|client| client.id);
    let gone: Vec<ClientId> = clients.filter(|client| !complete(client)).collect();
    for client in gone {
        apply(state, Operation::DestroyClient { client });
    }
    if !same_boot {
        state.settings.stays = false;
        state.settings.users = false;
    }
    // The epoch, the processes and the clients of another boot's table are gone.
    state
        .timetable
        .take_if(|timetable| !same_boot || timetable.held);
    while let Some(transfer) = state.held.first().copied() {
        apply(state, Operation::EndTransfer { transfer });
    }
    users
}

fn apply(state: &mut State, operation: Operation) {
    state
        .apply(&Change::Ledger(operation))
        .expect("it concerns what is in the state");
}
