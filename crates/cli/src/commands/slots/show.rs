//! The table and its claims, from the public file: no request is needed to look (2005, 2.3).

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context as _, Result};
use prorata_bulletin::{FILE_NAME, PublicClaim, Reader, now_ns};
use prorata_core::slots::claim::Schedulee;
use prorata_core::slots::geometry::Tick;
use prorata_protocol::Connection;
use prorata_report::slot_svg::slot_svg;
use prorata_report::slot_table::SlotTable;
use prorata_report::table::{Side, Table};
use serde::Serialize;

use super::{open, table};
use crate::args::timetable::{Range, ShowArgs};
use crate::caller::{Caller, clients, user_name};
use crate::{output, terminal};

/// Columns of a terminal where the output is none.
const PLAIN_WIDTH: usize = 100;

/// A claim as `--json` prints it.
#[derive(Serialize)]
struct Shown {
    cpu: u32,
    column: u32,
    runs: String,
    owner: String,
    level: &'static str,
    /// Until the claim ends; none if it does not.
    left_ns: Option<u64>,
}

/// `prorata slots show`.
pub fn show(caller: &Caller, args: &ShowArgs) -> Result<()> {
    let reader = Reader::open(&caller.paths().runtime.join(FILE_NAME))?;
    let claims = reader.snapshot();
    let claims = claims.context("the table changes too fast to be copied: try again")?;
    let mut connection = caller.open_running()?;
    let names = names(connection.as_mut())?;
    let runs = |claim: &PublicClaim| name_of(claim.schedulee, &names);
    if args.format.json {
        let shown: Vec<Shown> = claims
            .claims
            .iter()
            .map(|claim| shown(&reader, claim, runs(claim)))
            .collect();
        let report = connection.as_mut().map(table).transpose()?;
        return output::json(&serde_json::json!({ "table": report, "claims": shown }));
    }
    let drawn = draw(&reader, &claims.claims, args.columns, &runs);
    if let Some(path) = &args.svg {
        let geometry = reader.geometry();
        let length = output::milliseconds(geometry.slot_ns());
        let caption = format!("slots of {length}, {} in a period", geometry.columns());
        return output::document(path, &slot_svg(&drawn, "Timetable of the CPUs", &caption));
    }
    if let Some(connection) = &mut connection {
        open::describe(&table(connection)?)?;
    }
    let limit = terminal::columns().unwrap_or(PLAIN_WIDTH);
    drawn
        .lines(limit)
        .iter()
        .try_for_each(|text| output::line(text))?;
    list(&reader, &claims.claims, &runs)
}

/// The names of the clients that the caller may know, by identifier.
pub fn names(connection: Option<&mut Connection>) -> Result<BTreeMap<String, String>> {
    let clients = connection.map_or(Ok(Vec::new()), clients)?;
    let names = clients.into_iter().map(|client| (client.id, client.name));
    Ok(names.collect())
}

/// The table, or some of its columns.
pub fn draw(
    reader: &Reader,
    claims: &[PublicClaim],
    columns: Option<Range>,
    runs: &dyn Fn(&PublicClaim) -> String,
) -> SlotTable {
    let last = reader.geometry().columns() - 1;
    let columns = columns.unwrap_or(Range { first: 0, last });
    let (first, last) = (columns.first.min(last), columns.last.min(last));
    let width = (last - first + 1) as usize;
    let mut rows: Vec<(u32, Vec<Option<String>>)> = reader
        .cpus()
        .iter()
        .map(|&cpu| (cpu, vec![None; width]))
        .collect();
    for claim in claims {
        if (first..=last).contains(&claim.cell.column) {
            let slot = (claim.cell.column - first) as usize;
            rows[claim.cell.row as usize].1[slot] = Some(runs(claim));
        }
    }
    SlotTable { first, rows }
}

/// The claims of one owner, schedulee and level on a CPU, one a line.
fn list(
    reader: &Reader,
    claims: &[PublicClaim],
    runs: &dyn Fn(&PublicClaim) -> String,
) -> Result<()> {
    let mut lines: BTreeMap<(u32, String, String, &str), u32> = BTreeMap::new();
    for claim in claims {
        let shown = shown(reader, claim, runs(claim));
        let key = (shown.cpu, shown.runs, shown.owner, shown.level);
        *lines.entry(key).or_default() += 1;
    }
    let mut table = Table::new(&[
        ("CPU", Side::Right),
        ("SLOTS", Side::Right),
        ("RUNS", Side::Left),
        ("OWNER", Side::Left),
        ("LEVEL", Side::Left),
    ]);
    for ((cpu, runs, owner, level), slots) in lines {
        table.row(vec![
            cpu.to_string(),
            slots.to_string(),
            runs,
            owner,
            level.into(),
        ]);
    }
    output::table(
        &table,
        "nothing is claimed: `prorata slots claim` claims slots",
    )
}

fn shown(reader: &Reader, claim: &PublicClaim, runs: String) -> Shown {
    let left_ns = |expires: Tick| {
        let until_ns = reader.geometry().begin_ns(expires);
        until_ns.saturating_sub(now_ns())
    };
    Shown {
        cpu: reader.cpus()[claim.cell.row as usize],
        column: claim.cell.column,
        runs,
        owner: user_name(claim.owner.user),
        level: claim.level.name(),
        left_ns: claim.expires.map(left_ns),
    }
}

/// A client's name where the caller may know it, else its identifier; a program's name and pid.
pub fn name_of(schedulee: Schedulee, names: &BTreeMap<String, String>) -> String {
    let program = |path: String| fs::read_to_string(path).unwrap_or_default();
    match schedulee {
        Schedulee::Client(client) => {
            let id = client.to_string();
            names.get(&id).cloned().unwrap_or(id)
        }
        Schedulee::Process { pid, .. } => {
            let name = program(format!("/proc/{pid}/comm"));
            format!("{}/{pid}", name.trim_end())
        }
        Schedulee::Thread { tid, .. } => {
            let name = program(format!("/proc/{tid}/comm"));
            format!("{}/{tid}", name.trim_end())
        }
    }
}
