//! Random histories of a ledger, followed by the simplest possible kernel.

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::RngSeed;
use prorata_core::ids::{TicketId, TransferId};
use prorata_core::ledger::{Limits, Mode, Operation, Portion, Principal};

use super::*;

/// Small limits, so that histories reach each of them.
const LIMITS: Limits = Limits {
    currencies: 8,
    tickets: 40,
    clients: 6,
    transfers: 8,
    depth: 5,
    lending_depth: 3,
    receivers: 3,
    name_bytes: 8,
};

/// A kernel that was told all steps.
#[derive(Default, Debug)]
struct Kernel {
    nodes: BTreeMap<u32, Vec<Ticket>>,
}

impl Kernel {
    fn take(&mut self, step: &KernelStep) {
        match step {
            KernelStep::Fund { node, tickets } => {
                assert!((1..CGROUP_NODES).contains(node), "{step:?}");
                for ticket in tickets {
                    let there =
                        ticket.currency == BASE || self.nodes.contains_key(&ticket.currency);
                    assert!(
                        there && (1..=MAX_AMOUNT).contains(&ticket.amount),
                        "{step:?}"
                    );
                }
                self.nodes.insert(*node, tickets.clone());
                assert!(
                    !self.funds(*node, *node, 0),
                    "a cycle after {step:?}: {self:?}"
                );
            }
            KernelStep::Remove(node) => {
                assert!(self.nodes.remove(node).is_some(), "{step:?}");
                let mut tickets = self.nodes.values().flatten();
                assert!(tickets.all(|ticket| ticket.currency != *node), "{step:?}");
            }
        }
    }

    /// Whether tickets lead from `node` up to `currency`.
    fn funds(&self, currency: u32, node: u32, depth: usize) -> bool {
        assert!(depth <= self.nodes.len(), "a cycle: {self:?}");
        let above = self.nodes.get(&node).into_iter().flatten();
        above.into_iter().any(|ticket| {
            ticket.currency == currency || self.funds(currency, ticket.currency, depth + 1)
        })
    }

    /// "A ticket is active while it is being used to compete" (1994, 4.4).
    fn active_amount(&self, currency: u32, running: &BTreeSet<u32>) -> u64 {
        let funded = self.nodes.iter().map(|(node, tickets)| {
            let issued = tickets.iter().filter(|ticket| ticket.currency == currency);
            (node, issued.map(|ticket| ticket.amount).sum::<u64>())
        });
        let competes = |node: u32| running.contains(&node) || self.active_amount(node, running) > 0;
        funded
            .filter(|(node, amount)| *amount > 0 && competes(**node))
            .map(|(_, amount)| amount)
            .sum()
    }

    /// What an active node is worth, in units of 2^-32 base units.
    fn value(&self, node: u32, running: &BTreeSet<u32>) -> u128 {
        let worth = |ticket: &Ticket| {
            let amount = u128::from(ticket.amount);
            match ticket.currency {
                BASE => amount << 32,
                currency => {
                    let active_amount = self.active_amount(currency, running);
                    self.value(currency, running) * amount / u128::from(active_amount)
                }
            }
        };
        self.nodes[&node].iter().map(worth).sum()
    }
}

/// A ledger and the kernel that follows it.
struct History {
    ledger: Ledger,
    projection: Projection,
    kernel: Kernel,
    /// Names that were given, so that each new one differs.
    names: u32,
}

impl History {
    fn new() -> Self {
        let mut ledger = Ledger::new(LIMITS);
        ledger.watch_funding();
        let projection = Projection::new(&ledger);
        for name in ["a", "b"] {
            let create = Operation::CreateCurrency {
                name: name.to_owned(),
                owner: 0,
                group: 0,
                mode: Mode::DEFAULT,
            };
            ledger.execute(&Principal::ROOT, create).unwrap();
        }
        // A ticket for a transfer.
        for index in 0..3 {
            let create = Operation::CreateClient {
                name: None,
                owner: 0,
            };
            ledger.execute(&Principal::ROOT, create).unwrap();
            for currency in [0, 1, 2] {
                let issue = Operation::Issue {
                    currency: CurrencyId::from_parts(currency, 0),
                    amount: 10 * (index + currency + 1),
                    target: Some(Target::Client(ClientId::from_parts(index, 0))),
                };
                ledger.execute(&Principal::ROOT, issue).unwrap();
            }
        }
        Self {
            ledger,
            projection,
            kernel: Kernel::default(),
            names: 0,
        }
    }

    fn execute(&mut self, wish: &Wish) {
        if let Some(operation) = self.resolve(wish) {
            // Random operations are often refused.
            let _ = self.ledger.execute(&Principal::ROOT, operation);
        }
    }

    fn resolve(&mut self, wish: &Wish) -> Option<Operation> {
        let Wish {
            kind,
            picks,
            amount,
        } = wish;
        let amount = *amount;
        let [first, second, third] = picks;
        let currencies: Vec<CurrencyId> = self.ledger.currencies().map(|view| view.id).collect();
        let clients: Vec<ClientId> = self.ledger.clients().map(|view| view.id).collect();
        let tickets: Vec<TicketId> = self.ledger.tickets().map(|view| view.id).collect();
        let transfers: Vec<TransferId> = self.ledger.transfers().map(|view| view.id).collect();
        let mut targets: Vec<Target> = currencies.iter().map(|id| Target::Currency(*id)).collect();
        targets.extend(clients.iter().map(|id| Target::Client(*id)));
        self.names += 1;
        let name = format!("n{}", self.names);
        let mode = Mode::DEFAULT;
        Some(match kind {
            0 => Operation::CreateCurrency {
                name,
                owner: 0,
                group: 0,
                mode,
            },
            1 => Operation::DestroyCurrency {
                currency: pick(first, &currencies)?,
            },
            2 => Operation::Issue {
                currency: pick(first, &currencies)?,
                amount,
                target: pick(second, &targets),
            },
            3 => Operation::DestroyTicket {
                ticket: pick(first, &tickets)?,
            },
            4 => Operation::SetAmount {
                ticket: pick(first, &tickets)?,
                amount,
            },
            5 => Operation::Fund {
                ticket: pick(first, &tickets)?,
                target: pick(second, &targets)?,
            },
            6 => Operation::CreateClient {
                name: Some(name),
                owner: 0,
            },
            7 => Operation::DestroyClient {
                client: pick(first, &clients)?,
            },
            8 => Operation::Transfer {
                from: pick(first, &clients)?,
                portion: Portion::Whole(vec![pick(second, &targets)?, pick(third, &targets)?]),
            },
            9 => Operation::Transfer {
                from: pick(first, &clients)?,
                portion: Portion::Part {
                    currency: pick(third, &currencies),
                    shares: vec![(pick(second, &targets)?, amount % 10 + 1)],
                },
            },
            10 => Operation::EndTransfer {
                transfer: pick(first, &transfers)?,
            },
            _ => Operation::Unfund {
                ticket: pick(first, &tickets)?,
            },
        })
    }

    /// Tells the kernel, and checks that it can take each step.
    fn follow(&mut self) {
        let changed = self.ledger.take_funding_changes();
        for step in self.projection.follow(&self.ledger, changed) {
            self.kernel.take(&step);
            if let KernelStep::Remove(node) = step {
                self.projection.forgotten(node);
            }
        }
    }

    /// Every running client has the same value on both sides.
    fn compare(&mut self, running: u8) {
        let clients: Vec<ClientId> = self.ledger.clients().map(|client| client.id).collect();
        let mut nodes = BTreeSet::new();
        for (place, client) in clients.iter().enumerate() {
            let node = self.projection.node(*client).expect("it has one");
            assert_eq!(self.projection.client(node), Some(*client));
            if running >> place & 1 == 1 {
                self.ledger.activate(*client);
                nodes.insert(node);
            }
        }
        let divided = self.ledger.tickets().count() as u128;
        for client in &clients {
            let Some(node) = self
                .projection
                .node(*client)
                .filter(|node| nodes.contains(node))
            else {
                continue;
            };
            let (kernel, ledger) = (
                self.kernel.value(node, &nodes),
                self.ledger.value(*client).0,
            );
            assert!(
                kernel.abs_diff(ledger) <= divided,
                "{client}: {kernel} instead of {ledger}"
            );
        }
        let active = self.kernel.active_amount(BASE, &nodes);
        assert_eq!(active, self.ledger.active_base_amount());
        clients
            .iter()
            .for_each(|client| self.ledger.deactivate(*client));
    }

    /// A kernel that was told everything at once holds the same, except for
    /// numbers.
    fn compare_with_new_kernel(&self) {
        let mut projection = Projection::new(&self.ledger);
        let mut kernel = Kernel::default();
        for step in projection.begin(&self.ledger) {
            kernel.take(&step);
        }
        let named =
            |projection: &Projection, kernel: &Kernel| -> BTreeMap<Place, Vec<(Place, u64)>> {
                let place = |node: u32| match node {
                    BASE => Place::Currency(self.ledger.base()),
                    node => projection.targets[&node].into(),
                };
                let list = |tickets: &Vec<Ticket>| {
                    let mut list: Vec<_> = tickets
                        .iter()
                        .map(|ticket| (place(ticket.currency), ticket.amount))
                        .collect();
                    list.sort_unstable();
                    list
                };
                kernel
                    .nodes
                    .iter()
                    .map(|(node, tickets)| (place(*node), list(tickets)))
                    .collect()
            };
        assert_eq!(
            named(&projection, &kernel),
            named(&self.projection, &self.kernel)
        );
    }
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Currency(id) => id.fmt(f),
            Place::Client(id) => id.fmt(f),
        }
    }
}

fn pick<T: Copy>(index: &Index, from: &[T]) -> Option<T> {
    (!from.is_empty()).then(|| *index.get(from))
}

/// An operation; its objects are chosen when it happens.
#[derive(Clone, Debug)]
struct Wish {
    kind: u8,
    picks: [Index; 3],
    amount: u32,
}

fn wish() -> impl Strategy<Value = Wish> {
    let kind = prop_oneof![
        3 => Just(0u8), 2 => Just(1u8), 8 => Just(2u8), 2 => Just(3u8), 4 => Just(4u8), 5 => Just(5u8),
        3 => Just(6u8), 2 => Just(7u8), 4 => Just(8u8), 6 => Just(9u8), 2 => Just(10u8), 2 => Just(11u8),
    ];
    let amount = prop_oneof![6 => 1..100u32, 1 => any::<u32>(), 1 => Just(u32::MAX)];
    (kind, any::<[Index; 3]>(), amount).prop_map(|(kind, picks, amount)| Wish {
        kind,
        picks,
        amount,
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 192,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1994),
        ..ProptestConfig::default()
    })]

    /// Several operations may happen before the kernel is told, as in one
    /// request.
    #[test]
    fn the_kernel_holds_what_the_ledger_holds(
        batches in prop::collection::vec((prop::collection::vec(wish(), 1..5), any::<u8>()), 1..60),
    ) {
        let mut history = History::new();
        history.follow();
        for (batch, running) in batches {
            batch.iter().for_each(|wish| history.execute(wish));
            history.follow();
            history.compare(running);
        }
        history.compare_with_new_kernel();
    }
}

#[test]
fn the_kernel_is_told_nothing_twice() {
    let mut history = History::new();
    history.follow();
    let all = history
        .ledger
        .currencies()
        .map(|view| Target::Currency(view.id));
    let all: Vec<Target> = all
        .chain(history.ledger.clients().map(|view| Target::Client(view.id)))
        .collect();
    assert_eq!(history.projection.follow(&history.ledger, all), []);
}

#[test]
fn a_number_is_not_used_again_before_the_kernel_has_forgotten_it() {
    let mut ledger = Ledger::new(LIMITS);
    let mut projection = Projection::new(&ledger);
    let client = |ledger: &mut Ledger, projection: &mut Projection| {
        let create = Operation::CreateClient {
            name: None,
            owner: 0,
        };
        ledger.execute(&Principal::ROOT, create).unwrap();
        let client = ledger.clients().last().unwrap().id;
        projection.follow(ledger, [Target::Client(client)]);
        (client, projection.node(client).unwrap())
    };
    let (first, number) = client(&mut ledger, &mut projection);
    let destroy = Operation::DestroyClient { client: first };
    ledger.execute(&Principal::ROOT, destroy).unwrap();
    let steps = projection.follow(&ledger, [Target::Client(first)]);
    assert_eq!(steps, [KernelStep::Remove(number)]);
    assert_eq!(projection.client(number), None);
    let (second, other) = client(&mut ledger, &mut projection);
    assert_ne!(other, number);
    assert_eq!(
        (first.index(), first.generation() + 1),
        (second.index(), second.generation())
    );
    projection.forgotten(number);
    let (_, third) = client(&mut ledger, &mut projection);
    assert_eq!(third, number);
}

#[test]
fn the_kernel_has_room_up_to_its_limit_and_not_past_it() {
    let mut ledger = Ledger::new(Limits {
        clients: CGROUP_NODES,
        ..LIMITS
    });
    for _ in 0..CGROUP_NODES {
        let create = Operation::CreateClient {
            name: None,
            owner: 0,
        };
        ledger.execute(&Principal::ROOT, create).unwrap();
    }
    let mut projection = Projection::new(&ledger);
    let steps = projection.begin(&ledger).len();
    assert_eq!(steps, CGROUP_NODES as usize - 1);
    let numbers: Vec<Option<u32>> = ledger
        .clients()
        .map(|client| projection.node(client.id))
        .collect();
    let without: Vec<&Option<u32>> = numbers.iter().filter(|number| number.is_none()).collect();
    assert_eq!(without.len(), 1, "the last one");
    assert_eq!(numbers.iter().flatten().max(), Some(&(CGROUP_NODES - 1)));
    assert!(projection.is_full());
    // When one object goes, the one without a node gets one.
    let first = ledger.clients().next().unwrap().id;
    let last = ledger.clients().last().unwrap().id;
    let destroy = Operation::DestroyClient { client: first };
    ledger.execute(&Principal::ROOT, destroy).unwrap();
    let steps = projection.follow(&ledger, [Target::Client(first)]);
    assert_eq!(steps.len(), 1, "{steps:?}");
    let KernelStep::Remove(node) = steps[0] else {
        panic!("{steps:?}")
    };
    assert_eq!(projection.follow(&ledger, []), []);
    projection.forgotten(node);
    let steps = projection.follow(&ledger, []);
    assert_eq!((steps.len(), projection.node(last)), (1, Some(node)));
    assert!(!projection.is_full());
}

#[test]
fn an_amount_that_the_kernel_does_not_take_is_split() {
    let per_currency = u32::try_from(MAX_AMOUNT / u64::from(u32::MAX)).unwrap() + 2;
    let mut ledger = Ledger::new(Limits {
        tickets: per_currency,
        ..LIMITS
    });
    let create = Operation::CreateClient {
        name: None,
        owner: 0,
    };
    ledger.execute(&Principal::ROOT, create).unwrap();
    let client = ledger.clients().next().unwrap().id;
    for _ in 0..per_currency {
        let issue = Operation::Issue {
            currency: ledger.base(),
            amount: u32::MAX,
            target: Some(Target::Client(client)),
        };
        ledger.execute(&Principal::ROOT, issue).unwrap();
    }
    let mut projection = Projection::new(&ledger);
    let mut steps = projection.begin(&ledger);
    let Some(KernelStep::Fund { tickets, .. }) = steps.pop() else {
        panic!("{steps:?}")
    };
    let total: u64 = tickets.iter().map(|ticket| ticket.amount).sum();
    assert_eq!(total, u64::from(per_currency) * u64::from(u32::MAX));
    assert!(tickets.iter().all(|ticket| ticket.amount <= MAX_AMOUNT) && tickets.len() == 2);
}
