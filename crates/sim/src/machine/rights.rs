//! Rights that move with what threads wait for (1994, 4.6 and 6.1), and the
//! way from the machine to the ledger.

use std::collections::BTreeMap;

use prorata_core::ids::{ClientId, CurrencyId, TransferId};
use prorata_core::ledger::{Operation, Outcome, Portion, Principal, Target};
use prorata_core::rng::below_wide;

use super::{NONE, Simulation};
use crate::observer::{Event, Observer};
use crate::plan::client_id;

impl<O: Observer> Simulation<O> {
    /// Applies an operation as the super-user. What the ledger refuses is
    /// told, and the run goes on.
    pub(crate) fn apply(&mut self, operation: Operation) -> Option<Outcome> {
        let dispatcher = &mut self.machine.dispatcher;
        match dispatcher.ledger().check(&Principal::ROOT, operation) {
            Ok(checked) => Some(dispatcher.apply(checked)),
            Err(error) => {
                self.machine.counts.refused += 1;
                self.tell(Event::Refused { error: &error });
                None
            }
        }
    }

    /// While a thread waits, its part of its client's tickets works for whom
    /// it waits for. Each thread has as large a part as any other; that of a
    /// client's only thread is all.
    pub(super) fn lend(&mut self, thread: u32, mut to: Vec<Target>) {
        let client = self.machine.threads.all[thread as usize].client;
        let from = client_id(client);
        to.retain(|target| *target != Target::Client(from));
        if to.is_empty() {
            return;
        }
        let lending = self.machine.lending.get(&client).copied().unwrap_or(0);
        let parts = self.machine.clients[client as usize].threads - lending;
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
        *self.machine.lending.entry(client).or_default() += 1;
        self.machine.loans.insert(thread, loan);
    }

    /// What a client holds itself, by currency.
    fn holdings(&self, client: ClientId) -> BTreeMap<CurrencyId, u64> {
        let ledger = self.machine.dispatcher.ledger();
        let mut holdings = BTreeMap::new();
        for ticket in ledger.funding(client).filter_map(|id| ledger.ticket(id)) {
            *holdings.entry(ticket.currency).or_default() += u64::from(ticket.amount);
        }
        holdings
    }

    /// Ends what a thread has lent, if anything. It may have ended already,
    /// with a transfer from outside that it was part of.
    pub(super) fn end_loan(&mut self, thread: u32) {
        if let Some(loan) = self.machine.loans.remove(&thread) {
            let client = self.machine.threads.all[thread as usize].client;
            if let Some(lending) = self.machine.lending.get_mut(&client) {
                *lending -= 1;
            }
            for transfer in loan {
                self.end_transfer(Some(transfer));
            }
        }
    }

    pub(crate) fn end_transfer(&mut self, transfer: Option<TransferId>) {
        let ledger = self.machine.dispatcher.ledger();
        if let Some(transfer) = transfer.filter(|id| ledger.transfer(*id).is_some()) {
            self.apply(Operation::EndTransfer { transfer });
        }
    }

    /// The inheritance ticket of a mutex follows its holder.
    pub(super) fn move_inheritance(&mut self, mutex: u32) {
        let state = &self.machine.mutexes[mutex as usize];
        let Some(lottery) = &state.lottery else {
            return;
        };
        let ticket = lottery.inheritance;
        let operation = match state.holder {
            NONE => Operation::Unfund { ticket },
            holder => {
                let client = self.machine.threads.all[holder as usize].client;
                Operation::Fund {
                    ticket,
                    target: Target::Client(client_id(client)),
                }
            }
        };
        self.apply(operation);
    }

    /// Who of those that wait for a mutex gets it.
    pub(super) fn next_holder(&mut self, mutex: u32) -> Option<u32> {
        let machine = &mut self.machine;
        let state = &mut machine.mutexes[mutex as usize];
        let first = *state.waiters.front()?;
        let Some(lottery) = &mut state.lottery else {
            return Some(first);
        };
        // What backs the mutex currency is what the waiters have lent to it.
        let ledger = machine.dispatcher.ledger();
        let mut values: BTreeMap<TransferId, u128> = BTreeMap::new();
        for ticket in ledger
            .backing(lottery.currency)
            .filter_map(|id| ledger.ticket(id))
        {
            if let Some((transfer, _)) = ticket.transfer {
                *values.entry(transfer).or_default() += ticket.value.0;
            }
        }
        let value = |waiter: &u32| -> u128 {
            let loan = machine.loans.get(waiter).into_iter().flatten();
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

/// An amount in equal shares, the first ones getting the odd tickets; who
/// would get none is left out.
fn split(amount: u64, to: &[Target]) -> Vec<(Target, u32)> {
    let receivers = to.len() as u64;
    let amount = amount.min(u32::MAX.into());
    let shares = to.iter().zip(0..).map(|(target, place)| {
        let odd = u64::from(place < amount % receivers);
        (*target, (amount / receivers + odd) as u32)
    });
    shares.filter(|share| share.1 > 0).collect()
}
