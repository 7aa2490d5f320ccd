//! Faults: operations on the ledger, sensible or not, and other events from outside.

use prorata_core::ids::{ClientId, CurrencyId, TicketId, TransferId};
use prorata_core::ledger::{Ledger, Mode, Operation, Portion, Target};
use prorata_core::rng::{Xoshiro256PlusPlus, below};
use prorata_scenario::plan::{Deed, client_id};
use prorata_scenario::world::World as _;

use super::scenarios::{pick, policy, quantum};
use super::slots;
use crate::machine::Simulation;
use crate::observer::Observer;

type Lots = Xoshiro256PlusPlus;

pub(super) fn fault<O: Observer>(simulation: &mut Simulation<O>, lots: &mut Lots) {
    let clients = u64::from(simulation.machine().client_count());
    let client = below(lots, clients) as u32;
    if let Some(timetable) = simulation.machine().timetable()
        && below(lots, 4) == 0
    {
        let user = simulation.machine().user_of(client);
        let deed = slots::deed(timetable, client, user, clients as u32, lots);
        return simulation.do_deed(Deed::Slots(deed));
    }
    match below(lots, 11) {
        0 => simulation.do_deed(Deed::Stop(client..client + 1)),
        1 | 2 => simulation.do_deed(Deed::Start(client..client + 1)),
        3 => match below(lots, 4) {
            0 => simulation.do_deed(Deed::Policy(policy(lots))),
            1 => simulation.do_deed(Deed::Quantum(quantum(lots).0)),
            _ => simulation.do_deed(Deed::Signal(0)),
        },
        4 => {
            let pool = below(lots, simulation.machine().pool_count().into());
            simulation.do_deed(Deed::Move(client..client + 1, pool as u8));
        }
        _ => {
            let operation = operation(simulation.machine().dispatcher().ledger(), client, lots);
            simulation.apply(operation);
        }
    }
}

/// An operation on existing objects, or now and then on missing ones. Clients are neither
/// made nor destroyed: they are the machine's.
fn operation(ledger: &Ledger, client: u32, lots: &mut Lots) -> Operation {
    let target = |lots: &mut Lots| match below(lots, 3) {
        0 => Target::Currency(currency(ledger, lots)),
        _ => Target::Client(some_client(ledger, lots)),
    };
    match below(lots, 16) {
        0 => Operation::CreateCurrency {
            name: format!("c{}", below(lots, 20)),
            owner: 0,
            group: 0,
            mode: Mode::DEFAULT,
        },
        1 => Operation::DestroyCurrency {
            currency: currency(ledger, lots),
        },
        2..=4 => Operation::Issue {
            currency: currency(ledger, lots),
            amount: amount(lots),
            target: Some(target(lots)).filter(|_| below(lots, 8) > 0),
        },
        5 => Operation::DestroyTicket {
            ticket: ticket(ledger, lots),
        },
        6..=8 => Operation::SetAmount {
            ticket: ticket(ledger, lots),
            amount: amount(lots),
        },
        9 => Operation::Fund {
            ticket: ticket(ledger, lots),
            target: target(lots),
        },
        10 => Operation::Unfund {
            ticket: ticket(ledger, lots),
        },
        11..=13 => {
            let receivers = (0..=below(lots, 2))
                .map(|_| target(lots))
                .collect::<Vec<_>>();
            let portion = if below(lots, 2) == 0 {
                Portion::Whole(receivers)
            } else {
                Portion::Part {
                    currency: Some(currency(ledger, lots)).filter(|_| below(lots, 2) == 0),
                    shares: receivers
                        .into_iter()
                        .map(|receiver| (receiver, amount(lots)))
                        .collect(),
                }
            };
            Operation::Transfer {
                from: client_id(client),
                portion,
            }
        }
        _ => Operation::EndTransfer {
            transfer: transfer(ledger, lots),
        },
    }
}

/// Mostly moderate, now and then at a limit or past it.
fn amount(lots: &mut Lots) -> u32 {
    match below(lots, 24) {
        0 => 0,
        1 => u32::MAX,
        _ => 1 + below(lots, 1000) as u32,
    }
}

fn some_client(ledger: &Ledger, lots: &mut Lots) -> ClientId {
    let ids: Vec<_> = ledger.clients().map(|client| client.id).collect();
    pick(lots, &ids).unwrap_or(client_id(0))
}

fn currency(ledger: &Ledger, lots: &mut Lots) -> CurrencyId {
    if below(lots, 3) == 0 {
        return ledger.base();
    }
    let ids: Vec<_> = ledger.currencies().map(|currency| currency.id).collect();
    pick(lots, &ids).unwrap_or(ledger.base())
}

fn ticket(ledger: &Ledger, lots: &mut Lots) -> TicketId {
    let ids: Vec<_> = ledger.tickets().map(|ticket| ticket.id).collect();
    let gone = TicketId::from_parts(below(lots, 1000) as u32, 7);
    pick(lots, &ids).unwrap_or(gone)
}

fn transfer(ledger: &Ledger, lots: &mut Lots) -> TransferId {
    let ids: Vec<_> = ledger.transfers().map(|transfer| transfer.id).collect();
    let gone = TransferId::from_parts(below(lots, 1000) as u32, 7);
    pick(lots, &ids).unwrap_or(gone)
}
