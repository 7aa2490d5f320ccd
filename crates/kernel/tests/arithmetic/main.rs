//! The arithmetic of the scheduler in the kernel (`bpf/arithmetic.h`, compiled
//! natively) beside the core's.

mod native;

use std::convert::Infallible;

use native::{LONGEST_WAIT, PASS_BITS, Worth, chanced, minus_ln, rescaled, service_in, wait_for};
use prorata_core::ids::{ClientId, CurrencyId};
use prorata_core::ledger::{Ledger, Limits, Mode, Operation, Outcome, Principal, Target};
use prorata_core::policy::{ClientIndex, Policy as _, Race, Stride};
use rand_core::{Rng, SeedableRng, TryRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A generator that always says the same.
struct Always(u64);

impl TryRng for Always {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.0 as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0)
    }

    fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), Infallible> {
        unreachable!("the race draws whole words")
    }
}

fn numbers(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

/// Of all magnitudes up to so many bits.
fn amount(numbers: &mut Xoshiro256PlusPlus, bits: u32) -> u64 {
    let size = numbers.next_u64() % u64::from(bits);
    (1 << size) | (numbers.next_u64() & ((1 << size) - 1))
}

fn same(found: f64, expected: f64, relative: f64) {
    let error = (found - expected).abs();
    assert!(error <= expected.abs() * relative, "{found} for {expected}");
}

#[test]
fn a_chance_is_the_core_race_s_bit_for_bit() {
    let mut random = numbers(1);
    for round in 0..300_000 {
        let bits = match round % 3 {
            0 => random.next_u64(),
            1 => random.next_u64() >> (random.next_u64() % 64),
            _ => !(random.next_u64() >> (random.next_u64() % 64)),
        };
        let mut race = Race::new(Always(bits));
        race.join(ClientIndex(0), 1).unwrap();
        // The first wait is a stride times the chance: exact in the format.
        let core = race.pass(ClientIndex(0)).unwrap() * 2f64.powi(40);
        assert_eq!(minus_ln(bits) as f64, core, "{bits:#x}");
    }
}

#[test]
fn chances_multiply_service() {
    let mut random = numbers(2);
    for _ in 0..100_000 {
        let bits = random.next_u64();
        let service = amount(&mut random, 34);
        let counted = service.min(u32::MAX.into());
        let exact = counted as f64 * minus_ln(bits) as f64 / 2f64.powi(40);
        let error = (chanced(service, bits) as f64 - exact).abs();
        assert!(
            error <= 1.0 + counted as f64 / 2f64.powi(26),
            "{service} {bits:#x}"
        );
    }
}

#[test]
fn worths_are_right_to_30_bits() {
    let mut random = numbers(3);
    for _ in 0..300_000 {
        let (a, b) = (amount(&mut random, 64), amount(&mut random, 64));
        let (a, b) = (a as f64, b as f64);
        let (x, y) = (Worth::of(a as u64), Worth::of(b as u64));
        let bound = 2f64.powi(-30);
        same(x.to_f64(), a, bound);
        same(x.plus(y).to_f64(), a + b, bound);
        same(x.times(y).to_f64(), a * b, 2.0 * bound);
        same(x.over(y).to_f64(), a / b, 2.0 * bound);
    }
    assert_eq!(Worth::of(0).to_f64(), 0.0);
    assert_eq!(Worth::of(5).over(Worth::of(0)).to_f64(), 0.0);
    assert_eq!(Worth::of(0).plus(Worth::of(5)).to_f64(), 5.0);
}

/// Random graphs of currencies: what clients are worth, as in the ledger.
#[test]
fn values_are_the_ledger_s() {
    for seed in 0..200 {
        let mut random = numbers(seed);
        let graph = RandomGraph::new(&mut random);
        for (client, node) in graph.clients.clone() {
            let ledger = graph.ledger.value(client).to_f64();
            let ours = graph.value(node).to_f64();
            // The ledger, too, rounds: by 2^-32 base tickets for each ticket.
            let error = (ours - ledger).abs();
            assert!(
                error <= ledger * 2f64.powi(-25) + 2f64.powi(-24),
                "{seed}: {ours} {ledger}"
            );
        }
    }
}

/// The same graph as a ledger and as the kernel has it.
struct RandomGraph {
    ledger: Ledger,
    /// Tickets that fund each node: currency's node and amount.
    tickets: Vec<Vec<(usize, u64)>>,
    active: Vec<u64>,
    clients: Vec<(ClientId, usize)>,
}

impl RandomGraph {
    fn new(random: &mut Xoshiro256PlusPlus) -> Self {
        let mut ledger = Ledger::new(Limits::default());
        let mut currencies = vec![ledger.base()];
        let mut graph_tickets = vec![Vec::new()];
        let mut clients = Vec::new();
        for index in 1..40 {
            let is_client = index > 12;
            let target = if is_client {
                Target::Client(create_client(&mut ledger))
            } else {
                Target::Currency(create_currency(&mut ledger, index))
            };
            let mut tickets = Vec::new();
            for _ in 0..1 + random.next_u64() % 3 {
                // Not deeper than the ledger's limit.
                let place = (random.next_u64() as usize) % currencies.len();
                let amount = amount(random, 20);
                issue(&mut ledger, currencies[place], amount as u32, target);
                tickets.push((place, amount));
            }
            graph_tickets.push(tickets);
            match target {
                Target::Client(client) => clients.push((client, index)),
                Target::Currency(currency) => currencies.push(currency),
            }
        }
        for &(client, _) in &clients {
            ledger.activate(client);
        }
        let active = active_amounts(&graph_tickets, currencies.len());
        Self {
            ledger,
            tickets: graph_tickets,
            active,
            clients,
        }
    }

    /// As `price` in `bpf/rights.bpf.h` does it.
    fn value(&self, node: usize) -> Worth {
        let mut sum = Worth::of(0);
        for &(currency, amount) in &self.tickets[node] {
            let amount = Worth::of(amount);
            sum = sum.plus(match currency {
                0 => amount,
                _ => {
                    let active = Worth::of(self.active[currency]);
                    amount.times(self.value(currency).over(active))
                }
            });
        }
        sum
    }
}

/// Sums of the active tickets issued in each currency: a currency is active if
/// any is.
fn active_amounts(tickets: &[Vec<(usize, u64)>], currencies: usize) -> Vec<u64> {
    let mut active = vec![0; currencies];
    // Whatever a node is funded from has a lower number.
    for (node, tickets) in tickets.iter().enumerate().rev() {
        if node >= currencies || active[node] > 0 {
            for &(currency, amount) in tickets {
                active[currency] += amount;
            }
        }
    }
    active
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

fn issue(ledger: &mut Ledger, currency: CurrencyId, amount: u32, target: Target) {
    let target = Some(target);
    execute(
        ledger,
        Operation::Issue {
            currency,
            amount,
            target,
        },
    );
}

/// A random history of charges: passes as the core's stride scheduling has
/// them, to one part in a billion.
#[test]
fn passes_are_the_core_s() {
    const QUANTUM_NS: u64 = 20_000_000;
    // The core counts in strides of a single ticket.
    let unit = QUANTUM_NS as f64 * 2f64.powi(PASS_BITS);
    let mut random = numbers(5);
    let mut stride = Stride::new();
    let mut passes = Vec::new();
    let tickets: Vec<u64> = (0..20).map(|_| amount(&mut random, 24)).collect();
    for (index, &tickets) in tickets.iter().enumerate() {
        stride
            .join(ClientIndex(index as u32), tickets as u32)
            .unwrap();
        passes.push(wait_for(QUANTUM_NS, Worth::of(tickets)));
    }
    // All joined before anybody ran: the global pass is still 0.
    for _ in 0..10_000 {
        let index = (random.next_u64() % 20) as usize;
        let used = random.next_u64() % QUANTUM_NS;
        stride
            .charge(ClientIndex(index as u32), used, QUANTUM_NS)
            .unwrap();
        passes[index] += wait_for(used, Worth::of(tickets[index]));
    }
    for (index, &pass) in passes.iter().enumerate() {
        let core = stride.pass(ClientIndex(index as u32)).unwrap();
        // Besides, each charge loses less than a unit.
        let error = (pass as f64 - core * unit).abs();
        assert!(error <= 10_000.0 + core * unit * 1e-9, "{pass} {core}");
    }
}

#[test]
fn what_remains_is_rescaled_and_service_comes_back() {
    let mut random = numbers(6);
    for _ in 0..100_000 {
        let (from, to) = (amount(&mut random, 30), amount(&mut random, 30));
        let remain = amount(&mut random, 50) as i64;
        let exact = remain as f64 * from as f64 / to as f64;
        let found = rescaled(remain, Worth::of(from), Worth::of(to));
        assert_eq!(rescaled(-remain, Worth::of(from), Worth::of(to)), -found);
        if exact < LONGEST_WAIT as f64 {
            assert!((found as f64 - exact).abs() <= 1.0 + exact * 2f64.powi(-28));
        } else {
            assert_eq!(found, LONGEST_WAIT);
        }
        let service = amount(&mut random, 32);
        let tickets = Worth::of(amount(&mut random, 20));
        let back = service_in(wait_for(service, tickets), tickets);
        assert!(
            service.abs_diff(back) <= 1 + (service >> 28),
            "{service} {back}"
        );
    }
}

#[test]
fn the_ends_of_the_range() {
    let one = Worth::of(1);
    assert_eq!(wait_for(0, one), 0);
    assert_eq!(wait_for(1, one), 1 << PASS_BITS);
    assert_eq!(wait_for(1, Worth::of(0)), 0);
    // Service counts up to a limit, and waits are held at one.
    let most = u64::from(u32::MAX);
    assert_eq!(wait_for(most, one), most << PASS_BITS);
    assert_eq!(wait_for(most + 1, one), most << PASS_BITS);
    assert_eq!(wait_for(1, Worth::of(u64::MAX)), 0);
    let tiny = one.over(Worth::of(1 << 50));
    assert_eq!(wait_for(20_000_000, tiny), LONGEST_WAIT as u64);
    assert_eq!(rescaled(7, Worth::of(0), one), 7);
    assert_eq!(rescaled(7, one, Worth::of(0)), 7);
    assert_eq!(rescaled(LONGEST_WAIT, Worth::of(2), one), LONGEST_WAIT);
    assert_eq!(service_in(0, one), 0);
}
