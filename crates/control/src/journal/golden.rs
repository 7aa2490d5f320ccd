//! The form of journals. It must not change unnoticed: another version would
//! take a journal for damaged, or misread it.

use prorata_core::cpu_limit::CpuLimit;
use prorata_core::ids::{ClientId, CurrencyId, TicketId, TransferId};
use prorata_core::ledger::{Mode, Operation, Portion, Target};
use prorata_protocol::PolicyName;

use prorata_core::slots::admission::{Class, Grant, Members, Policy};
use prorata_core::slots::claim::{Account, Claim, Owner, Schedulee};
use prorata_core::slots::geometry::{Cell, Geometry};
use prorata_core::slots::image::{Deed, Gift, Holding, Image};
use prorata_core::slots::level::Level;
use prorata_core::slots::reservation::Reservation;

use super::record;
use crate::process::ProcessId;
use crate::slots::KeptTable;
use crate::state::{Change, Settings, State};

/// A journal of the present form: its first line, an image, and a line for each
/// change that led to it.
const GOLDEN: &str = include_str!("golden.txt");

/// Every change and every operation, in an order that makes sense.
fn changes() -> Vec<Change> {
    let currency = CurrencyId::from_parts(1, 0);
    let client = |index| ClientId::from_parts(index, 0);
    let ticket = |index| TicketId::from_parts(index, 0);
    let create_client = |name: &str| Operation::CreateClient {
        name: Some(name.into()),
        owner: 7,
    };
    let create_currency = |name: &str| Operation::CreateCurrency {
        name: name.into(),
        owner: 7,
        group: 8,
        mode: Mode::DEFAULT,
    };
    let issue = |currency, amount, target| Operation::Issue {
        currency,
        amount,
        target,
    };
    let part = Portion::Part {
        currency: Some(currency),
        shares: vec![(Target::Client(client(1)), 30)],
    };
    let whole = Portion::Whole(vec![Target::Currency(currency)]);
    let transfer = |from, portion| Operation::Transfer { from, portion };
    let process = |pid| ProcessId {
        pid,
        start_time_ticks: 99,
    };
    let operations = [
        create_currency("alice"),
        create_client("giver"),
        create_client("taker"),
        issue(
            CurrencyId::from_parts(0, 0),
            1_000,
            Some(Target::Currency(currency)),
        ),
        issue(currency, 100, Some(Target::Client(client(0)))),
        issue(currency, 50, None),
        Operation::Fund {
            ticket: ticket(2),
            target: Target::Client(client(1)),
        },
        Operation::Unfund { ticket: ticket(2) },
        Operation::SetAmount {
            ticket: ticket(2),
            amount: 60,
        },
        Operation::DestroyTicket { ticket: ticket(2) },
        Operation::Protect {
            currency,
            owner: 7,
            group: 9,
            mode: Mode::try_from(0o764).unwrap(),
        },
        create_currency("gone"),
        Operation::DestroyCurrency {
            currency: CurrencyId::from_parts(2, 0),
        },
        create_client("gone"),
        Operation::DestroyClient { client: client(2) },
        issue(
            CurrencyId::from_parts(0, 0),
            10,
            Some(Target::Client(client(1))),
        ),
        transfer(client(1), whole),
        Operation::EndTransfer {
            transfer: TransferId::from_parts(0, 0),
        },
        transfer(client(0), part),
    ];
    let limit = |index, max| Operation::LimitClient {
        client: client(index),
        max: CpuLimit::from_thousandths(max),
    };
    let limits = [limit(0, 500), limit(1, 1), limit(1, 0)];
    let beside = [
        Change::Hold,
        Change::Roots {
            client: client(0),
            roots: vec![process(100)],
        },
        Change::Adopter {
            client: client(0),
            parent: process(90),
        },
        Change::Quantum {
            client: client(0),
            quantum_ns: Some(5_000_000),
        },
        Change::Quantum {
            client: client(1),
            quantum_ns: Some(50_000_000),
        },
        Change::Quantum {
            client: client(1),
            quantum_ns: None,
        },
        Change::Suspend(client(0)),
        Change::Resume(client(0)),
        Change::Suspend(client(1)),
        Change::Configure(Settings {
            quantum_ns: 5_000_000,
            policy: PolicyName::HierarchicalStride,
            ..Settings::default()
        }),
        Change::Timetable(Some(Box::new(held_table()))),
        Change::Timetable(Some(Box::new(table()))),
        Change::Slots(deeds()),
        Change::Admission(policy()),
        Change::Granted(vec![Grant {
            class: 0,
            account: Account::User(7),
            level: Level::Hard,
            count: 3,
            weight: 2,
        }]),
    ];
    operations
        .into_iter()
        .map(Change::Ledger)
        .chain(beside)
        .chain(limits.map(Change::Ledger))
        .collect()
}

fn table() -> KeptTable {
    let geometry = Geometry::new(2, 12, 10_000_000, 77).unwrap();
    KeptTable::new(vec![0, 2], Image::empty(geometry))
}

fn held_table() -> KeptTable {
    let mut table = table();
    table.held = true;
    table
}

/// Every deed, and every kind of account and schedulee.
fn deeds() -> Vec<Deed> {
    let client = ClientId::from_parts(0, 0);
    let schedulees = [
        Schedulee::Client(client),
        Schedulee::Process {
            pid: 100,
            started: 99,
        },
        Schedulee::Thread {
            tid: 101,
            started: 99,
        },
    ];
    let claims = (0..).zip(schedulees).zip(Level::ALL);
    let claims = claims.map(|((column, schedulee), level)| {
        let claim = Claim {
            owner: Owner {
                user: 7,
                client: (column > 0).then_some(client),
            },
            payer: Account::User(7),
            schedulee,
            level,
            expires: (column > 1).then_some(500),
            number: 1 + u64::from(column),
        };
        Deed::Claim(Cell { row: 0, column }, Some(claim))
    });
    let holding = Holding {
        tokens: 12,
        weight: 3,
    };
    let gift = Gift {
        recipient: Account::Client(client),
        donor: Account::User(7),
        level: Level::Gang,
    };
    let reservation = Reservation {
        numerator: 1,
        denominator: 10,
    };
    let holdings = Level::ALL.map(|level| Deed::Tokens(Account::User(7), level, holding));
    claims
        .chain(holdings)
        .chain([
            Deed::Claim(Cell { row: 0, column: 0 }, None),
            Deed::Gift(gift, 2),
            Deed::Reservation(1, reservation),
        ])
        .collect()
}

/// A class of each kind.
fn policy() -> Policy {
    let members = [
        Members::User(7),
        Members::Group(8),
        Members::Client("player".into()),
    ];
    let class = |members| Class {
        members,
        level: Level::Hard,
        count: 3,
        weight: 2,
        most: 12,
    };
    Policy {
        classes: members.map(class).into(),
    }
}

#[test]
fn the_form_of_journals_changes_only_with_their_magic() {
    let mut state = State::new(7, 8);
    let changes = changes();
    for change in &changes {
        state.apply(change).unwrap();
    }
    let image = super::Image {
        boot_id: "boot",
        state: &state,
    };
    let mut written = String::from_utf8(record::MAGIC.to_vec()).unwrap();
    written += &(serde_json::to_string(&image).unwrap() + "\n");
    for change in &changes {
        written += &(serde_json::to_string(change).unwrap() + "\n");
    }
    assert!(
        written == GOLDEN,
        "journals are written in another form than before: bump MAGIC in journal/record.rs, and \
         only then put this into journal/golden.txt:\n{written}"
    );
}
