//! What users run without a request: a client for each user.

use prorata_core::ids::ClientId;
use prorata_core::ledger::{Mode, Operation, Outcome, Principal};

use super::defaults::CLIENT_TICKETS;
use super::draft::Draft;
use super::names::unique_client_name;
use super::{Decoder, View};
use crate::refusal::Refusal;
use crate::state::Change;

static DAEMON: Principal = Principal::ROOT;

impl<'a> Decoder<'a> {
    /// For what the daemon does by itself.
    fn of_daemon(view: View<'a>) -> Self {
        Decoder {
            view,
            who: &DAEMON,
            asker_pid: view.host.own_pid(),
            outside_at_ns: None,
            draft: Draft::new(&view.state.ledger),
        }
    }
}

/// Makes the client that has what `user` runs unasked.
pub(crate) fn rest_of_user(view: View<'_>, user: u32) -> Result<Vec<Change>, Refusal> {
    let mut decoder = Decoder::of_daemon(view);
    let client = decoder.create_rest(user)?;
    decoder.draft.push(Change::Rest { user, client });
    Ok(decoder.draft.into_changes())
}

/// Destroys the currency of `user` if it was made without a request, nothing uses it, and its backing
/// is as it was made.
pub(crate) fn unused_currency(view: View<'_>, user: u32) -> Vec<Change> {
    let decoder = Decoder::of_daemon(view);
    let ledger = decoder.ledger();
    let has_client = ledger.clients().any(|client| client.owner == user);
    let Some(currency) = decoder.find_currency_of_user(user).filter(|_| !has_client) else {
        return Vec::new();
    };
    let mode = ledger.currency(currency).map(|currency| currency.mode);
    let backing: Vec<_> = ledger.backing(currency).collect();
    let [ticket] = backing[..] else {
        return Vec::new();
    };
    let as_made = ledger.ticket(ticket).is_some_and(|ticket| {
        ticket.currency == ledger.base()
            && ticket.amount == decoder.funding_of_user(user)
            && ticket.lent == 0
            && ticket.transfer.is_none()
    });
    if mode != Some(Mode::DEFAULT) || !as_made || ledger.issued(currency).next().is_some() {
        return Vec::new();
    }
    vec![
        Change::Ledger(Operation::DestroyTicket { ticket }),
        Change::Ledger(Operation::DestroyCurrency { currency }),
    ]
}

impl Decoder<'_> {
    fn create_rest(&mut self, user: u32) -> Result<ClientId, Refusal> {
        let currency = self.currency_of_user(user)?;
        let wanted = format!("rest-of-{}", self.currency_name(currency));
        let longest = self.ledger().limits().name_bytes as usize;
        let wanted = match wanted.len() <= longest {
            true => wanted,
            false => format!("rest-of-uid{user}"),
        };
        let create = Operation::CreateClient {
            name: Some(unique_client_name(self.ledger(), wanted)),
            owner: user,
        };
        let Outcome::Client(client) = self.draft.execute(self.who, create)? else {
            unreachable!("a client was asked for")
        };
        self.issue_to(currency, CLIENT_TICKETS, client)?;
        Ok(client)
    }
}
