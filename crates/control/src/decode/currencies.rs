//! Requests about currencies and tickets.

use prorata_core::ids::{CurrencyId, TicketId};
use prorata_core::ledger::{Access, LedgerError, Mode, Operation, Target};
use prorata_protocol::Funding;

use super::names::check_new_name;
use super::{Answer, Decoder};
use crate::refusal::Refusal;
use crate::state::Change;

impl Decoder<'_> {
    pub(super) fn create_currency(
        &mut self,
        name: &str,
        owner: Option<u32>,
        mode: Option<u16>,
    ) -> Result<Answer, Refusal> {
        check_new_name(name)?;
        let owner = owner.unwrap_or(self.who.uid);
        if let Some(user) = self.user_of_currency_name(name)
            && user != owner
        {
            return Err(Refusal::NameKept {
                name: name.to_owned(),
                owner: user,
            });
        }
        let mode = mode.map_or(Ok(Mode::DEFAULT), Mode::try_from)?;
        let operation = Operation::CreateCurrency {
            name: name.to_owned(),
            owner,
            group: self.group_of(owner),
            mode,
        };
        self.draft.check_last(self.who, operation)?;
        Ok(Answer::Created)
    }

    pub(super) fn issue(
        &mut self,
        funding: &Funding,
        target: Option<&str>,
    ) -> Result<Answer, Refusal> {
        let target = target.map(|text| self.target(text)).transpose()?;
        let currency = self.currency_or_default(funding, self.who.uid)?;
        let amount = funding.amount;
        self.draft.check_last(
            self.who,
            Operation::Issue {
                currency,
                amount,
                target,
            },
        )?;
        Ok(Answer::Created)
    }

    /// Resizes the base ticket that backs a user's currency. Issues one, or
    /// creates the currency, where there is none. The amount is remembered for
    /// the next currency of the user.
    pub(super) fn set_funding(&mut self, user: &str, amount: u32) -> Result<Answer, Refusal> {
        let uid = self.user(user)?;
        let answer = self.fund_user(uid, amount)?;
        self.draft.push(Change::Funding { user: uid, amount });
        Ok(answer)
    }

    fn fund_user(&mut self, uid: u32, amount: u32) -> Result<Answer, Refusal> {
        let base = self.ledger().base();
        let Some(currency) = self.find_currency_of_user(uid) else {
            // The daemon creates the currency, but only for a user that may issue
            // base tickets.
            let issue = Operation::Issue {
                currency: base,
                amount,
                target: None,
            };
            self.ledger().check(self.who, issue)?;
            self.create_currency_of_user(uid, amount)?;
            return Ok(Answer::Done);
        };
        match self.own_base_backing(currency)[..] {
            [] => {
                let target = Some(Target::Currency(currency));
                self.check_last(Operation::Issue {
                    currency: base,
                    amount,
                    target,
                })
            }
            [ticket] => self.check_last(Operation::SetAmount { ticket, amount }),
            [first, second, ..] => Err(Refusal::SeveralBackings {
                currency: self.currency_name(currency),
                first: first.to_string(),
                second: second.to_string(),
            }),
        }
    }

    /// Base tickets behind a currency, except those transferred to it.
    fn own_base_backing(&self, currency: CurrencyId) -> Vec<TicketId> {
        let ledger = self.ledger();
        let backing = ledger
            .backing(currency)
            .filter_map(|ticket| ledger.ticket(ticket));
        backing
            .filter(|ticket| ticket.currency == ledger.base() && ticket.transfer.is_none())
            .map(|ticket| ticket.id)
            .collect()
    }

    pub(super) fn list_tickets(&self, currency: Option<&str>) -> Result<Answer, Refusal> {
        let Some(name) = currency else {
            return Ok(Answer::Tickets(None));
        };
        let id = self.currency(name)?;
        let ledger = self.ledger();
        if ledger.may_read(self.who, id) {
            return Ok(Answer::Tickets(Some(id)));
        }
        let currency = ledger.currency(id).expect("it was found");
        Err(LedgerError::Denied {
            uid: self.who.uid,
            access: Access::Read,
            currency: currency.name.to_owned(),
            owner: currency.owner,
            mode: currency.mode,
        }
        .into())
    }
}
