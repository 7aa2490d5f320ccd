//! A timetable in a third of the trials, and random calls to it.

use prorata_core::rng::{Xoshiro256PlusPlus, below};
use prorata_core::slots::claim::{Account, Caller, Owner, Schedulee};
use prorata_core::slots::geometry::{Cell, Tick};
use prorata_core::slots::level::Level;
use prorata_core::slots::reservation::{Onset, Reservation};
use prorata_core::slots::timetable::Timetable;
use prorata_scenario::Scenario;
use prorata_scenario::file::slots::Slots;
use prorata_scenario::file::{Hybrid, Time};
use prorata_scenario::plan::{SlotDeed, client_id};
use prorata_scenario::world::slots::{Place, PlannedClaim, thread};

use super::scenarios::pick;

type Lots = Xoshiro256PlusPlus;

/// Users to whom clients belong.
const USERS: u64 = 2;

/// Gives one scenario in three a timetable, and takes away what no engine has beside one.
pub(super) fn add_timetable(scenario: &mut Scenario, lots: &mut Lots) {
    if below(lots, 3) > 0 {
        return;
    }
    scenario.machine.pools.clear();
    scenario.machine.hybrid = Hybrid::default();
    for client in &mut scenario.clients {
        client.pool = None;
        client.cpus = None;
        client.user = below(lots, USERS) as u32;
    }
    scenario.slots = Some(Slots {
        columns: 1 + below(lots, 8) as u32,
        length: Time::from_ms(1 + below(lots, 3)),
        ..Slots::default()
    });
}

/// A call, sensible or not.
pub(super) fn deed(
    timetable: &Timetable,
    client: u32,
    user: u32,
    clients: u32,
    lots: &mut Lots,
) -> SlotDeed {
    let caller = caller(client, user);
    let some_client = |lots: &mut Lots| below(lots, clients.into()) as u32;
    let level = pick(lots, &Level::ALL).unwrap_or(Level::Gang);
    match below(lots, 8) {
        0 => {
            let cells = cells(timetable, lots);
            SlotDeed::Free(caller, Some(cells).filter(|_| below(lots, 2) > 0))
        }
        1 => {
            let account = Account::Client(client_id(client));
            let count = below(lots, 20) as u32;
            SlotDeed::SetTokens(vec![account], level, count, Some(below(lots, 3) as u32))
        }
        2 => {
            let to = Account::Client(client_id(some_client(lots)));
            SlotDeed::Donate(caller, to, level, below(lots, 4) as u32)
        }
        3 => {
            let denominator = 1 + below(lots, timetable.geometry().columns().into()) as u32;
            let reservation = Reservation {
                numerator: below(lots, u64::from(denominator)) as u32,
                denominator,
            };
            let onset = pick(lots, &[Onset::Immediate, Onset::Lazy]).unwrap_or(Onset::Lazy);
            let row = below(lots, timetable.geometry().rows().into()) as u32;
            SlotDeed::Reserve(vec![row], reservation, onset)
        }
        _ => SlotDeed::Claim(PlannedClaim {
            caller,
            schedulee: schedulee(some_client(lots), lots),
            place: place(timetable, lots),
            level,
            expires: expires(timetable, lots),
        }),
    }
}

/// What frees all slots of a client.
pub(super) fn free_all(client: u32, user: u32) -> SlotDeed {
    SlotDeed::Free(caller(client, user), None)
}

fn caller(client: u32, user: u32) -> Caller {
    Caller {
        owner: Owner {
            user,
            client: Some(client_id(client)),
        },
        privileged: false,
    }
}

fn schedulee(client: u32, lots: &mut Lots) -> Schedulee {
    match below(lots, 3) {
        0 => thread(client, 1 + below(lots, 3) as u32),
        _ => Schedulee::Client(client_id(client)),
    }
}

/// Half of the claims expire within some periods.
fn expires(timetable: &Timetable, lots: &mut Lots) -> Option<Tick> {
    let ahead = 3 + below(lots, 30);
    (below(lots, 2) > 0).then(|| timetable.now() + ahead)
}

fn cells(timetable: &Timetable, lots: &mut Lots) -> Vec<Cell> {
    let geometry = timetable.geometry();
    let count = 1 + below(lots, 4);
    let mut cell = || Cell {
        row: below(lots, geometry.rows().into()) as u32,
        column: below(lots, geometry.columns().into()) as u32,
    };
    (0..count).map(|_| cell()).collect()
}

fn place(timetable: &Timetable, lots: &mut Lots) -> Place {
    let geometry = timetable.geometry();
    let (rows, columns) = (geometry.rows(), geometry.columns());
    let some = |lots: &mut Lots, most: u32| 1 + below(lots, most.into()) as u32;
    match below(lots, 6) {
        0 => Place::Gang {
            threads: some(lots, rows),
            columns: Some(some(lots, columns)),
            preferred: vec![rows - 1],
        },
        1 => Place::Periodic {
            slots: 1,
            period: some(lots, columns),
            cpu: None,
        },
        2 => Place::Event {
            slots: some(lots, 3),
            ticks: 2 + below(lots, 20),
            row: some(lots, rows) - 1,
        },
        3 => Place::Cache(some(lots, columns)),
        4 => Place::BestEffort(some(lots, columns)),
        _ => Place::Cells(cells(timetable, lots)),
    }
}
