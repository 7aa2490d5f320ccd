//! Opening and closing the timetable.

use anyhow::{Context as _, Result};
use prorata_protocol::slots::{SlotsAnswer, SlotsReport, SlotsRequest};

use super::{ask, unexpected};
use crate::args::timetable::{CloseArgs, OpenArgs};
use crate::caller::Caller;
use crate::output;

/// `prorata slots open`.
pub fn open(caller: &Caller, args: &OpenArgs) -> Result<()> {
    let slot_ns = u64::try_from(args.length.as_nanos()).context("a slot is 1ms to 100ms long")?;
    let request = SlotsRequest::Open {
        columns: args.columns,
        slot_ns,
        reserve: args.reserve,
        hold: false,
    };
    let report = match ask(&mut caller.open()?, request)? {
        SlotsAnswer::Open(report) => report,
        other => return Err(unexpected(other)),
    };
    if args.format.json {
        return output::json(&report);
    }
    describe(&report)
}

/// `prorata slots close`.
pub fn close(caller: &Caller, _args: &CloseArgs) -> Result<()> {
    ask(&mut caller.open()?, SlotsRequest::Close).map(drop)
}

/// The shape of the table, and what it promises.
pub fn describe(report: &SlotsReport) -> Result<()> {
    let length = output::milliseconds(report.slot_ns);
    let period = output::milliseconds(report.slot_ns * u64::from(report.columns));
    output::line(&format!(
        "{} CPUs x {} slots of {length}, a period of {period}; {} claimed",
        report.cpus.len(),
        report.columns,
        report.claimed
    ))?;
    match &report.mechanism {
        Some(mechanism) => output::line(&format!("slots are enforced by: {mechanism}"))?,
        None => output::line("slots are not enforced")?,
    }
    if let Some(trouble) = &report.trouble {
        output::say(trouble);
    }
    for row in report.rows.iter().filter(|row| row.begun > 0) {
        output::line(&format!(
            "CPU {}: {} slots began, {} used, {} idle, {} lost, {} missed; late by {} (half of all), {} \
             (99 %), {} (most); {} stolen",
            row.cpu,
            row.begun,
            row.ran,
            row.idle,
            row.lost,
            row.missed,
            microseconds(row.late_median_ns),
            microseconds(row.late_99th_ns),
            microseconds(row.late_most_ns),
            output::tenths_of_ms(row.stolen_ns),
        ))?;
    }
    Ok(())
}

/// `12 us`.
fn microseconds(time_ns: u64) -> String {
    format!("{} us", time_ns.div_ceil(1_000))
}
