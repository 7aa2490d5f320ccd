//! Random requests about the timetable.

use prorata_protocol::slots::{
    AccountName, Amount, Cell, Fraction, Level, Runs, SlotRequest, SlotsRequest,
};

use super::{Random, USERS, amount, below, client, maybe, one_of, pid};

fn cell(random: &mut Random) -> Cell {
    Cell {
        row: one_of(random, &[0, 0, 0, 0, 1, u32::MAX]),
        column: one_of(random, &[0, 1, 2, 3, 4, 5, 6, 11, 12, u32::MAX]),
    }
}

fn level(random: &mut Random) -> Level {
    one_of(random, &Level::ALL)
}

fn runs(random: &mut Random) -> Runs {
    match below(random, 4) {
        0 => Runs::Process(pid(random)),
        1 => Runs::Thread(pid(random)),
        _ => Runs::Client(client(random)),
    }
}

fn account(random: &mut Random) -> AccountName {
    match below(random, 2) {
        0 => AccountName::User(one_of(random, USERS).to_owned()),
        _ => AccountName::Client(client(random)),
    }
}

fn fraction(random: &mut Random) -> Fraction {
    Fraction {
        numerator: one_of(random, &[0, 1, 2, 6, u32::MAX]),
        denominator: one_of(random, &[0, 1, 6, 10, 12, u32::MAX]),
    }
}

fn slot_request(random: &mut Random) -> SlotRequest {
    SlotRequest {
        cell: cell(random),
        runs: runs(random),
        level: level(random),
        expires_ns: maybe(random, |random| {
            one_of(random, &[0, 1, 50_000_000, 20_000_000_000, u64::MAX])
        }),
    }
}

pub(super) fn request(random: &mut Random) -> SlotsRequest {
    match below(random, 14) {
        0..=2 => SlotsRequest::Open {
            columns: one_of(random, &[0, 1, 12, 12, 120, 4_096, 4_097]),
            slot_ns: one_of(random, &[0, 1_000_000, 10_000_000, 10_000_000, u64::MAX]),
            reserve: fraction(random),
            hold: below(random, 2) == 0,
        },
        3 if below(random, 4) == 0 => SlotsRequest::Close,
        3 => SlotsRequest::Status,
        4..=7 => SlotsRequest::Claim {
            requests: (0..1 + below(random, 4))
                .map(|_| slot_request(random))
                .collect(),
            all: below(random, 2) == 0,
            generation: (below(random, 8) == 0).then(|| below(random, 9) as u64),
        },
        8 => SlotsRequest::Free {
            cells: (0..below(random, 5)).map(|_| cell(random)).collect(),
        },
        9 => SlotsRequest::Tokens {
            account: maybe(random, account),
        },
        10 | 11 => SlotsRequest::SetTokens {
            account: account(random),
            level: level(random),
            amount: match below(random, 2) {
                0 => Amount::Absolute(amount(random)),
                _ => Amount::Delta(one_of(random, &[1, -1, i64::MAX, i64::MIN])),
            },
            weight: maybe(random, amount),
        },
        12 => SlotsRequest::Donate {
            to: account(random),
            level: level(random),
            count: amount(random),
        },
        _ => SlotsRequest::Reserve {
            row: maybe(random, |random| one_of(random, &[0, 1, u32::MAX])),
            fraction: fraction(random),
            immediate: below(random, 2) == 0,
        },
    }
}
