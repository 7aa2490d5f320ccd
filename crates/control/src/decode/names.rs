//! What texts in requests name, and which names may be given.

use std::str::FromStr;

use prorata_core::ids::{ClientId, CurrencyId, TicketId, TransferId};
use prorata_core::ledger::{Ledger, LedgerError, Target};

use super::Decoder;
use crate::refusal::{Refusal, Suggestion, shortened};
use crate::report;

/// Precedes a client's name where the text could also name a currency.
const CLIENT_PREFIX: &str = "client:";

/// Precedes a currency's name where the text could also name a client.
const CURRENCY_PREFIX: &str = "currency:";

impl Decoder<'_> {
    /// A client by identifier, by the pid of one of its processes, or by name.
    pub(super) fn client(&self, text: &str) -> Result<ClientId, Refusal> {
        let text = text.strip_prefix(CLIENT_PREFIX).unwrap_or(text);
        self.find_client(text)?.ok_or_else(|| Refusal::NoClient {
            text: shortened(text),
            suggestion: Suggestion::nearest(text, self.visible_clients()),
        })
    }

    /// A currency by name.
    pub(super) fn currency(&self, text: &str) -> Result<CurrencyId, Refusal> {
        let text = text.strip_prefix(CURRENCY_PREFIX).unwrap_or(text);
        self.ledger()
            .find_currency(text)
            .ok_or_else(|| Refusal::NoCurrency {
                text: shortened(text),
                suggestion: Suggestion::nearest(text, self.visible_currencies()),
            })
    }

    /// A client or a currency.
    pub(super) fn target(&self, text: &str) -> Result<Target, Refusal> {
        if text.starts_with(CLIENT_PREFIX) {
            return self.client(text).map(Target::Client);
        }
        if text.starts_with(CURRENCY_PREFIX) {
            return self.currency(text).map(Target::Currency);
        }
        match (self.find_client(text)?, self.ledger().find_currency(text)) {
            (Some(client), None) => Ok(Target::Client(client)),
            (None, Some(currency)) => Ok(Target::Currency(currency)),
            (Some(client), Some(currency)) => Err(Refusal::AmbiguousTarget {
                text: shortened(text),
                client: client.to_string(),
                currency: currency.to_string(),
            }),
            (None, None) => {
                let names = self.visible_clients().chain(self.visible_currencies());
                Err(Refusal::NoTarget {
                    text: shortened(text),
                    suggestion: Suggestion::nearest(text, names),
                })
            }
        }
    }

    pub(super) fn ticket(&self, text: &str) -> Result<TicketId, Refusal> {
        identifier(text, "ticket", "t3", "lstkt")
    }

    pub(super) fn transfer_id(&self, text: &str) -> Result<TransferId, Refusal> {
        identifier(text, "transfer", "x3", "transfer --list")
    }

    /// A user by login name or number.
    pub(super) fn user(&self, text: &str) -> Result<u32, Refusal> {
        match self.view.host.account_named(text) {
            Some(account) => Ok(account.uid),
            // The last number is no user id: it means "unchanged" to the kernel.
            None => text
                .parse()
                .ok()
                .filter(|uid| *uid != u32::MAX && is_number(text))
                .ok_or_else(|| Refusal::NoUser(shortened(text))),
        }
    }

    fn find_client(&self, text: &str) -> Result<Option<ClientId>, Refusal> {
        if let Ok(id) = text.parse::<ClientId>() {
            return match self.ledger().client(id) {
                Some(_) => Ok(Some(id)),
                None => Err(LedgerError::UnknownClient(id).into()),
            };
        }
        if is_number(text) {
            let pid = text.parse().map_err(|_| Refusal::NoClient {
                text: shortened(text),
                suggestion: Suggestion(None),
            })?;
            return match self.asked_for(pid) {
                Some(client) => Ok(Some(client)),
                None => Err(Refusal::NotManaged(pid)),
            };
        }
        Ok(self.ledger().find_client(text))
    }

    fn visible_clients(&self) -> impl Iterator<Item = &str> {
        let ledger = self.ledger();
        let clients = ledger.clients();
        clients
            .filter(|client| report::may_see_client(ledger, self.who, client))
            .map(|client| client.name)
    }

    fn visible_currencies(&self) -> impl Iterator<Item = &str> {
        let ledger = self.ledger();
        let currencies = ledger.currencies();
        currencies
            .filter(|currency| ledger.may_read(self.who, currency.id))
            .map(|currency| currency.name)
    }

    pub(super) fn ledger(&self) -> &Ledger {
        self.draft.ledger()
    }
}

fn identifier<I: FromStr>(
    text: &str,
    kind: &'static str,
    example: &'static str,
    list: &'static str,
) -> Result<I, Refusal> {
    text.parse().map_err(|_| Refusal::NotIdentifier {
        text: shortened(text),
        kind,
        example,
        list,
    })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Refuses names that would be taken for something else. (The ledger checks
/// length and control characters.)
pub(super) fn check_new_name(name: &str) -> Result<(), Refusal> {
    match problem(name) {
        Some(problem) => Err(Refusal::BadName {
            name: shortened(name),
            problem,
        }),
        None => Ok(()),
    }
}

fn problem(name: &str) -> Option<&'static str> {
    let is_identifier = name.parse::<ClientId>().is_ok()
        || name.parse::<CurrencyId>().is_ok()
        || name.parse::<TicketId>().is_ok()
        || name.parse::<TransferId>().is_ok();
    if is_identifier {
        Some("would be taken for an identifier")
    } else if is_number(name) {
        Some("would be taken for a number")
    } else if name.contains(':') {
        Some("holds a colon, which ends a prefix")
    } else if name.starts_with('-') {
        Some("would be taken for an option")
    } else if name.trim() != name {
        Some("begins or ends with a space")
    } else {
        None
    }
}

/// A valid client's name made of any program's name, at most 8 bytes longer.
pub fn name_of_program(program: &str) -> String {
    let cleaned: String = program
        .chars()
        .map(|c| if c.is_control() || c == ':' { '-' } else { c })
        .collect();
    let cleaned = cleaned.trim();
    if cleaned.is_empty() || problem(cleaned).is_some() {
        format!("program {cleaned}").trim_end().to_owned()
    } else {
        cleaned.to_owned()
    }
}

/// `wanted`, with the first number behind it that makes it unique: `sort`,
/// `sort-2`, `sort-3`.
pub(super) fn unique_client_name(ledger: &Ledger, wanted: String) -> String {
    if ledger.find_client(&wanted).is_none() {
        return wanted;
    }
    let longest = ledger.limits().name_bytes as usize;
    let numbered = |number: u64| {
        let suffix = format!("-{number}");
        let mut end = wanted.len().min(longest.saturating_sub(suffix.len()));
        while !wanted.is_char_boundary(end) {
            end -= 1;
        }
        format!("{}{suffix}", &wanted[..end])
    };
    let is_free = |number: &u64| ledger.find_client(&numbered(*number)).is_none();
    let powers = std::iter::successors(Some(2), |number| Some(2 * number));
    let mut free = powers.into_iter().find(is_free).expect("clients are few");
    // The name before that power is taken, or 2 is free.
    let mut taken = free / 2;
    while free - taken > 1 {
        let middle = taken + (free - taken) / 2;
        match is_free(&middle) {
            true => free = middle,
            false => taken = middle,
        }
    }
    numbered(free)
}

#[cfg(test)]
mod tests {
    use super::*;
    use prorata_core::ledger::{Limits, Operation, Principal};

    #[test]
    fn names_that_mean_something_else_are_refused() {
        for name in [
            "c3", "u0", "t1.2", "x7", "123", "a:b", "client:a", "-a", " a", "a ",
        ] {
            assert!(check_new_name(name).is_err(), "{name}");
        }
        for name in ["c", "c3d", "video encoder", "größe", "1a", "a-b"] {
            assert!(check_new_name(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn every_program_gets_a_name() {
        for program in ["c3", "7", "-bash", "a:b", "", " ", "\n", "\u{fffd}"] {
            let name = name_of_program(program);
            assert!(
                check_new_name(&name).is_ok() && !name.is_empty(),
                "{program:?}: {name:?}"
            );
            assert!(!name.contains(char::is_control));
        }
        assert_eq!(name_of_program("sha256sum"), "sha256sum");
        assert_eq!(name_of_program("-bash"), "program -bash");
    }

    #[test]
    fn names_are_numbered_within_their_limit() {
        let mut ledger = Ledger::new(Limits {
            name_bytes: 7,
            ..Limits::default()
        });
        let mut names = Vec::new();
        for _ in 0..11 {
            let name = unique_client_name(&ledger, "größe".to_owned());
            let create = Operation::CreateClient {
                name: Some(name.clone()),
                owner: 0,
            };
            ledger.execute(&Principal::ROOT, create).unwrap();
            names.push(name);
        }
        // Two bytes are for "-2", three for "-10", and no character is cut in two.
        assert_eq!(names[..3], ["größe", "grö-2", "grö-3"]);
        assert_eq!(names[9..], ["grö-10", "grö-11"]);
    }
}
