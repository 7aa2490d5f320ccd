//! A ledger to which random things happen, watched at every step.

use super::audit::audit;
use super::model::Model;
use super::steps::{Aim, Pick, Step, Wish};
use super::*;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use proptest::sample::Index;
use std::collections::HashMap;

/// Small enough that histories run into every one of them.
pub(super) const LIMITS: Limits = Limits {
    currencies: 7,
    tickets: 26,
    clients: 4,
    transfers: 5,
    depth: 3,
    lending_depth: 2,
    receivers: 3,
    name_bytes: 5,
};

/// A ledger, and what can be known of it without asking it.
pub(super) struct History {
    pub(super) ledger: Ledger,
    pub(super) running: BTreeSet<ClientId>,
    /// Face values of all tickets that no transfer made.
    faces: BTreeMap<TicketId, u32>,
    /// What was applied and what came of it.
    pub(super) applied: Vec<(Operation, Outcome)>,
    /// Which operations were applied and which rules refused some, by name.
    pub(super) met: BTreeSet<String>,
}

impl History {
    /// Begins with a currency and three clients, each with tickets of it and
    /// of the base, so that there is something to transfer.
    pub(super) fn new() -> Self {
        let mut ledger = Ledger::new(LIMITS);
        ledger.watch_funding();
        let base = ledger.base();
        let mut history = Self {
            ledger,
            running: BTreeSet::new(),
            faces: BTreeMap::new(),
            applied: Vec::new(),
            met: BTreeSet::new(),
        };
        let mode = Mode::try_from(0o777).unwrap();
        let currency = CurrencyId::from_parts(1, 0);
        history.begin(Operation::CreateCurrency {
            name: name_of(0),
            owner: 0,
            group: 0,
            mode,
        });
        history.begin(Operation::Issue {
            currency: base,
            amount: 40,
            target: Some(Target::Currency(currency)),
        });
        for number in 0..3 {
            let target = Some(Target::Client(ClientId::from_parts(number.into(), 0)));
            history.begin(Operation::CreateClient {
                name: Some(name_of(number)),
                owner: number.into(),
            });
            history.begin(Operation::Issue {
                currency: base,
                amount: 10,
                target,
            });
            history.begin(Operation::Issue {
                currency,
                amount: 20,
                target,
            });
        }
        history
    }

    fn begin(&mut self, operation: Operation) {
        let applied = self.applied.len();
        self.execute(&Principal::ROOT, operation);
        assert_eq!(self.applied.len(), applied + 1);
    }

    pub(super) fn step(&mut self, step: &Step) {
        let before = Values::of(&self.ledger);
        let epoch = self.ledger.epoch();
        match step {
            Step::Operation { asker, wish } => {
                let asker = Principal {
                    uid: *asker,
                    gids: [asker / 2].into(),
                };
                let operation = self.resolve(wish);
                self.execute(&asker, operation);
            }
            Step::Activate(index) => {
                if let Some(client) = self.some_client(index) {
                    self.ledger.activate(client);
                    self.running.insert(client);
                }
            }
            Step::Deactivate(index) => {
                if let Some(client) = self.some_client(index) {
                    self.ledger.deactivate(client);
                    self.running.remove(&client);
                }
            }
        }
        audit(&self.ledger);
        self.audit_faces();
        Model::new(&self.ledger, &self.running).compare(&self.ledger);
        if self.ledger.epoch() == epoch {
            before.assert_unchanged_in(&self.ledger);
        }
    }

    fn execute(&mut self, asker: &Principal, operation: Operation) {
        let before = format!("{:?}", self.ledger);
        match self.ledger.check(asker, operation.clone()) {
            Ok(checked) => {
                // Activity decides no rule: whatever it does after the check, the operation applies.
                self.running
                    .iter()
                    .for_each(|client| self.ledger.deactivate(*client));
                self.running
                    .iter()
                    .for_each(|client| self.ledger.activate(*client));
                let funding = funding(&self.ledger);
                let outcome = self.ledger.apply(checked);
                self.audit_watch(&funding);
                self.note(&operation, outcome);
                self.met.insert(variant(&operation));
                self.applied.push((operation, outcome));
            }
            Err(error) => {
                assert_eq!(format!("{:?}", self.ledger), before, "{error}");
                assert!(!error.to_string().contains('\n'), "{error}");
                self.met.insert(variant(&error));
            }
        }
    }

    /// Each holder whose funding changed was noted.
    fn audit_watch(&mut self, before: &Fundings) {
        let noted: Vec<Target> = self.ledger.take_funding_changes();
        let after = funding(&self.ledger);
        for target in before.keys().chain(after.keys()) {
            if before.get(target) != after.get(target) {
                assert!(noted.contains(target), "{target:?} was not noted");
            }
        }
        for target in noted {
            assert!(before.contains_key(&target) || after.contains_key(&target));
        }
    }

    /// What an applied operation means for face values and running clients.
    fn note(&mut self, operation: &Operation, outcome: Outcome) {
        match (operation, outcome) {
            (Operation::Issue { amount, .. }, Outcome::Ticket(ticket)) => {
                self.faces.insert(ticket, *amount);
            }
            (Operation::SetAmount { ticket, amount }, _) => {
                self.faces.insert(*ticket, *amount);
            }
            (Operation::DestroyTicket { ticket }, _) => {
                self.faces.remove(ticket);
            }
            (Operation::DestroyClient { client }, _) => {
                self.running.remove(client);
                self.faces
                    .retain(|ticket, _| self.ledger.ticket(*ticket).is_some());
            }
            _ => {}
        }
    }

    /// Transfers move tickets and neither make nor lose any.
    fn audit_faces(&self) {
        let own = self
            .ledger
            .tickets()
            .filter(|ticket| ticket.transfer.is_none());
        let faces: BTreeMap<TicketId, u32> = own
            .map(|ticket| (ticket.id, ticket.amount + ticket.lent))
            .collect();
        assert_eq!(faces, self.faces);
        let issued: u64 = self
            .ledger
            .currencies()
            .map(|currency| currency.issued_amount)
            .sum();
        assert_eq!(
            issued,
            self.faces
                .values()
                .map(|face| u64::from(*face))
                .sum::<u64>()
        );
    }

    /// Ends every transfer in the order that `order` chooses.
    pub(super) fn end_all(&mut self, order: &[Index]) {
        let mut order = order.iter().cycle();
        loop {
            let transfers: Vec<TransferId> = self
                .ledger
                .transfers()
                .map(|transfer| transfer.id)
                .collect();
            if transfers.is_empty() {
                return;
            }
            let transfer = *order.next().expect("never ends").get(&transfers);
            self.execute(&Principal::ROOT, Operation::EndTransfer { transfer });
            audit(&self.ledger);
            self.audit_faces();
        }
    }

    fn some_client(&self, index: &Index) -> Option<ClientId> {
        let clients: Vec<ClientId> = self.ledger.clients().map(|client| client.id).collect();
        (!clients.is_empty()).then(|| *index.get(&clients))
    }

    fn resolve(&self, wish: &Wish) -> Operation {
        match wish {
            Wish::CreateCurrency { name, owner, mode } => Operation::CreateCurrency {
                name: name_of(*name),
                owner: *owner,
                group: owner / 2,
                mode: Mode::try_from(*mode).unwrap(),
            },
            Wish::DestroyCurrency(currency) => Operation::DestroyCurrency {
                currency: self.a_currency(currency),
            },
            Wish::Protect {
                currency,
                owner,
                mode,
            } => Operation::Protect {
                currency: self.a_currency(currency),
                owner: *owner,
                group: owner / 2,
                mode: Mode::try_from(*mode).unwrap(),
            },
            Wish::Issue {
                currency,
                amount,
                target,
            } => Operation::Issue {
                currency: self.a_currency(currency),
                amount: *amount,
                target: target.as_ref().map(|aim| self.a_target(aim)),
            },
            Wish::DestroyTicket(ticket) => Operation::DestroyTicket {
                ticket: self.a_ticket(ticket),
            },
            Wish::SetAmount { ticket, amount } => Operation::SetAmount {
                ticket: self.a_ticket(ticket),
                amount: *amount,
            },
            Wish::Fund { ticket, target } => Operation::Fund {
                ticket: self.a_ticket(ticket),
                target: self.a_target(target),
            },
            Wish::Unfund(ticket) => Operation::Unfund {
                ticket: self.a_ticket(ticket),
            },
            Wish::CreateClient { name, owner } => Operation::CreateClient {
                name: (*name > 0).then(|| name_of(*name)),
                owner: *owner,
            },
            Wish::LimitClient { client, max } => Operation::LimitClient {
                client: self.a_client(client),
                max: *max,
            },
            Wish::DestroyClient(client) => Operation::DestroyClient {
                client: self.a_client(client),
            },
            Wish::Whole { .. } | Wish::Part { .. } | Wish::EndTransfer(_) => {
                self.resolve_transfer(wish)
            }
        }
    }

    fn resolve_transfer(&self, wish: &Wish) -> Operation {
        match wish {
            Wish::Whole { from, targets } => Operation::Transfer {
                from: self.a_client(from),
                portion: Portion::Whole(targets.iter().map(|aim| self.a_target(aim)).collect()),
            },
            Wish::Part {
                from,
                currency,
                shares,
            } => Operation::Transfer {
                from: self.a_client(from),
                portion: Portion::Part {
                    currency: currency.as_ref().map(|pick| self.a_currency(pick)),
                    shares: shares
                        .iter()
                        .map(|(aim, amount)| (self.a_target(aim), *amount))
                        .collect(),
                },
            },
            Wish::EndTransfer(transfer) => {
                let living = self
                    .ledger
                    .transfers()
                    .map(|transfer| transfer.id)
                    .collect();
                let transfer =
                    self.choose(
                        transfer,
                        living,
                        TransferId::from_parts,
                        |outcome| match outcome {
                            Outcome::Transfer(id) => Some(id),
                            _ => None,
                        },
                    );
                Operation::EndTransfer { transfer }
            }
            other => unreachable!("{other:?}"),
        }
    }

    fn a_currency(&self, pick: &Pick) -> CurrencyId {
        let living = self
            .ledger
            .currencies()
            .map(|currency| currency.id)
            .collect();
        self.choose(
            pick,
            living,
            CurrencyId::from_parts,
            |outcome| match outcome {
                Outcome::Currency(id) => Some(id),
                _ => None,
            },
        )
    }

    fn a_ticket(&self, pick: &Pick) -> TicketId {
        let living = self.ledger.tickets().map(|ticket| ticket.id).collect();
        self.choose(
            pick,
            living,
            TicketId::from_parts,
            |outcome| match outcome {
                Outcome::Ticket(id) => Some(id),
                _ => None,
            },
        )
    }

    fn a_client(&self, pick: &Pick) -> ClientId {
        let living = self.ledger.clients().map(|client| client.id).collect();
        self.choose(
            pick,
            living,
            ClientId::from_parts,
            |outcome| match outcome {
                Outcome::Client(id) => Some(id),
                _ => None,
            },
        )
    }

    fn a_target(&self, aim: &Aim) -> Target {
        match aim {
            Aim::Currency(pick) => Target::Currency(self.a_currency(pick)),
            Aim::Client(pick) => Target::Client(self.a_client(pick)),
        }
    }

    /// One of the living, or one that an outcome ever named, or one that never was.
    fn choose<I: Copy>(
        &self,
        pick: &Pick,
        living: Vec<I>,
        never: fn(u32, u32) -> I,
        named: fn(Outcome) -> Option<I>,
    ) -> I {
        let ever = || {
            self.applied
                .iter()
                .filter_map(|(_, outcome)| named(*outcome))
                .collect()
        };
        let candidates = if pick.ever { ever() } else { living };
        if candidates.is_empty() {
            never(7, 3)
        } else {
            *pick.index.get(&candidates)
        }
    }
}

/// Tickets and amounts of every client and currency.
type Fundings = HashMap<Target, Vec<(TicketId, u32)>>;

fn funding(ledger: &Ledger) -> Fundings {
    let amounts = |tickets: &mut dyn Iterator<Item = TicketId>| {
        let ticket = |id| ledger.ticket(id).map(|ticket| (id, ticket.amount));
        tickets.filter_map(ticket).collect::<Vec<_>>()
    };
    let currencies = ledger.currencies().map(|currency| {
        let backing = amounts(&mut ledger.backing(currency.id));
        (Target::Currency(currency.id), backing)
    });
    let clients = ledger.clients().map(|client| {
        let funding = amounts(&mut ledger.funding(client.id));
        (Target::Client(client.id), funding)
    });
    currencies.chain(clients).collect()
}

/// The name of an enum's variant.
fn variant(value: &impl core::fmt::Debug) -> String {
    let text = format!("{value:?}");
    text.chars()
        .take_while(|character| character.is_alphanumeric())
        .collect()
}

/// Names 0 to 9 are legal; the others are empty, too long and unprintable.
fn name_of(number: u8) -> String {
    match number {
        10 => String::new(),
        11 => "twelve".to_string(),
        12 => "a\nb".to_string(),
        _ => format!("n{number}"),
    }
}

/// All values, to see whether they changed.
struct Values {
    currencies: Vec<(CurrencyId, Value)>,
    clients: Vec<(ClientId, Value)>,
}

impl Values {
    fn of(ledger: &Ledger) -> Self {
        Self {
            currencies: ledger
                .currencies()
                .map(|currency| (currency.id, currency.value))
                .collect(),
            clients: ledger
                .clients()
                .map(|client| (client.id, client.value))
                .collect(),
        }
    }

    /// New objects are worth nothing, and so are those that went.
    fn assert_unchanged_in(&self, ledger: &Ledger) {
        let now = Self::of(ledger);
        let worth = |values: &[Value]| values.iter().filter(|value| value.0 > 0).count();
        for (id, value) in self.currencies.iter().chain(&now.currencies) {
            let other = ledger
                .currency(*id)
                .map_or(Value(0), |currency| currency.value);
            assert_eq!(*value, other, "{id}");
        }
        for (id, value) in self.clients.iter().chain(&now.clients) {
            assert_eq!(*value, ledger.value(*id), "{id}");
        }
        let values = |all: &Self| {
            let clients = all.clients.iter().map(|(_, value)| *value);
            clients
                .chain(all.currencies.iter().map(|(_, value)| *value))
                .collect::<Vec<Value>>()
        };
        assert_eq!(worth(&values(self)), worth(&values(&now)));
    }
}
