//! What claims come to, for people and as JSON.

use std::process::ExitCode;

use anyhow::Result;
use prorata_core::slots::check::{Conflict, Counterexample, Outcome, Window, Wish};
use prorata_core::slots::geometry::Cell;
use prorata_core::slots::place::periodic::Periodic;
use prorata_report::table::{Side, Table};
use prorata_scenario::file::Time;
use serde::Serialize;

use super::file::{Claims, places_of};
use crate::args::timetable::Places;
use crate::output;

/// CPUs whose windows a sentence names.
const NAMED_CPUS: usize = 4;

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Report {
    fits: bool,
    /// Whether it is certain that no table has room for all periodic claims.
    is_impossible: bool,
    table: TableReport,
    claims: Vec<ClaimReport>,
    cpus: Vec<CpuReport>,
    conflicts: Vec<ConflictReport>,
    warnings: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct TableReport {
    cpus: u32,
    columns: u32,
    length_ns: u64,
    /// So many slots of any so many successive ones.
    reserve: (u32, u32),
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct ClaimReport {
    by: String,
    wants: String,
    level: &'static str,
    /// In the form of the file.
    slots: Vec<String>,
    count: usize,
    /// The longest time without a slot; none without slots.
    blackout_ns: Option<u64>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct CpuReport {
    cpu: u32,
    claimed: u32,
    used: f64,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct ConflictReport {
    by: String,
    counterexamples: Vec<Example>,
    message: String,
}

/// A window in which a claim does not get what it wants.
#[derive(Default, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Example {
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<u32>,
    /// Slots since the beginning of the table.
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<u64>,
    /// Slots of the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    length: Option<u32>,
    /// Slots that it has or could have there.
    #[serde(skip_serializing_if = "Option::is_none")]
    has: Option<u32>,
    held_by: Vec<String>,
}

impl Report {
    pub fn new(claims: &Claims, outcome: &Outcome, is_impossible: bool) -> Report {
        let slot_ns = claims.geometry.slot_ns();
        let columns = claims.geometry.columns();
        let of_claim = |claimant: usize| ClaimReport {
            by: claims.names[claimant].clone(),
            wants: claims.wishes[claimant].clone(),
            level: claims.claimants[claimant].level.name(),
            slots: places_of(&outcome.cells[claimant])
                .iter()
                .map(Places::to_string)
                .collect(),
            count: outcome.cells[claimant].len(),
            blackout_ns: outcome
                .blackout(claimant)
                .map(|slots| u64::from(slots) * slot_ns),
        };
        let of_cpu = |cpu| CpuReport {
            cpu,
            claimed: outcome.claimed_in(cpu),
            used: f64::from(outcome.claimed_in(cpu)) / f64::from(columns),
        };
        let of_conflict = |conflict: &Conflict| ConflictReport {
            by: claims.names[conflict.claimant].clone(),
            counterexamples: examples(claims, &conflict.counterexample),
            message: message(claims, conflict),
        };
        Report {
            fits: outcome.conflicts.is_empty(),
            is_impossible,
            table: TableReport {
                cpus: claims.geometry.rows(),
                columns,
                length_ns: slot_ns,
                reserve: (claims.reserve.numerator, claims.reserve.denominator),
            },
            claims: (0..claims.names.len()).map(of_claim).collect(),
            cpus: (0..claims.geometry.rows()).map(of_cpu).collect(),
            conflicts: outcome.conflicts.iter().map(of_conflict).collect(),
            warnings: warnings(claims),
        }
    }

    /// 0 if all claims fit, else 1.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(u8::from(!self.fits))
    }

    pub fn print(&self) -> Result<()> {
        let TableReport {
            cpus,
            columns,
            length_ns,
            reserve: (part, of),
        } = &self.table;
        let length = Time(*length_ns);
        output::line(&format!(
            "{} of {length} on {}; {part} of {of} reserved",
            output::count(u64::from(*columns), "slot"),
            output::count(u64::from(*cpus), "CPU")
        ))?;
        output::line("")?;
        output::table(&self.claim_table(), "no claims")?;
        output::line("")?;
        output::table(&self.cpu_table(), "")?;
        output::line("")?;
        for conflict in &self.conflicts {
            output::line(&format!("conflict: {}", conflict.message))?;
        }
        for warning in &self.warnings {
            output::line(&format!("warning: {warning}"))?;
        }
        output::line(&match (self.is_impossible, self.conflicts.len()) {
            (_, 0) => "all claims fit".to_owned(),
            (true, _) => "no table has room for all periodic claims".to_owned(),
            (false, 1) => "1 conflict".to_owned(),
            (false, conflicts) => format!("{conflicts} conflicts"),
        })
    }

    fn claim_table(&self) -> Table {
        let left = |heading| (heading, Side::Left);
        let right = |heading| (heading, Side::Right);
        let mut table = Table::new(&[
            left("CLAIM"),
            left("WANTS"),
            left("LEVEL"),
            right("SLOTS"),
            right("BLACKOUT"),
            left("WHERE"),
        ]);
        for claim in &self.claims {
            let blackout = claim.blackout_ns.map(|ns| Time(ns).to_string());
            table.row(vec![
                claim.by.clone(),
                claim.wants.clone(),
                claim.level.to_owned(),
                claim.count.to_string(),
                output::or_dash(blackout.as_ref()),
                output::joined(&claim.slots),
            ]);
        }
        table
    }

    fn cpu_table(&self) -> Table {
        let mut table = Table::new(&[
            ("CPU", Side::Right),
            ("CLAIMED", Side::Right),
            ("USED", Side::Right),
        ]);
        for cpu in &self.cpus {
            table.row(vec![
                cpu.cpu.to_string(),
                cpu.claimed.to_string(),
                output::percent(cpu.used),
            ]);
        }
        table
    }
}

/// The kernel's fair server takes the CPU where ordinary tasks got less than 50 ms of a second; of
/// one slot in twenty, too little comes in time.
fn warnings(claims: &Claims) -> Vec<String> {
    let reserve = claims.reserve;
    let is_enough = u64::from(reserve.numerator) * 10 >= u64::from(reserve.denominator);
    let warning = "less than 1 slot in 10 is reserved: once ordinary tasks get less than 50 ms of \
                   a second, Linux takes whole slots for them";
    if is_enough {
        Vec::new()
    } else {
        vec![warning.to_owned()]
    }
}

fn names(claims: &Claims, claimants: &[usize]) -> Vec<String> {
    let names = claimants.iter().map(|&each| claims.names[each].clone());
    names.collect()
}

fn examples(claims: &Claims, counterexample: &Counterexample) -> Vec<Example> {
    let of_cell = |cell: Cell| Example {
        cpu: Some(cell.row),
        first: Some(cell.column.into()),
        length: Some(1),
        ..Example::default()
    };
    let example = match counterexample {
        Counterexample::Outside(cell) => of_cell(*cell),
        Counterexample::Taken { cell, by } => Example {
            held_by: names(claims, &[*by]),
            ..of_cell(*cell)
        },
        Counterexample::Reserved { cell, first } => Example {
            first: Some((*first).into()),
            length: Some(claims.reserve.denominator),
            ..of_cell(*cell)
        },
        Counterexample::Windows(windows) => {
            let of_window = |window: &Window| Example {
                cpu: Some(window.row),
                first: Some(window.lack.first),
                length: Some(window.lack.length),
                has: Some(window.lack.has),
                held_by: names(claims, &window.held_by),
            };
            return windows.iter().map(of_window).collect();
        }
        Counterexample::Columns {
            column,
            open,
            held_by,
            ..
        } => Example {
            first: Some((*column).into()),
            length: Some(1),
            has: Some(*open),
            held_by: names(claims, held_by),
            ..Example::default()
        },
        Counterexample::Run { longest, has } => Example {
            length: Some(*has),
            has: Some(*has),
            ..longest.map(of_cell).unwrap_or_default()
        },
        Counterexample::Unplanned { room, .. } => Example {
            has: Some(*room),
            ..Example::default()
        },
    };
    vec![example]
}

/// One sentence: the claimant, its wish, and the place where that fails.
fn message(claims: &Claims, conflict: &Conflict) -> String {
    let by = &claims.names[conflict.claimant];
    let wish = &claims.claimants[conflict.claimant].wish;
    let wants = &claims.wishes[conflict.claimant];
    let what = match &conflict.counterexample {
        Counterexample::Outside(Cell { row, column }) => format!("there is no slot {row}:{column}"),
        Counterexample::Taken { cell, by } if *by == conflict.claimant => {
            format!("it names slot {}:{} twice", cell.row, cell.column)
        }
        Counterexample::Taken { cell, by } => {
            let holder = &claims.names[*by];
            format!("slot {}:{} is {holder}'s", cell.row, cell.column)
        }
        Counterexample::Reserved { cell, first } => format!(
            "slot {}:{} is reserved: of {} of CPU {}, {} must stay unclaimed",
            cell.row,
            cell.column,
            span(claims, (*first).into(), claims.reserve.denominator),
            cell.row,
            claims.reserve.numerator
        ),
        Counterexample::Windows(windows) => of_windows(claims, wish, windows),
        Counterexample::Columns {
            found,
            column,
            open,
            held_by,
        } => format!(
            "{found} columns have room; column {column} has {open} open slots{}",
            held(claims, held_by)
        ),
        Counterexample::Run { longest, has } => match longest {
            Some(Cell { row, column }) => {
                let has = output::count(u64::from(*has), "slot");
                format!("the longest run has {has}, from {row}:{column} on")
            }
            None => "no slot is open".to_owned(),
        },
        Counterexample::Unplanned { load, room } => format!(
            "it takes {load} slots of a table, and no CPU was found that has room beside the \
             others; at most {room} are left on one"
        ),
    };
    format!("{by} wants {wants}: {what}")
}

fn of_windows(claims: &Claims, wish: &Wish, windows: &[Window]) -> String {
    let each = windows.iter().take(NAMED_CPUS);
    let mut each: Vec<String> = each.map(|window| of_window(claims, wish, window)).collect();
    if windows.len() > NAMED_CPUS {
        each.push(format!("so on {} more CPUs", windows.len() - NAMED_CPUS));
    }
    let columns = claims.geometry.columns();
    if let Wish::Periodic { periodic, .. } = wish
        && !columns.is_multiple_of(periodic.period)
    {
        let harmonic = u64::from(periodic.harmonic_period(columns));
        let harmonic = Time(harmonic * claims.geometry.slot_ns());
        each.push(format!(
            "it is placed once every {harmonic}, as its period does not divide the table: take \
             one that does"
        ));
    }
    each.join("; ")
}

fn of_window(claims: &Claims, wish: &Wish, window: &Window) -> String {
    let (lack, cpu) = (&window.lack, window.row);
    let held = held(claims, &window.held_by);
    match wish {
        Wish::Event { slots, .. } => format!(
            "if it wakes in slot {} of CPU {cpu}, it finds {} of {slots} slots before its \
             deadline{held}",
            lack.first, lack.has
        ),
        Wish::Periodic {
            periodic: Periodic { slots, .. },
            ..
        } if lack.has < *slots => format!(
            "it finds {} of {slots} slots in {} of CPU {cpu}{held}",
            lack.has,
            span(claims, lack.first, lack.length),
        ),
        _ => format!(
            "its first slot in {} of CPU {cpu} is {} after the beginning{held}",
            span(claims, lack.first, lack.length),
            Time(u64::from(lack.begins.unwrap_or(0)) * claims.geometry.slot_ns())
        ),
    }
}

/// `slots 5 to 9`, and in which round of the table if it is a later one.
fn span(claims: &Claims, first: u64, length: u32) -> String {
    let columns = u64::from(claims.geometry.columns());
    let last = first + u64::from(length).saturating_sub(1);
    let round = match first / columns {
        0 => String::new(),
        round => format!(" of round {}", round + 1),
    };
    format!("slots {} to {}{round}", first % columns, last % columns)
}

/// `, where A and B have slots`.
fn held(claims: &Claims, claimants: &[usize]) -> String {
    match names(claims, claimants).as_slice() {
        [] => String::new(),
        [one] => format!(", where {one} has slots"),
        several => format!(", where {} have slots", several.join(", ")),
    }
}
