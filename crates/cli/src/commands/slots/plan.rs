//! `slots plan`: a table in which all periodic claims fit.

use std::process::ExitCode;

use anyhow::Result;
use prorata_core::slots::check::Outcome;
use prorata_core::slots::check::plan::plan as plan_claims;
use prorata_core::slots::geometry::Cell;
use prorata_report::slot_table::SlotTable;

use super::file::Claims;
use super::report::Report;
use crate::args::slots::PlanArgs;
use crate::{output, terminal};

/// Steps after which the search for a packing is given up: well below a second.
const STEPS: u32 = 1_000_000;

/// Columns of a line where standard output is no terminal.
const USUAL_COLUMNS: usize = 100;

pub fn plan(args: &PlanArgs) -> Result<ExitCode> {
    let claims = Claims::of_file(&args.file)?;
    let plan = plan_claims(&claims.empty, &claims.claimants, STEPS);
    let report = Report::new(&claims, &plan.outcome, plan.is_impossible);
    if args.format.json {
        output::json(&report)?;
        return Ok(report.exit_code());
    }
    let limit = terminal::columns().unwrap_or(USUAL_COLUMNS);
    for line in drawing(&claims, &plan.outcome).lines(limit) {
        output::line(&line)?;
    }
    output::line("")?;
    report.print()?;
    Ok(report.exit_code())
}

/// The table as the thesis draws it (2005, Figure 2.1).
fn drawing(claims: &Claims, outcome: &Outcome) -> SlotTable {
    let rows = (0..claims.empty.rows()).map(|row| {
        let cells = (0..claims.empty.columns()).map(|column| Cell { row, column });
        let holders = cells.map(|cell| outcome.holder(cell));
        let names = holders.map(|holder| Some(claims.names[holder?].clone()));
        (row, names.collect())
    });
    SlotTable {
        first: 0,
        rows: rows.collect(),
    }
}
