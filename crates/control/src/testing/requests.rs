//! Random requests, most of which make some sense.

use prorata_core::rng::{Rng, Xoshiro256PlusPlus};
use prorata_protocol::{CpuLimit, Funding, HybridChoice, POLICIES, Request, TransferPortion};

use super::{ALICE, BOB};

mod slots;

type Random = Xoshiro256PlusPlus;

/// A number below `limit`.
pub(crate) fn below(random: &mut Random, limit: usize) -> usize {
    (random.next_u64() % limit as u64) as usize
}

fn one_of<T: Clone>(random: &mut Random, choices: &[T]) -> T {
    choices[below(random, choices.len())].clone()
}

fn maybe<T>(random: &mut Random, make: impl FnOnce(&mut Random) -> T) -> Option<T> {
    (random.next_u64() & 1 == 0).then(|| make(random))
}

fn small_identifier(random: &mut Random, letter: char) -> String {
    match below(random, 3) {
        0 => format!("{letter}{}.{}", below(random, 8), below(random, 4)),
        _ => format!("{letter}{}", below(random, 12)),
    }
}

fn amount(random: &mut Random) -> u32 {
    one_of(
        random,
        &[0, 1, 2, 7, 100, 100, 1_000, u32::MAX - 1, u32::MAX],
    )
}

fn pid(random: &mut Random) -> u32 {
    match below(random, 8) {
        0 => one_of(random, &[0, 1, 2, 40, 50, 51, 91, 91, 199, 4_000, u32::MAX]),
        1 | 2 => 200 + below(random, 100) as u32,
        _ => 100 + below(random, 100) as u32,
    }
}

fn client(random: &mut Random) -> String {
    match below(random, 6) {
        0 | 1 => small_identifier(random, 'c'),
        2 => pid(random).to_string(),
        3 => format!("client:{}", one_of(random, CLIENT_NAMES)),
        _ => one_of(random, CLIENT_NAMES).to_owned(),
    }
}

fn currency(random: &mut Random) -> String {
    match below(random, 8) {
        0 => format!("currency:{}", one_of(random, CURRENCY_NAMES)),
        _ => one_of(random, CURRENCY_NAMES).to_owned(),
    }
}

fn target(random: &mut Random) -> String {
    if random.next_u64() & 1 == 0 {
        client(random)
    } else {
        currency(random)
    }
}

fn quantum_ns(random: &mut Random) -> u64 {
    one_of(
        random,
        &[
            0,
            999_999,
            1_000_000,
            20_000_000,
            1_000_000_000,
            1_000_000_001,
        ],
    )
}

fn max(random: &mut Random) -> CpuLimit {
    one_of(
        random,
        &[
            CpuLimit::LEAST,
            CpuLimit::from_thousandths(500).expect("half a CPU"),
            CpuLimit::MOST,
        ],
    )
}

fn funding(random: &mut Random) -> Funding {
    Funding {
        amount: amount(random),
        currency: maybe(random, currency),
    }
}

const CLIENT_NAMES: &[&str] = &[
    "encoder",
    "encoder-2",
    "backup",
    "backup-2",
    "server",
    "play",
    "encodre",
    "",
    "-x",
    "a:b",
];
const CURRENCY_NAMES: &[&str] = &[
    "base", "alice", "bob", "uid1002", "play", "work", "wrok", "c1", "12", "größe", "a\nb",
];
const USERS: &[&str] = &[
    "alice",
    "bob",
    "root",
    "1000",
    "1002",
    "nobody at all",
    "-1",
    "",
];

/// A request. Its names, identifiers and pids fit the objects that other random
/// requests create.
pub(crate) fn request(random: &mut Random) -> Request {
    match below(random, 32) {
        30 | 31 => Request::Slots(slots::request(random)),
        0 => Request::Status,
        1 => one_of(
            random,
            &[
                Request::Clients,
                Request::Currencies,
                Request::Transfers,
                Request::Events { count: 0 },
                Request::Events { count: 5 },
            ],
        ),
        2 => Request::Tickets {
            currency: maybe(random, currency),
        },
        3..=6 => Request::Register {
            pid: pid(random),
            name: maybe(random, |random| one_of(random, CLIENT_NAMES).to_owned()),
            funding: funding(random),
            quantum_ns: (below(random, 4) == 0).then(|| quantum_ns(random)),
            max: (below(random, 4) == 0).then(|| max(random)),
            adopts: below(random, 8) == 0,
        },
        7 => Request::Release {
            client: client(random),
        },
        8 => Request::Suspend {
            client: client(random),
        },
        9 => Request::Resume {
            client: client(random),
        },
        10 | 11 => Request::SetTickets {
            client: client(random),
            funding: funding(random),
        },
        12 | 13 => Request::CreateCurrency {
            name: currency(random),
            owner: maybe(random, |random| one_of(random, &[0, ALICE, BOB, 1002])),
            mode: maybe(random, |random| {
                one_of(random, &[0o777, 0o744, 0o700, 0o000, 0o1000])
            }),
        },
        14 => Request::DestroyCurrency {
            name: currency(random),
        },
        15 | 16 => Request::Issue {
            funding: funding(random),
            target: maybe(random, target),
        },
        17 => Request::DestroyTicket {
            ticket: small_identifier(random, 't'),
        },
        18 => Request::SetAmount {
            ticket: small_identifier(random, 't'),
            amount: amount(random),
        },
        19 => Request::Fund {
            ticket: small_identifier(random, 't'),
            target: target(random),
        },
        20 => Request::Unfund {
            ticket: small_identifier(random, 't'),
        },
        21 => Request::SetFunding {
            user: one_of(random, USERS).to_owned(),
            amount: amount(random),
        },
        22 => Request::ChangeUser {
            client: client(random),
            user: one_of(random, USERS).to_owned(),
        },
        23 => Request::Transfer {
            from: client(random),
            portion: portion(random),
            hold: random.next_u64() & 1 == 0,
        },
        24 => Request::EndTransfer {
            transfer: small_identifier(random, 'x'),
        },
        25 => Request::SetQuantum {
            client: client(random),
            quantum_ns: maybe(random, quantum_ns),
        },
        28 => Request::SetMax {
            client: client(random),
            max: maybe(random, max),
        },
        27 => Request::FindClient { pid: pid(random) },
        26 => Request::Processes {
            client: client(random),
        },
        _ => Request::Configure {
            quantum_ns: maybe(random, quantum_ns),
            policy: maybe(random, |random| one_of(random, POLICIES)),
            hybrid: maybe(random, hybrid),
            stay: random.next_u64() & 1 == 0,
            users: false,
        },
    }
}

fn hybrid(random: &mut Random) -> HybridChoice {
    let bits = random.next_u64();
    HybridChoice {
        kernel_priorities: bits & 1 != 0,
        abbreviated_quanta: bits & 2 != 0,
        ticket_boost: bits & 4 != 0,
        nice: bits & 8 != 0,
    }
}

fn portion(random: &mut Random) -> TransferPortion {
    let receivers = below(random, 4);
    match random.next_u64() & 1 {
        0 => TransferPortion::Whole((0..receivers).map(|_| target(random)).collect()),
        _ => TransferPortion::Part {
            currency: maybe(random, currency),
            shares: (0..receivers)
                .map(|_| (target(random), amount(random)))
                .collect(),
        },
    }
}

/// Spoils a text in a few places.
pub(crate) fn mutate(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..=below(random, 4) {
        let at = below(random, bytes.len() + 1);
        match below(random, 5) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, random.next_u64() as u8),
            2 => bytes.insert(at, one_of(random, br#"{}[]",:0-."#)),
            3 if at < bytes.len() => bytes[at] ^= 1 << below(random, 8),
            _ => {
                let until = (at + below(random, 32)).min(bytes.len());
                let piece = bytes[at..until].to_vec();
                bytes.extend(piece);
            }
        }
    }
}
