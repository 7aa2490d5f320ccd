//! Loans of tickets while threads wait (1994, 4.6 and 6.1).

use std::collections::BTreeMap;

use prorata_core::ids::{ClientId, CurrencyId, TransferId};
use prorata_core::ledger::{Operation, Outcome, Portion, Target};
use prorata_core::rng::below_wide;

use super::World;
use super::objects::NONE;

/// Loans of waiting threads.
pub trait Rights: World {
    /// While a thread waits, it lends its part of its client's tickets to the receivers.
    /// All threads of a client have equal parts; a client's only thread lends all.
    fn lend(&mut self, thread: u32, mut to: Vec<Target>) {
        let client = self.client_of(thread);
        let from = self.client_id(client);
        to.retain(|target| *target != Target::Client(from));
        if to.is_empty() {
            return;
        }
        let lending = self.objects().lending.get(&client).copied().unwrap_or(0);
        let parts = self.threads_of(client) - lending;
        let mut loan = Vec::new();
        for (currency, amount) in self.holdings(from) {
            let shares = split(amount / u64::from(parts), &to);
            if shares.is_empty() {
                continue;
            }
            let currency = Some(currency);
            let portion = Portion::Part { currency, shares };
            match self.apply(Operation::Transfer { from, portion }) {
                Some(Outcome::Transfer(transfer)) => loan.push(transfer),
                _ => continue,
            }
        }
        *self.objects().lending.entry(client).or_default() += 1;
        self.objects().loans.insert(thread, loan);
    }

    /// A client's own tickets, by currency.
    fn holdings(&self, client: ClientId) -> BTreeMap<CurrencyId, u64> {
        let ledger = self.ledger();
        let mut holdings = BTreeMap::new();
        for ticket in ledger.funding(client).filter_map(|id| ledger.ticket(id)) {
            *holdings.entry(ticket.currency).or_default() += u64::from(ticket.amount);
        }
        holdings
    }

    /// Ends the loan of a thread, if there is one. The loan may have ended already,
    /// together with a transfer from outside that it was part of.
    fn end_loan(&mut self, thread: u32) {
        if let Some(loan) = self.objects().loans.remove(&thread) {
            let client = self.client_of(thread);
            if let Some(lending) = self.objects().lending.get_mut(&client) {
                *lending -= 1;
            }
            for transfer in loan {
                self.end_transfer(Some(transfer));
            }
        }
    }

    /// Ends a transfer that has not ended yet.
    fn end_transfer(&mut self, transfer: Option<TransferId>) {
        let ledger = self.ledger();
        if let Some(transfer) = transfer.filter(|id| ledger.transfer(*id).is_some()) {
            self.apply(Operation::EndTransfer { transfer });
        }
    }

    /// The inheritance ticket of a mutex follows its holder.
    fn move_inheritance(&mut self, mutex: u32) {
        let state = &self.objects().mutexes[mutex as usize];
        let Some(lottery) = &state.lottery else {
            return;
        };
        let (ticket, holder) = (lottery.inheritance, state.holder);
        let operation = match holder {
            NONE => Operation::Unfund { ticket },
            holder => Operation::Fund {
                ticket,
                target: Target::Client(self.client_id(self.client_of(holder))),
            },
        };
        self.apply(operation);
    }

    /// The waiting thread that gets a mutex next.
    fn next_holder(&mut self, mutex: u32) -> Option<u32> {
        let state = &self.objects().mutexes[mutex as usize];
        let first = *state.waiters.front()?;
        let Some(lottery) = &state.lottery else {
            return Some(first);
        };
        // The loans of the waiting threads back the mutex currency.
        let currency = lottery.currency;
        let ledger = self.ledger();
        let mut values: BTreeMap<TransferId, u128> = BTreeMap::new();
        for ticket in ledger.backing(currency).filter_map(|id| ledger.ticket(id)) {
            if let Some((transfer, _)) = ticket.transfer {
                *values.entry(transfer).or_default() += ticket.value.0;
            }
        }
        let objects = self.objects();
        let state = &mut objects.mutexes[mutex as usize];
        let lottery = state.lottery.as_mut()?;
        let loans = &objects.loans;
        let value = |waiter: &u32| -> u128 {
            let loan = loans.get(waiter).into_iter().flatten();
            loan.filter_map(|transfer| values.get(transfer)).sum()
        };
        let total: u128 = state.waiters.iter().map(value).sum();
        if total == 0 {
            return Some(first);
        }
        let mut winning = below_wide(&mut lottery.lots, total);
        state.waiters.iter().copied().find(|waiter| {
            let value = value(waiter);
            let wins = winning < value;
            winning = winning.saturating_sub(value);
            wins
        })
    }
}

impl<W: World> Rights for W {}

/// Divides an amount into equal shares; the first ones get the odd tickets. Receivers
/// without a ticket are left out.
fn split(amount: u64, to: &[Target]) -> Vec<(Target, u32)> {
    let receivers = to.len() as u64;
    let amount = amount.min(u32::MAX.into());
    let shares = to.iter().zip(0..).map(|(target, place)| {
        let odd = u64::from(place < amount % receivers);
        (*target, (amount / receivers + odd) as u32)
    });
    shares.filter(|share| share.1 > 0).collect()
}
