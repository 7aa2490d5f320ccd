//! `ps`, `set`, `quantum` and `release`.

use anyhow::Result;
use prorata_protocol::{ClientReport, ClientState, Funding, Request, Response, TurnsReport};
use prorata_report::table::{Side, Table};

use crate::args::ledger::{Quantum, Release, Set};
use crate::args::view::Ps;
use crate::caller::{Caller, ask, clients, quantum_ns, tell, unexpected, user_name};
use crate::output;

/// Printed for an empty list of clients.
pub const NO_CLIENTS: &str = "prorata: there are no clients: start one with `prorata run`";

/// `prorata ps`.
pub fn ps(caller: &Caller, args: &Ps) -> Result<()> {
    let clients = clients(&mut caller.open()?)?;
    if args.format.json {
        return output::json(&clients);
    }
    let has_quanta = clients.iter().any(|client| client.quantum_ns.is_some());
    let counts_turns = clients.iter().any(|client| client.turns.is_some());
    let mut columns = vec![
        ("ID", Side::Left),
        ("NAME", Side::Left),
        ("USER", Side::Left),
        ("PID", Side::Right),
        ("PROCS", Side::Right),
        ("TICKETS", Side::Left),
        ("VALUE", Side::Right),
        ("SHARE", Side::Right),
        ("SPECIFIED", Side::Right),
        ("RECEIVED", Side::Right),
        ("ERROR", Side::Right),
        ("STATE", Side::Left),
    ];
    if has_quanta {
        columns.push(("QUANTUM", Side::Right));
    }
    if counts_turns {
        columns.extend(TURNS_COLUMNS);
    }
    let mut table = Table::new(&columns);
    for client in &clients {
        let mut row = row(client);
        if has_quanta {
            row.push(
                client
                    .quantum_ns
                    .map_or_else(String::new, output::milliseconds),
            );
        }
        if counts_turns {
            row.extend(turns(client.turns));
        }
        table.row(row);
    }
    output::table(&table, NO_CLIENTS)
}

fn row(client: &ClientReport) -> Vec<String> {
    vec![
        client.id.clone(),
        client.name.clone(),
        user_name(client.owner),
        client.pid.to_string(),
        client.processes.to_string(),
        output::tickets(&client.tickets),
        format!("{:.1}", client.value),
        output::percent(client.share),
        output::seconds(client.specified_ns),
        output::seconds(client.received_ns),
        output::quanta(client.error_quanta),
        state(client.state).to_owned(),
    ]
}

/// Columns of the counts that only the kernel engine has.
pub const TURNS_COLUMNS: [(&str, Side); 4] = [
    ("TURNS", Side::Right),
    ("MOVES", Side::Right),
    ("WAIT 50 %", Side::Right),
    ("WAIT 99 %", Side::Right),
];

/// The row of a client below [`TURNS_COLUMNS`].
pub fn turns(turns: Option<TurnsReport>) -> [String; 4] {
    let Some(turns) = turns else {
        return Default::default();
    };
    [
        turns.turns.to_string(),
        turns.migrations.to_string(),
        output::shorter_than(turns.wait_median_ns),
        output::shorter_than(turns.wait_99th_ns),
    ]
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
pub fn set(caller: &Caller, args: &Set) -> Result<()> {
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
    match ask(&mut caller.open()?, &request)? {
        Response::Done => Ok(()),
        Response::Client(client) => output::created(args.format, &client.id),
        other => Err(unexpected(&other)),
    }
}

/// `prorata quantum`.
pub fn quantum(caller: &Caller, args: &Quantum) -> Result<()> {
    tell(
        &mut caller.open()?,
        &Request::SetQuantum {
            client: args.client.clone(),
            quantum_ns: args.time.map(quantum_ns).transpose()?,
        },
    )
}

/// `prorata release`.
pub fn release(caller: &Caller, args: &Release) -> Result<()> {
    tell(
        &mut caller.open()?,
        &Request::Release {
            client: args.client.clone(),
        },
    )
}
