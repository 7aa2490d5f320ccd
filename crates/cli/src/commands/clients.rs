//! `ps`, `set`, `quantum` and `release`.

use anyhow::Result;
use prorata_protocol::{ClientReport, ClientState, Funding, Request, Response, TurnsReport};
use prorata_report::table::{Column, Side};

use crate::args::ledger::{QuantumArgs, ReleaseArgs, SetArgs};
use crate::args::view::PsArgs;
use crate::belonging;
use crate::caller::{Caller, ask, clients, quantum_ns, tell, unexpected, user_name};
use crate::output;

/// Printed for an empty list of clients.
pub const NO_CLIENTS: &str = "prorata: there are no clients: start one with `prorata run`";

pub fn ps(caller: &Caller, args: &PsArgs) -> Result<()> {
    let clients = clients(&mut caller.open()?)?;
    let mut columns: Vec<Column<ClientReport>> = vec![
        ("ID", Side::Left, |client| client.id.clone()),
        ("NAME", Side::Left, |client| client.name.clone()),
        ("USER", Side::Left, |client| user_name(client.owner)),
        ("PID", Side::Right, |client| client.pid.to_string()),
        ("PROCS", Side::Right, |client| client.processes.to_string()),
        ("TICKETS", Side::Left, |client| {
            output::tickets(&client.tickets)
        }),
        ("VALUE", Side::Right, |client| output::value(client.value)),
        ("SHARE", Side::Right, |client| output::percent(client.share)),
        ("SPECIFIED", Side::Right, |client| {
            output::seconds(client.specified_ns)
        }),
        ("RECEIVED", Side::Right, |client| {
            output::seconds(client.received_ns)
        }),
        ("ERROR", Side::Right, |client| {
            output::quanta(client.error_quanta)
        }),
        ("STATE", Side::Left, |client| state(client.state).to_owned()),
    ];
    if clients.iter().any(|client| client.quantum_ns.is_some()) {
        columns.push(("QUANTUM", Side::Right, |client| {
            client
                .quantum_ns
                .map_or_else(String::new, output::milliseconds)
        }));
    }
    if clients.iter().any(|client| client.turns.is_some()) {
        columns.extend(TURNS_COLUMNS);
    }
    output::list(args.format, &clients, &columns, NO_CLIENTS)
}

/// Columns of the counts that only the kernel engine has.
pub const TURNS_COLUMNS: [Column<ClientReport>; 4] = [
    ("TURNS", Side::Right, |client| {
        turns(client, |turns| turns.turns.to_string())
    }),
    ("MOVES", Side::Right, |client| {
        turns(client, |turns| turns.migrations.to_string())
    }),
    ("WAIT 50 %", Side::Right, |client| {
        turns(client, |turns| output::shorter_than(turns.wait_median_ns))
    }),
    ("WAIT 99 %", Side::Right, |client| {
        turns(client, |turns| output::shorter_than(turns.wait_99th_ns))
    }),
];

fn turns(client: &ClientReport, cell: fn(&TurnsReport) -> String) -> String {
    client.turns.as_ref().map_or_else(String::new, cell)
}

/// A client's state as printed.
pub fn state(state: ClientState) -> &'static str {
    match state {
        ClientState::Running => "running",
        ClientState::Waiting => "waiting",
        ClientState::Blocked => "blocked",
        ClientState::Suspended => "suspended",
    }
}

/// `prorata set`. Prints the identifier of a process that becomes a client.
pub fn set(caller: &Caller, args: &SetArgs) -> Result<()> {
    let request = if args.ticket {
        Request::SetAmount {
            ticket: args.client.clone(),
            amount: args.tickets,
        }
    } else {
        let funding = Funding {
            amount: args.tickets,
            currency: args.currency.clone(),
        };
        Request::SetTickets {
            client: args.client.clone(),
            funding,
        }
    };
    let mut connection = caller.open()?;
    if let (false, Ok(pid)) = (args.ticket, args.client.parse()) {
        belonging::check(caller, &[pid])?;
    }
    match ask(&mut connection, &request)? {
        Response::Done => Ok(()),
        Response::Client(client) => output::created(args.format, &client.id),
        other => Err(unexpected(&other)),
    }
}

pub fn quantum(caller: &Caller, args: &QuantumArgs) -> Result<()> {
    tell(
        &mut caller.open()?,
        &Request::SetQuantum {
            client: args.client.clone(),
            quantum_ns: args.time.map(quantum_ns).transpose()?,
        },
    )
}

pub fn release(caller: &Caller, args: &ReleaseArgs) -> Result<()> {
    tell(
        &mut caller.open()?,
        &Request::Release {
            client: args.client.clone(),
        },
    )
}
