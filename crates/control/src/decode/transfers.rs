//! Requests about transfers.

use prorata_core::ledger::{LedgerError, Operation, Portion};
use prorata_protocol::TransferPortion;

use super::{Answer, Decoder};
use crate::refusal::Refusal;
use crate::state::Change;

impl Decoder<'_> {
    pub(super) fn transfer(
        &mut self,
        from: &str,
        portion: &TransferPortion,
        hold: bool,
    ) -> Result<Answer, Refusal> {
        let from = self.client(from)?;
        let portion = match portion {
            TransferPortion::Whole(targets) => {
                let targets = targets.iter().map(|target| self.target(target));
                Portion::Whole(targets.collect::<Result<_, _>>()?)
            }
            TransferPortion::Part { currency, shares } => {
                let currency = currency
                    .as_deref()
                    .map(|name| self.currency(name))
                    .transpose()?;
                let shares = shares
                    .iter()
                    .map(|(target, amount)| self.target(target).map(|target| (target, *amount)));
                Portion::Part {
                    currency,
                    shares: shares.collect::<Result<_, _>>()?,
                }
            }
        };
        let transfer = Operation::Transfer { from, portion };
        self.draft
            .check_last(self.who, transfer)
            .map_err(|refusal| match refusal {
                Refusal::Ledger(LedgerError::AmbiguousCurrency {
                    from: client,
                    first,
                    second,
                }) => Refusal::SeveralCurrencies {
                    client,
                    first,
                    second,
                },
                other => other,
            })?;
        if hold {
            self.draft.push(Change::Hold);
        }
        Ok(Answer::Created)
    }
}
