//! The winners of 100,000 random histories, under every policy, on one to four CPUs in one or
//! two pools, are the same for ever: whatever changes a decision changes a digest.

mod operations;

use std::fmt::Write as _;

use prorata_core::dispatcher::{Dispatcher, Winner};
use prorata_core::ids::ClientId;
use prorata_core::ledger::{Ledger, Limits, Operation, Principal, Target};
use prorata_core::policy::PolicyName;
use prorata_core::rng::{Rng as _, SeedableRng as _, Xoshiro256PlusPlus, below};

use operations::{create_client, create_currency, execute, issue};

const HISTORIES: u64 = 100_000;
const STEPS: usize = 32;
const QUANTUM_NS: u64 = 10_000_000;
const MOST_CLIENTS: u64 = 8;

#[test]
fn the_winners_of_random_histories_are_the_same_for_ever() {
    let mut digests = PolicyName::BY_TICKETS.map(|_| Digest::default());
    for seed in 0..HISTORIES {
        let policy = (seed % PolicyName::BY_TICKETS.len() as u64) as usize;
        play(PolicyName::BY_TICKETS[policy], seed, &mut digests[policy]);
    }
    let mut actual = String::new();
    for (policy, digest) in PolicyName::BY_TICKETS.into_iter().zip(&digests) {
        writeln!(actual, "{policy} {:016x}", digest.0).expect("a string");
    }
    compare(&actual);
}

/// FNV-1a over words.
struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    fn add(&mut self, word: u64) {
        for byte in word.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

/// Clients in the base currency and in one of their own, all blocked.
fn ledger(random: &mut Xoshiro256PlusPlus) -> (Ledger, Vec<ClientId>) {
    let mut ledger = Ledger::new(Limits::default());
    let base = ledger.base();
    let family = operations::currency(execute(&mut ledger, create_currency("family")));
    let tickets = 1 + below(random, 1000) as u32;
    execute(&mut ledger, issue(base, tickets, Target::Currency(family)));
    let mut clients = Vec::new();
    for number in 0..2 + below(random, MOST_CLIENTS - 1) {
        let client = operations::client(execute(&mut ledger, create_client(None)));
        let currency = if number % 2 == 0 { base } else { family };
        let issue = issue(currency, amount(random), Target::Client(client));
        execute(&mut ledger, issue);
        clients.push(client);
    }
    (ledger, clients)
}

/// From one ticket to a million, small ones as likely as large ones.
fn amount(random: &mut Xoshiro256PlusPlus) -> u32 {
    let bits = 1 + below(random, 20);
    1 + below(random, 1 << bits) as u32
}

fn play(name: PolicyName, seed: u64, digest: &mut Digest) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (ledger, clients) = ledger(&mut random);
    let cpus: Vec<u32> = (0..1 + below(&mut random, 2))
        .map(|_| 1 + below(&mut random, 2) as u32)
        .collect();
    let pools = cpus
        .iter()
        .map(|&cpus| (cpus, name.policy(random.next_u64())));
    let mut dispatcher = Dispatcher::pooled(ledger, pools.collect(), QUANTUM_NS);
    let mut winners: Vec<Winner> = Vec::new();
    for _ in 0..STEPS {
        let client = clients[below(&mut random, clients.len() as u64) as usize];
        match below(&mut random, 10) {
            0..3 => dispatcher.set_runnable(client, below(&mut random, 4) as u32),
            3 => {
                let ledger = dispatcher.ledger();
                let ticket = ledger.funding(client).next().expect("it has a ticket");
                let operation = Operation::SetAmount {
                    ticket,
                    amount: amount(&mut random),
                };
                let checked = ledger.check(&Principal::ROOT, operation).expect("legal");
                dispatcher.apply(checked);
            }
            4 => {
                let pool = below(&mut random, cpus.len() as u64) as u32;
                dispatcher.move_to_pool(client, pool);
            }
            5 => dispatcher.end_turn(client),
            6 => dispatcher.fill(0, &mut winners),
            _ => {
                dispatcher.decide(0, &mut winners);
                for winner in &winners {
                    let used_ns = 1 + below(&mut random, QUANTUM_NS);
                    dispatcher.charge(winner.client, used_ns * u64::from(winner.cpus));
                }
            }
        }
        winners.sort_by_key(|winner| winner.client.index());
        for winner in winners.drain(..) {
            digest.add(u64::from(winner.client.index()) << 32 | u64::from(winner.cpus));
        }
    }
    for client in clients {
        let usage = dispatcher.usage(client);
        digest.add(usage.received_ns);
        digest.add(usage.specified_ns);
    }
}

/// Compares with the file beside the tests; writes it afresh where the variable
/// `UPDATE_GOLDEN` is set.
fn compare(actual: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/winners.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, actual).expect("writable");
    }
    let expected = std::fs::read_to_string(&path).expect("UPDATE_GOLDEN=1 writes it");
    assert_eq!(actual, expected, "a decision differs");
}
