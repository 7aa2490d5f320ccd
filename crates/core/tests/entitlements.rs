//! Entitlements by themselves: tickets kept up to date change by change are those worked out
//! afresh.

mod fair_rates;
mod operations;

use std::collections::BTreeMap;

use proptest::prelude::*;
use prorata_core::affinity::Affinity;
use prorata_core::cpu_limit::CpuLimit;
use prorata_core::entitlement::{Entitlements, Transition};
use prorata_core::ids::{ClientId, ClientIndex, CurrencyId};
use prorata_core::ledger::{Ledger, Limits, Operation, Outcome, Portion, Principal, Target, Value};

use fair_rates::{Claimant, rates};
use operations::{create_client, create_currency, execute, issue};

const CURRENCIES: usize = 4;

/// Something that changes weights. Numbers are taken modulo what there is.
#[derive(Clone, Debug)]
enum Change {
    Create(usize, u32),
    Destroy(usize),
    Runnable(usize, u32),
    Inflate(usize, u32),
    Back(usize, u32),
    Transfer(usize, usize),
    EndTransfer,
    Cpus(u32),
    Charge(usize, u64),
    /// In thousandths of a CPU, or none.
    Limit(usize, Option<u32>),
    /// To the CPUs with a bit, or to none in particular.
    Confine(usize, u32),
}

fn amount() -> impl Strategy<Value = u32> {
    prop_oneof![8 => 100u32..1000, 1 => Just(100_000)]
}

fn change() -> impl Strategy<Value = Change> {
    let any = any::<usize>;
    prop_oneof![
        3 => (any(), amount()).prop_map(|(currency, amount)| Change::Create(currency, amount)),
        1 => any().prop_map(Change::Destroy),
        6 => (any(), prop_oneof![Just(0), Just(1), 1u32..5])
            .prop_map(|(client, threads)| Change::Runnable(client, threads)),
        2 => (any(), amount()).prop_map(|(client, amount)| Change::Inflate(client, amount)),
        1 => (any(), amount()).prop_map(|(currency, amount)| Change::Back(currency, amount)),
        1 => (any(), any()).prop_map(|(from, to)| Change::Transfer(from, to)),
        1 => Just(Change::EndTransfer),
        1 => (1u32..9).prop_map(Change::Cpus),
        1 => (any(), prop_oneof![Just(None), (1u32..4000).prop_map(Some), Just(Some(u32::MAX))])
            .prop_map(|(client, max)| Change::Limit(client, max)),
        4 => (any(), 0u64..60_000_000).prop_map(|(client, used_ns)| Change::Charge(client, used_ns)),
    ]
}

/// The affinities of random histories: few, as in practice, and one without a low CPU.
const AFFINITIES: [u32; 6] = [0, 0b1, 0b11, 0b110, 0b1010_1010, 0b1000_0000];

fn confining_change() -> impl Strategy<Value = Change> {
    let affinity = prop::sample::select(AFFINITIES.to_vec());
    prop_oneof![
        4 => change(),
        1 => (any::<usize>(), affinity).prop_map(|(client, bits)| Change::Confine(client, bits)),
    ]
}

struct World {
    entitlements: Entitlements,
    /// By client, as bits.
    affinities: BTreeMap<ClientId, u32>,
    /// The tickets of the competing clients, as they were told.
    told: BTreeMap<ClientIndex, u32>,
    /// The base currency, two that it backs, and one that these back.
    currencies: [CurrencyId; CURRENCIES],
    clients: Vec<(ClientId, u32)>,
    created: u32,
    /// CPU time charged while competing clients held tickets.
    dispensed_ns: u64,
    /// CPU time that was due to clients that are destroyed.
    buried_ns: u64,
    /// Changes of tickets, each of which may lose a nanosecond of what is due.
    roundings: u64,
}

impl World {
    fn new() -> World {
        let mut ledger = Ledger::new(Limits::default());
        let mut create = |name| operations::currency(execute(&mut ledger, create_currency(name)));
        let [a, b, c] = ["a", "b", "c"].map(&mut create);
        let base = ledger.base();
        for (currency, amount, backed) in [(base, 500, a), (base, 9, b), (a, 70, c), (b, 30, c)] {
            execute(
                &mut ledger,
                issue(currency, amount, Target::Currency(backed)),
            );
        }
        World {
            entitlements: Entitlements::new(ledger, &[2]),
            affinities: BTreeMap::new(),
            told: BTreeMap::new(),
            currencies: [base, a, b, c],
            clients: Vec::new(),
            created: 0,
            dispensed_ns: 0,
            buried_ns: 0,
            roundings: 0,
        }
    }

    /// Applies an operation unless the ledger refuses it.
    fn apply(&mut self, operation: Operation) -> Option<Outcome> {
        let checked = self
            .entitlements
            .ledger()
            .check(&Principal::ROOT, operation)
            .ok()?;
        Some(self.entitlements.apply(checked))
    }

    fn change(&mut self, change: Change) {
        let n = self.clients.len();
        match change {
            Change::Create(currency, amount) => {
                self.created += 1;
                let name = format!("client {}", self.created);
                let created = self.apply(create_client(Some(name)));
                let client = operations::client(created.expect("a client can be made"));
                let currency = self.currencies[currency % CURRENCIES];
                self.apply(issue(currency, amount, Target::Client(client)));
                self.clients.push((client, 0));
            }
            Change::Back(currency, amount) => {
                let backed = self.currencies[1 + currency % (CURRENCIES - 1)];
                let ticket = self
                    .entitlements
                    .ledger()
                    .backing(backed)
                    .next()
                    .expect("backed");
                self.apply(Operation::SetAmount { ticket, amount });
            }
            Change::EndTransfer => {
                let transfer = self
                    .entitlements
                    .ledger()
                    .transfers()
                    .next()
                    .map(|view| view.id);
                if let Some(transfer) = transfer {
                    self.apply(Operation::EndTransfer { transfer });
                }
            }
            Change::Cpus(cpus) => self.entitlements.set_cpus(0, cpus),
            _ if n == 0 => {}
            Change::Destroy(client) => {
                let (client, _) = self.clients.swap_remove(client % n);
                self.set_runnable(client, 0);
                self.buried_ns += self.entitlements.usage(client).specified_ns;
                self.apply(Operation::DestroyClient { client });
            }
            Change::Charge(client, used_ns) => {
                let (client, threads) = self.clients[client % n];
                assert_eq!(self.entitlements.charge(client, used_ns), threads > 0);
                if threads > 0 && self.told.values().any(|tickets| *tickets > 0) {
                    self.dispensed_ns += used_ns;
                }
            }
            Change::Runnable(client, threads) => {
                self.clients[client % n].1 = threads;
                let client = self.clients[client % n].0;
                self.set_runnable(client, threads);
            }
            Change::Inflate(client, amount) => {
                let client = self.clients[client % n].0;
                let ticket = self.entitlements.ledger().funding(client).next();
                if let Some(ticket) = ticket {
                    self.apply(Operation::SetAmount { ticket, amount });
                }
            }
            Change::Limit(client, max) => {
                let client = self.clients[client % n].0;
                let limit = |max: u32| CpuLimit::from_thousandths(max).unwrap_or(CpuLimit::MOST);
                let max = max.map(limit);
                self.apply(Operation::LimitClient { client, max });
            }
            Change::Confine(client, bits) => {
                let client = self.clients[client % n].0;
                self.affinities.insert(client, bits);
                let cpus = (0..u32::BITS).filter(|cpu| bits >> cpu & 1 == 1);
                let affinity = (bits != 0).then(|| cpus.collect::<Affinity>());
                self.entitlements.set_affinity(client, affinity.as_ref());
            }
            Change::Transfer(from, to) => {
                let to = vec![Target::Client(self.clients[to % n].0)];
                self.apply(Operation::Transfer {
                    from: self.clients[from % n].0,
                    portion: Portion::Whole(to),
                });
            }
        }
    }

    fn set_runnable(&mut self, client: ClientId, threads: u32) {
        let index = ClientIndex(client.index());
        self.roundings += 1;
        match self.entitlements.set_runnable(client, threads) {
            Some(Transition::Joined { tickets }) => {
                self.told.insert(index, tickets);
            }
            Some(Transition::Left) => {
                self.told.remove(&index);
            }
            Some(Transition::Threads) | None => {}
        }
    }

    /// Works out tickets, and hears of those that changed.
    fn refresh(&mut self) {
        let (told, roundings) = (&mut self.told, &mut self.roundings);
        self.entitlements.refresh_all(&mut |pool, client, tickets| {
            assert_eq!(pool, 0);
            *roundings += 1;
            let before = told.insert(client, tickets);
            assert!(
                before.is_some_and(|before| before != tickets),
                "{client} did not change"
            );
        });
        let competing: BTreeMap<_, _> = self.entitlements.competing(0).collect();
        assert_eq!(competing, self.told);
    }

    /// What is due to all clients adds up to what was dispensed.
    fn check_accounts(&self) -> Result<(), TestCaseError> {
        let due_ns = |(client, _): &(ClientId, u32)| self.entitlements.usage(*client).specified_ns;
        let due_ns = self.buried_ns + self.clients.iter().map(due_ns).sum::<u64>();
        let lost_ns = self.roundings + self.clients.len() as u64 + 1;
        prop_assert!(due_ns <= self.dispensed_ns && self.dispensed_ns <= due_ns + lost_ns);
        Ok(())
    }

    /// CPUs that a client can use at once.
    fn most(&self, (client, threads): &(ClientId, u32)) -> f64 {
        let max = self.entitlements.ledger().cpu_limit(*client);
        let max = max.map_or(f64::INFINITY, |max| f64::from(max.thousandths()) / 1000.0);
        f64::from(*threads).min(max)
    }

    /// Part of the machine that each client should get: by value, at most one
    /// CPU a thread and its limit, what one cannot use going to the others.
    fn shares(&self) -> Vec<f64> {
        let cpus = f64::from(self.entitlements.cpus());
        let ledger = self.entitlements.ledger();
        let value = |i: usize| {
            let (client, threads) = self.clients[i];
            if threads == 0 {
                0.0
            } else {
                ledger.value(client).to_f64()
            }
        };
        let usable = |i: usize| self.most(&self.clients[i]).min(cpus);
        let mut shares = vec![0.0; self.clients.len()];
        let mut left: Vec<usize> = (0..shares.len()).filter(|i| value(*i) > 0.0).collect();
        let mut cpus_left = cpus;
        loop {
            let total: f64 = left.iter().map(|i| value(*i)).sum();
            let over = left
                .iter()
                .position(|i| value(*i) / total * cpus_left > usable(*i) * (1.0 + 1e-9));
            match over {
                Some(place) => {
                    let client = left.swap_remove(place);
                    shares[client] = usable(client);
                    cpus_left -= usable(client);
                }
                None => {
                    left.iter()
                        .for_each(|i| shares[*i] = value(*i) / total * cpus_left);
                    return shares.iter().map(|share| share / cpus).collect();
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(1995),
        cases: 512,
        ..ProptestConfig::default()
    })]

    #[test]
    fn shares_and_accounts_are_those_worked_out_afresh(changes in prop::collection::vec((change(), any::<bool>()), 1..120)) {
        let mut world = World::new();
        let mut largest = 0.0f64;
        for (change, refreshes) in changes {
            world.change(change);
            world.check_accounts()?;
            if !refreshes {
                continue;
            }
            world.refresh();
            let expected = world.shares();
            let total: f64 = expected.iter().sum();
            let (most, smallest) = world.extreme_values();
            largest = largest.max(most);
            // The largest value there was has at least 24 bits; a weight is
            // rounded to a ticket, and a readjusted one once more.
            let tolerance = 2.0 * largest / smallest / f64::from(1 << 24);
            let cpus = f64::from(world.entitlements.cpus());
            let usable = world.clients.iter().map(|client| world.most(client)).sum::<f64>();
            for ((client, threads), expected) in world.clients.iter().zip(&expected) {
                let share = world.entitlements.usage(*client).share;
                if *threads == 0 || world.entitlements.ledger().value(*client) == Value(0) {
                    prop_assert!(share == 0.0, "{share}");
                    continue;
                }
                // Where all together cannot use the machine, what is used of
                // it is shared.
                let expected = expected / total * usable.min(cpus) / cpus;
                prop_assert!((share - expected).abs() <= tolerance, "{share} instead of {expected}");
            }
        }
    }
}

impl World {
    /// The largest and the smallest value of runnable clients that are worth something.
    fn extreme_values(&self) -> (f64, f64) {
        let values = self.clients.iter().filter(|client| client.1 > 0);
        let values = values.map(|client| self.entitlements.ledger().value(client.0).to_f64());
        let values: Vec<f64> = values.filter(|value| *value > 0.0).collect();
        let largest = values.iter().copied().fold(0.0, f64::max);
        (
            largest,
            values.iter().copied().fold(f64::INFINITY, f64::min),
        )
    }

    /// Shares where clients may be confined: weighted max-min fair.
    fn fair_shares(&self) -> Vec<f64> {
        let cpus = self.entitlements.cpus();
        let claimants = self.clients.iter().map(|(client, threads)| {
            let bits = self.affinities.get(client).copied().unwrap_or(0);
            let all = (1 << cpus) - 1;
            let value = self.entitlements.ledger().value(*client).to_f64();
            Claimant {
                weight: if *threads > 0 { value } else { 0.0 },
                most: self.most(&(*client, *threads)),
                affinity: if bits & all == 0 { all } else { bits & all },
            }
        });
        let rates = rates(&claimants.collect::<Vec<_>>());
        rates.iter().map(|rate| rate / f64::from(cpus)).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(1980),
        cases: 512,
        ..ProptestConfig::default()
    })]

    #[test]
    fn shares_of_confined_clients_are_max_min_fair(changes in prop::collection::vec((confining_change(), any::<bool>()), 1..120)) {
        let mut world = World::new();
        let mut largest = 0.0f64;
        for (change, refreshes) in changes {
            world.change(change);
            world.check_accounts()?;
            if !refreshes {
                continue;
            }
            world.refresh();
            let (most, smallest) = world.extreme_values();
            largest = largest.max(most);
            // As above, for each client: those at lower levels are rounded, too.
            let clients = world.clients.len() as f64;
            let tolerance = (2.0 + clients) * largest / smallest / f64::from(1 << 24);
            let expected = world.fair_shares();
            let total: f64 = expected.iter().sum();
            for ((client, threads), expected) in world.clients.iter().zip(&expected) {
                let share = world.entitlements.usage(*client).share;
                if *threads == 0 || world.entitlements.ledger().value(*client) == Value(0) {
                    prop_assert!(share == 0.0, "{share}");
                    continue;
                }
                // Without confined clients, the share is of what all threads could use, also
                // those without tickets.
                let is_confined = |client: &&(ClientId, u32)| {
                    client.1 > 0 && world.affinities.get(&client.0).is_some_and(|bits| *bits != 0)
                };
                let cpus = f64::from(world.entitlements.cpus());
                let usable = world.clients.iter().map(|client| world.most(client)).sum::<f64>();
                let expected = match world.clients.iter().find(is_confined) {
                    Some(_) => *expected,
                    None => expected / total * usable.min(cpus) / cpus,
                };
                prop_assert!((share - expected).abs() <= tolerance, "{share} instead of {expected}");
            }
        }
    }
}

/// The notes of [`Ledger::take_changes`] name each client whose value changed.
fn assert_no_client_is_missed(changes: Vec<Change>, limit: usize) -> Result<(), TestCaseError> {
    let mut world = World::new();
    for change in changes {
        // A refresh takes all notes made so far.
        world.refresh();
        prop_assert!(!world.entitlements.ledger().has_changes());
        let before = world.entitlements.ledger().clone();
        world.change(change);
        let mut after = world.entitlements.ledger().clone();
        let mut named = Vec::new();
        let complete = after.take_changes(&mut named, limit);
        prop_assert!(!after.has_changes());
        prop_assert!(named.iter().all(|client| after.client(*client).is_some()));
        for view in after.clients() {
            let was_active = before.client(view.id).is_some_and(|client| client.active);
            let changed = before.value(view.id) != view.value;
            if was_active && view.active && changed && complete {
                prop_assert!(named.contains(&view.id), "{} is not named", view.name);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(1994),
        cases: 128,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_ledger_names_each_client_whose_value_changed(changes in prop::collection::vec(change(), 1..60)) {
        assert_no_client_is_missed(changes, usize::MAX)?;
    }

    #[test]
    fn a_short_look_says_that_it_is_not_complete(changes in prop::collection::vec(change(), 1..60)) {
        assert_no_client_is_missed(changes, 2)?;
    }
}
