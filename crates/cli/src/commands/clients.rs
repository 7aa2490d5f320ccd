//! `ps`, `set`, `quantum` and `release`.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Result;
use prorata_protocol::{
    ClientReport, ClientState, Connection, Funding, Request, Response, TurnsReport,
};
use prorata_report::table::{Column, Side, Table};

use super::tree;
use crate::args::Format;
use crate::args::ledger::{QuantumArgs, ReleaseArgs, SetArgs};
use crate::args::values::Max;
use crate::args::view::PsArgs;
use crate::belonging;
use crate::caller::{Caller, ask, clients, quantum_ns, tell, unexpected, user_name};
use crate::{output, shares, terminal};

/// Printed for an empty list of clients.
pub const NO_CLIENTS: &str = "prorata: there are no clients: start one with `prorata run`";

/// Time over which `ps` measures CPU use.
const SAMPLE: Duration = Duration::from_millis(200);

/// A client as `ps` shows it.
struct Row {
    client: ClientReport,
    /// CPU use: 1 is one CPU.
    cpu_use: f64,
    /// Its own quantum, or that of all.
    quantum_ns: u64,
}

/// Heading of the limits. The column is shown only if some client has one.
pub const MAX: &str = "MAX";

/// Columns of hybrid lottery scheduling, and that of nice values. Each is shown only if some client
/// has it.
pub const HYBRID_COLUMNS: [Column<ClientReport>; 3] = [
    ("BOOST", Side::Right, |client| {
        let boost = client.hybrid.and_then(|hybrid| hybrid.boost);
        boost.map_or_else(String::new, output::boost)
    }),
    ("LEAD", Side::Right, |client| {
        let hybrid = client.hybrid;
        hybrid.map_or_else(String::new, |hybrid| output::tenths_of_ms(hybrid.lead_ns))
    }),
    ("NICE", Side::Right, |client| {
        client.nice.map_or_else(String::new, output::nice)
    }),
];

/// Those of [`HYBRID_COLUMNS`] that have a cell with content.
pub fn hybrid_columns<'a>(
    clients: impl Iterator<Item = &'a ClientReport> + Clone,
) -> Vec<Column<ClientReport>> {
    let is_shown = |(.., cell): &Column<ClientReport>| {
        let mut clients = clients.clone();
        clients.any(|client| !cell(client).is_empty())
    };
    HYBRID_COLUMNS.into_iter().filter(is_shown).collect()
}

const COLUMNS: [Column<Row>; 15] = [
    ("ID", Side::Left, |row| row.client.id.clone()),
    ("NAME", Side::Left, |row| row.client.name.clone()),
    ("USER", Side::Left, |row| user_name(row.client.owner)),
    ("PID", Side::Right, |row| row.client.pid.to_string()),
    ("PROCS", Side::Right, |row| row.client.processes.to_string()),
    ("TICKETS", Side::Left, |row| {
        output::tickets(&row.client.tickets)
    }),
    ("VALUE", Side::Right, |row| output::value(row.client.value)),
    ("SHARE", Side::Right, |row| {
        output::percent(row.client.share)
    }),
    ("CPU", Side::Right, |row| output::percent(row.cpu_use)),
    (MAX, Side::Right, |row| max(&row.client)),
    ("SPECIFIED", Side::Right, |row| {
        output::seconds(row.client.specified_ns)
    }),
    ("RECEIVED", Side::Right, |row| {
        output::seconds(row.client.received_ns)
    }),
    ("ERROR", Side::Right, |row| {
        output::quanta(row.client.error_quanta)
    }),
    ("STATE", Side::Left, |row| {
        state(row.client.state).to_owned()
    }),
    ("QUANTUM", Side::Right, |row| {
        output::milliseconds(row.quantum_ns)
    }),
];

/// Columns that are left out where a terminal is too narrow, the first ones first.
const LESS: [&str; 13] = [
    "NICE",
    "BOOST",
    "LEAD",
    "TURNS",
    "MOVES",
    "WAIT 50 %",
    "WAIT 99 %",
    "VALUE",
    "USER",
    "PROCS",
    "SPECIFIED",
    "RECEIVED",
    "PID",
];

pub fn ps(caller: &Caller, args: &PsArgs) -> Result<()> {
    let mut connection = caller.open_to_read()?;
    let before = clients(&mut connection)?;
    if args.tree {
        return tree::print(&mut connection, before, args.format);
    }
    if args.format.json {
        return output::json(&before);
    }
    let begun = Instant::now();
    if !before.is_empty() {
        sleep(SAMPLE);
    }
    let now = clients(&mut connection)?;
    let cpu_use = shares::cpu_use(&before, &now, begun.elapsed());
    let common_ns = connection.status().quantum_ns;
    let rows = now.into_iter().zip(cpu_use).map(|(client, cpu_use)| Row {
        cpu_use,
        quantum_ns: client.quantum_ns.unwrap_or(common_ns),
        client,
    });
    let mut table = ps_table(&rows.collect::<Vec<_>>());
    if let Some(limit) = terminal::columns() {
        table.fit(limit, &LESS);
    }
    output::table(&table, NO_CLIENTS)?;
    if let Some(loads) = output::outside(&connection.status().outside) {
        output::say(format_args!("other programs use {loads}"));
    }
    Ok(())
}

fn ps_table(rows: &[Row]) -> Table {
    let counts_turns = rows.iter().any(|row| row.client.turns.is_some());
    let limits = rows.iter().any(|row| row.client.max.is_some());
    let shown = |column: &&Column<Row>| limits || column.0 != MAX;
    let columns: Vec<_> = COLUMNS.iter().filter(shown).collect();
    let headings = columns.iter().map(|(heading, side, _)| (*heading, *side));
    let mut headings: Vec<_> = headings.collect();
    let hybrid = hybrid_columns(rows.iter().map(|row| &row.client));
    headings.extend(hybrid.iter().map(|(heading, side, _)| (*heading, *side)));
    if counts_turns {
        headings.extend(TURNS_COLUMNS.map(|(heading, side, _)| (heading, side)));
    }
    let mut table = Table::new(&headings);
    for row in rows {
        let mut cells: Vec<_> = columns.iter().map(|(.., cell)| cell(row)).collect();
        cells.extend(hybrid.iter().map(|(.., cell)| cell(&row.client)));
        if counts_turns {
            cells.extend(TURNS_COLUMNS.map(|(.., cell)| cell(&row.client)));
        }
        table.row(cells);
    }
    table
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

/// A client's limit as printed.
pub fn max(client: &ClientReport) -> String {
    client.max.map_or_else(String::new, |max| max.to_string())
}

/// A client's state as printed.
pub fn state(state: ClientState) -> &'static str {
    match state {
        ClientState::Running => "running",
        ClientState::Waiting => "waiting",
        ClientState::Blocked => "blocked",
        ClientState::Limited => "limited",
        ClientState::Suspended => "suspended",
    }
}

/// `prorata set`. Prints the identifier of a process that becomes a client.
pub fn set(caller: &Caller, args: &SetArgs) -> Result<()> {
    let client = args.client.clone();
    let request = match (args.tickets, args.max) {
        (Some(amount), _) if args.ticket => Request::SetAmount {
            ticket: client,
            amount,
        },
        (Some(amount), _) => Request::SetTickets {
            client,
            funding: Funding {
                amount,
                currency: args.currency.clone(),
            },
        },
        (None, max) => Request::SetMax {
            client,
            max: max.and_then(|Max(max)| max),
        },
    };
    let mut connection = caller.open()?;
    if args.ticket {
        return tell(&mut connection, &request);
    }
    change(caller, &mut connection, &args.client, &request, args.format)
}

/// Sends a request that changes a client or makes one of a process.
pub fn change(
    caller: &Caller,
    connection: &mut Connection,
    client: &str,
    request: &Request,
    format: Format,
) -> Result<()> {
    if let Ok(pid) = client.parse() {
        belonging::check(caller, &[pid])?;
    }
    match ask(connection, request)? {
        Response::Done => Ok(()),
        Response::Client(client) => output::created(format, &client.id),
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
