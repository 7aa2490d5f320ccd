//! The graph of rights and the feasible weights beside the core's ledger and readjustment.

use prorata_core::cpu_limit::CPU_THOUSANDTHS;
use prorata_core::feasible::{Demand, feasible_weights};
use prorata_core::ids::{ClientId, CurrencyId, TicketId};
use prorata_core::ledger::{Ledger, Limits, Mode, Operation, Outcome, Principal, Target};
use rand_core::Rng as _;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::native::{Claim, Graph};
use crate::{amount, numbers};

/// Nodes of the random graphs: the base currency, currencies, then clients.
const CURRENCIES: usize = 13;
const NODES: usize = 40;

/// Tickets of its node that the task of each client holds.
const HELD: i64 = 102_400;

#[test]
fn active_amounts_and_values_are_the_ledger_s() {
    for seed in 0..20 {
        println!("seed {seed}");
        let mut random = numbers(seed);
        let mut both = Both::new(&mut random);
        both.check();
        for _ in 0..100 {
            both.change(&mut random);
            both.check();
        }
    }
}

/// The same graph as a ledger and as the kernel has it.
struct Both {
    ledger: Ledger,
    graph: Graph,
    currencies: Vec<CurrencyId>,
    /// Each client, and whether it is active.
    clients: Vec<(ClientId, bool)>,
    /// Tickets that fund each node.
    funding: Vec<Vec<TicketId>>,
}

impl Both {
    fn new(random: &mut Xoshiro256PlusPlus) -> Self {
        let mut ledger = Ledger::new(Limits::default());
        let mut currencies = vec![ledger.base()];
        currencies.extend((1..CURRENCIES).map(|index| create_currency(&mut ledger, index)));
        let clients = (CURRENCIES..NODES).map(|_| (create_client(&mut ledger), false));
        let mut both = Self {
            clients: clients.collect(),
            ledger,
            graph: Graph::new(),
            currencies,
            funding: vec![Vec::new(); NODES],
        };
        (1..NODES).for_each(|node| both.fund(random, node));
        both
    }

    /// A client becomes active or inactive, or other tickets fund a node.
    fn change(&mut self, random: &mut Xoshiro256PlusPlus) {
        let number = random.next_u64() as usize;
        if random.next_u64().is_multiple_of(4) {
            return self.fund(random, 1 + number % (NODES - 1));
        }
        let index = number % self.clients.len();
        let (client, is_active) = &mut self.clients[index];
        *is_active = !*is_active;
        let (held, toggle): (_, fn(&mut Ledger, ClientId)) = match *is_active {
            true => (HELD, Ledger::activate),
            false => (-HELD, Ledger::deactivate),
        };
        toggle(&mut self.ledger, *client);
        self.graph.hold((CURRENCIES + index) as u32, held);
    }

    /// New tickets of currencies with lower numbers fund a node.
    fn fund(&mut self, random: &mut Xoshiro256PlusPlus, node: usize) {
        for ticket in std::mem::take(&mut self.funding[node]) {
            execute(&mut self.ledger, Operation::DestroyTicket { ticket });
        }
        let target = match node.checked_sub(CURRENCIES) {
            Some(index) => Target::Client(self.clients[index].0),
            None => Target::Currency(self.currencies[node]),
        };
        let mut tickets = Vec::new();
        for _ in 0..random.next_u64() % 4 {
            let currency = (random.next_u64() as usize) % node.min(CURRENCIES);
            let amount = amount(random, 20);
            let ticket = issue(
                &mut self.ledger,
                self.currencies[currency],
                amount as u32,
                target,
            );
            self.funding[node].push(ticket);
            tickets.push((currency as u32, amount));
        }
        self.graph.fund(node as u32, &tickets);
    }

    fn check(&mut self) {
        for (node, &currency) in self.currencies.iter().enumerate() {
            let view = self.ledger.currency(currency).expect("it exists");
            let active = self.graph.active(node as u32);
            assert_eq!(active, view.active_amount as i64, "currency {node}");
        }
        for (index, &(client, is_active)) in self.clients.iter().enumerate() {
            let node = (CURRENCIES + index) as u32;
            if !is_active {
                continue;
            }
            let ledger = self.ledger.value(client).to_f64();
            let ours = self.graph.value(node).to_f64();
            // The ledger rounds, too: by 2^-32 base tickets for each ticket.
            let error = (ours - ledger).abs();
            assert!(
                error <= ledger * 2f64.powi(-25) + 2f64.powi(-24),
                "client {node}: {ours} for {ledger}"
            );
        }
    }
}

fn execute(ledger: &mut Ledger, operation: Operation) -> Outcome {
    ledger.execute(&Principal::ROOT, operation).unwrap()
}

fn create_client(ledger: &mut Ledger) -> ClientId {
    let operation = Operation::CreateClient {
        name: None,
        owner: 0,
    };
    match execute(ledger, operation) {
        Outcome::Client(client) => client,
        other => panic!("{other:?}"),
    }
}

fn create_currency(ledger: &mut Ledger, index: usize) -> CurrencyId {
    let operation = Operation::CreateCurrency {
        name: format!("c{index}"),
        owner: 0,
        group: 0,
        mode: Mode::DEFAULT,
    };
    match execute(ledger, operation) {
        Outcome::Currency(currency) => currency,
        other => panic!("{other:?}"),
    }
}

fn issue(ledger: &mut Ledger, currency: CurrencyId, amount: u32, target: Target) -> TicketId {
    let target = Some(target);
    let operation = Operation::Issue {
        currency,
        amount,
        target,
    };
    match execute(ledger, operation) {
        Outcome::Ticket(ticket) => ticket,
        other => panic!("{other:?}"),
    }
}

/// The kernel looks at the running tasks only; those of the densest demands are among them.
#[test]
fn feasible_weights_are_the_core_s() {
    let cut = check_feasible(7, 20_000, |_| None);
    assert!(cut > 5_000, "only {cut} rounds had infeasible weights");
}

/// Some clients, or all, have limits: from a thousandth of a CPU to more than all CPUs.
#[test]
fn feasible_weights_of_limited_clients_are_the_core_s() {
    let cut = check_feasible(8, 5_000, |random| match random.next_u64() % 3 {
        0 => None,
        _ => Some(amount(random, 15) as u32),
    });
    assert!(cut > 2_500, "only {cut} rounds had infeasible weights");
}

/// Compares random claims with such limits. Returns how many rounds had infeasible weights.
fn check_feasible(
    seed: u64,
    rounds: u32,
    mut limit: impl FnMut(&mut Xoshiro256PlusPlus) -> Option<u32>,
) -> u32 {
    let mut random = numbers(seed);
    let mut cut = 0;
    for round in 0..rounds {
        let cpus = 1 + (random.next_u64() % 16) as u32;
        let count = 1 + random.next_u64() % 24;
        let bits = 12 + (random.next_u64() % 6) as u32;
        let claims = (0..count).map(|_| {
            let claim = Claim {
                weight: (1 << 11) + amount(&mut random, bits),
                tasks: 1 + (random.next_u64() % 3) as u32,
                max: limit(&mut random),
            };
            let most = claim.tasks.min(cpus) * CPU_THOUSANDTHS;
            let demand = Demand {
                weight: claim.weight as u32,
                cpus: claim.max.map_or(most, |max| most.min(max)),
            };
            (demand, claim)
        });
        let mut claims: Vec<(Demand, Claim)> = claims.collect();
        claims.sort_by(|(a, _), (b, _)| b.cmp_density(a));
        let (demands, claims): (Vec<Demand>, Vec<Claim>) = claims.into_iter().unzip();
        let core = feasible_weights(&demands, cpus * CPU_THOUSANDTHS);
        cut += u32::from(core.iter().zip(&demands).any(|(w, d)| *w < d.weight));
        let ours = Graph::new().feasible(&claims, cpus);
        for (ours, core) in ours.iter().zip(&core) {
            let core = f64::from(*core);
            // The core rounds to whole tickets.
            assert!(
                (ours - core).abs() <= 1.0 + core * 2f64.powi(-20),
                "round {round}, {cpus} CPUs, {claims:?}: {ours} for {core}"
            );
        }
    }
    cut
}
