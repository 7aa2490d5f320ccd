//! What a user has without a request (1999, 4.1).

use prorata_core::ids::CurrencyId;
use prorata_core::ledger::{Mode, Operation, Outcome, Principal, Target};

use super::Decoder;
use super::names::check_new_name;
use crate::refusal::Refusal;

/// Base tickets that initially back a user's currency: "users start with ...
/// 1,000 base tickets" (1999, 4.1).
pub(crate) const USER_FUNDING: u32 = 1_000;

/// Tickets of a client without a given number: "processes ... start with 100
/// tickets" (1999, 4.1).
pub(super) const CLIENT_TICKETS: u32 = 100;

/// The kernel's `(gid_t) -1`: no user is a member.
const NO_GROUP: u32 = u32::MAX;

impl Decoder<'_> {
    /// The user's own currency, created now if there is none yet.
    pub(super) fn currency_of_user(&mut self, uid: u32) -> Result<CurrencyId, Refusal> {
        match self.find_currency_of_user(uid) {
            Some(currency) => Ok(currency),
            None => self.create_currency_of_user(uid, self.funding_of_user(uid)),
        }
    }

    /// Base tickets behind a user's currency when it is made: those that were set once.
    pub(super) fn funding_of_user(&self, uid: u32) -> u32 {
        let set = self.view.state.fundings.get(&uid);
        set.copied().unwrap_or(USER_FUNDING)
    }

    /// The currency named after a user, or after its number, that is its own.
    pub(super) fn find_currency_of_user(&self, uid: u32) -> Option<CurrencyId> {
        let ledger = self.ledger();
        self.names_for_currency_of(uid)
            .into_iter()
            .find_map(|name| {
                let id = ledger.find_currency(&name)?;
                let own = id != ledger.base() && ledger.currency(id)?.owner == uid;
                own.then_some(id)
            })
    }

    /// Creates it with so many base tickets behind it. The daemon does this and
    /// not the asker, which may have no base tickets to give.
    pub(super) fn create_currency_of_user(
        &mut self,
        uid: u32,
        funding: u32,
    ) -> Result<CurrencyId, Refusal> {
        let names = self.names_for_currency_of(uid);
        let free = names
            .iter()
            .find(|name| self.ledger().find_currency(name).is_none());
        let Some(name) = free.cloned() else {
            let name = names
                .into_iter()
                .next_back()
                .expect("the number is always a name");
            return Err(Refusal::NoDefaultCurrency { uid, name });
        };
        let group = self.group_of(uid);
        let create = Operation::CreateCurrency {
            name,
            owner: uid,
            group,
            mode: Mode::DEFAULT,
        };
        let Outcome::Currency(currency) = self.draft.execute(&Principal::ROOT, create)? else {
            unreachable!("a currency was asked for")
        };
        let back = Operation::Issue {
            currency: self.ledger().base(),
            amount: funding,
            target: Some(Target::Currency(currency)),
        };
        self.draft.execute(&Principal::ROOT, back)?;
        Ok(currency)
    }

    /// The group of what a user owns.
    pub(super) fn group_of(&self, uid: u32) -> u32 {
        self.view
            .host
            .account_of(uid)
            .map_or(NO_GROUP, |account| account.gid)
    }

    /// Login name first, if it makes a name, then the number.
    fn names_for_currency_of(&self, uid: u32) -> Vec<String> {
        let account = self.view.host.account_of(uid);
        let login = account.map(|account| account.name);
        let mut names: Vec<String> = login
            .into_iter()
            .filter(|name| check_new_name(name).is_ok())
            .collect();
        names.push(format!("uid{uid}"));
        names
    }

    /// The user whose own currency would have this name, on a daemon that
    /// serves several users.
    pub(super) fn user_of_currency_name(&self, name: &str) -> Option<u32> {
        if self.view.host.own_uid() != 0 {
            return None;
        }
        let number = name
            .strip_prefix("uid")
            .and_then(|digits| digits.parse().ok());
        number.or_else(|| {
            self.view
                .host
                .account_named(name)
                .map(|account| account.uid)
        })
    }
}
