//! Fills the ledger: currencies, clients, tickets, and the currencies of mutexes.

use std::collections::BTreeMap;

use prorata_core::cpu_limit::CpuLimit;
use prorata_core::ids::{CurrencyId, TicketId};
use prorata_core::ledger::{
    Ledger, LedgerError, Limits, Mode, Operation, Outcome, Principal, Target,
};

use super::{Group, MutexPlan, check_name, client_id, limits, needs_currency};
use crate::file::{
    Amount, BASE, Client, Currency, KeyPath, Mutex, Problem, Rule, ScenarioError, Tickets, Time,
};

type Result<T> = core::result::Result<T, ScenarioError>;

/// Enough for a scenario at all its limits, including transfers.
const LIMITS: Limits = Limits {
    currencies: limits::CURRENCIES,
    tickets: 8 * limits::CLIENTS,
    clients: limits::CLIENTS,
    transfers: limits::THREADS,
    depth: 64,
    lending_depth: 64,
    receivers: 64,
    name_bytes: 64,
};

/// A ledger in the making.
pub(super) struct Builder {
    ledger: Ledger,
    /// Number of copies of each currency that has copies.
    copies: BTreeMap<String, u32>,
    groups: Vec<Group>,
}

/// Checks and applies an operation as the super-user.
fn apply(ledger: &mut Ledger, operation: Operation) -> core::result::Result<Outcome, LedgerError> {
    ledger.execute(&Principal::ROOT, operation)
}

impl Builder {
    pub(super) fn new(groups: Vec<Group>) -> Builder {
        Builder {
            ledger: Ledger::new(LIMITS),
            copies: BTreeMap::new(),
            groups,
        }
    }

    pub(super) fn finish(self) -> (Ledger, Vec<Group>) {
        (self.ledger, self.groups)
    }

    /// Makes all currencies before any ticket, so that the file may list them in any order.
    pub(super) fn currencies(&mut self, currencies: &[Currency]) -> Result<()> {
        let root = KeyPath::default().key("currency");
        for (i, currency) in currencies.iter().enumerate() {
            self.create_copies(currency, &root.index(i))?;
        }
        for (i, currency) in currencies.iter().enumerate() {
            let place = root.index(i);
            for copy in 0..currency.count.unwrap_or(1) {
                let id = self.currency(&currency.name, copy, &place)?;
                let (place, holder) = (place.key("tickets"), Target::Currency(id));
                self.fund(&currency.tickets, holder, copy, &place)?;
            }
        }
        Ok(())
    }

    fn create_copies(&mut self, currency: &Currency, place: &KeyPath) -> Result<()> {
        let name = &currency.name;
        check_name(name, &place.key("name"))?;
        let names = match currency.count {
            None => vec![name.clone()],
            Some(count) => {
                let place = place.key("count");
                limits::within("count", count, 1, limits::CURRENCIES, &place)?;
                (0..count).map(|copy| copy_name(name, copy)).collect()
            }
        };
        let place = place.key("name");
        for name in &names {
            if self.groups.iter().any(|group| group.name == *name) {
                return Err(place.problem(Problem::Duplicate(name.clone())));
            }
            self.create_currency(name, &place)?;
        }
        let among = currency
            .count
            .map(|count| self.copies.insert(name.clone(), count));
        match among {
            Some(Some(_)) => Err(place.problem(Problem::Duplicate(name.clone()))),
            _ => Ok(()),
        }
    }

    pub(super) fn clients(&mut self, clients: &[Client]) -> Result<()> {
        let root = KeyPath::default().key("client");
        self.reserve(clients);
        for (i, client) in clients.iter().enumerate() {
            let place = root.index(i);
            let range = self.groups[i].clients.clone();
            let mut ruled = Vec::new();
            for (index, copy) in range.clone().zip(0..) {
                let name = client.count.is_none().then(|| client.name.clone());
                self.create_client(index, name, &place.key("name"))?;
                if let Some(max) = client.max {
                    self.limit(index, max, &place.key("max"))?;
                }
                let (place, holder) = (place.key("tickets"), Target::Client(client_id(index)));
                match &client.tickets {
                    Tickets::Fixed(amounts) => self.fund(amounts, holder, copy, &place)?,
                    Tickets::Ruled(rule) => ruled.push(self.rule(rule, holder, copy, &place)?),
                }
            }
            self.groups[i].ruled = ruled;
        }
        Ok(())
    }

    fn limit(&mut self, client: u32, max: CpuLimit, place: &KeyPath) -> Result<()> {
        let limit = Operation::LimitClient {
            client: client_id(client),
            max: Some(max),
        };
        let limited = apply(&mut self.ledger, limit);
        limited
            .map(drop)
            .map_err(|error| place.problem(Problem::Ledger(error)))
    }

    /// Makes room for all clients with their tickets.
    fn reserve(&mut self, clients: &[Client]) {
        let copies = clients.iter().zip(&self.groups).map(|(client, group)| {
            let each = match &client.tickets {
                Tickets::Fixed(amounts) => amounts.len(),
                Tickets::Ruled(_) => 1,
            };
            (group.clients.len(), group.clients.len() * each)
        });
        let (clients, tickets) = copies.fold((0, 0), |sum, more| (sum.0 + more.0, sum.1 + more.1));
        self.ledger
            .reserve(clients, tickets.min(LIMITS.tickets as usize));
    }

    /// A lottery-scheduled mutex has a currency, and an inheritance ticket in
    /// it that will fund the holder (1994, 6.1).
    pub(super) fn mutexes(&mut self, mutexes: &BTreeMap<String, Mutex>) -> Result<Vec<MutexPlan>> {
        let root = KeyPath::default().key("mutex");
        let mutexes = mutexes.iter().map(|(name, mutex)| {
            let place = root.key(name);
            let lottery = needs_currency(mutex.kind).then(|| -> Result<_> {
                let currency = self.create_currency(&format!("mutex {name}"), &place)?;
                Ok((currency, self.issue(currency, 1, None, &place)?))
            });
            Ok(MutexPlan {
                name: name.clone(),
                lottery: lottery.transpose()?,
                keeps_cpu: mutex.keeps_cpu,
                kernel: mutex.kernel,
            })
        });
        mutexes.collect()
    }

    fn fund(
        &mut self,
        amounts: &[Amount],
        holder: Target,
        copy: u32,
        place: &KeyPath,
    ) -> Result<()> {
        for (i, amount) in amounts.iter().enumerate() {
            // A single amount is written without a list.
            let place = if amounts.len() > 1 {
                place.index(i)
            } else {
                place.clone()
            };
            if amounts[..i]
                .iter()
                .any(|other| other.currency == amount.currency)
            {
                return Err(place.problem(Problem::Duplicate(amount.currency.clone())));
            }
            let currency = self.currency(&amount.currency, copy, &place)?;
            self.issue(currency, amount.amount, Some(holder), &place)?;
        }
        Ok(())
    }

    /// The ticket that a rule changes.
    fn rule(
        &mut self,
        rule: &Rule,
        holder: Target,
        copy: u32,
        place: &KeyPath,
    ) -> Result<TicketId> {
        let (initial, inner) = match rule {
            Rule::Random(random) => {
                let (low, high) = random.between;
                let place = place.key("random").key("between");
                limits::within("the fewest tickets", low, 1, high, &place)?;
                (low, "random")
            }
            Rule::MonteCarlo(monte_carlo) => {
                let place = place.key("monte-carlo");
                limits::within("scale", monte_carlo.scale, 1, u32::MAX, &place.key("scale"))?;
                limits::within("power", monte_carlo.power, 1, 3, &place.key("power"))?;
                let trial = monte_carlo.trial;
                limits::within("trial", trial, Time(1), Time::MAX, &place.key("trial"))?;
                (monte_carlo.scale, "monte-carlo")
            }
        };
        let place = place.key(inner);
        limits::within(
            "every",
            rule.every(),
            Time(1),
            Time::MAX,
            &place.key("every"),
        )?;
        let currency = self.currency(rule.currency(), copy, &place.key("currency"))?;
        self.issue(currency, initial, Some(holder), &place)
    }

    /// The currency that a name means for the copy of this number, from 0.
    fn currency(&self, name: &str, copy: u32, place: &KeyPath) -> Result<CurrencyId> {
        let found = match self.copies.get(name) {
            None => self.ledger.find_currency(name),
            Some(count) => self.ledger.find_currency(&copy_name(name, copy % count)),
        };
        found.ok_or_else(|| place.problem(unknown_currency(&self.ledger, name)))
    }

    fn create_currency(&mut self, name: &str, place: &KeyPath) -> Result<CurrencyId> {
        let operation = Operation::CreateCurrency {
            name: name.to_owned(),
            owner: 0,
            group: 0,
            mode: Mode::DEFAULT,
        };
        match self.apply(operation, place)? {
            Outcome::Currency(currency) => Ok(currency),
            other => unreachable!("a new currency gave {other:?}"),
        }
    }

    fn create_client(&mut self, index: u32, name: Option<String>, place: &KeyPath) -> Result<()> {
        let operation = Operation::CreateClient { name, owner: 0 };
        let outcome = self.apply(operation, place)?;
        assert_eq!(
            outcome,
            Outcome::Client(client_id(index)),
            "clients are numbered from zero"
        );
        Ok(())
    }

    fn issue(
        &mut self,
        currency: CurrencyId,
        amount: u32,
        target: Option<Target>,
        place: &KeyPath,
    ) -> Result<TicketId> {
        let operation = Operation::Issue {
            currency,
            amount,
            target,
        };
        match self.apply(operation, place)? {
            Outcome::Ticket(ticket) => Ok(ticket),
            other => unreachable!("a new ticket gave {other:?}"),
        }
    }

    fn apply(&mut self, operation: Operation, place: &KeyPath) -> Result<Outcome> {
        apply(&mut self.ledger, operation).map_err(|error| place.problem(error))
    }
}

/// People see copies numbered from 1.
fn copy_name(name: &str, copy: u32) -> String {
    format!("{name}{}", copy + 1)
}

pub(super) fn unknown_currency(ledger: &Ledger, name: &str) -> Problem {
    let known: Vec<&str> = ledger
        .currencies()
        .map(|currency| currency.name)
        .take(8)
        .collect();
    let fix = if known == [BASE] {
        "write a [[currency]] of that name, or use base".to_owned()
    } else {
        format!(
            "write a [[currency]] of that name, or use one of {}",
            known.join(", ")
        )
    };
    Problem::Unknown {
        kind: "currency",
        name: name.to_owned(),
        fix,
    }
}
