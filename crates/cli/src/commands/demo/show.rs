//! The demo's output: a live table on a terminal, otherwise a few snapshots.

use anyhow::Result;
use prorata_report::bar::share_bar;
use prorata_report::table::{Side, Table};

use super::record::{Phase, Record, Summary};
use super::{INFLATED, PROGRAMS};
use crate::args::daemon::DemoArgs;
use crate::output;
use crate::terminal::{self, InPlace};

const BAR_COLUMNS: usize = 32;

/// If the programs get less than this part of the CPU, other programs are busy.
const QUIET: f64 = 0.9;

/// Number of snapshots.
const SNAPSHOTS: u32 = 4;

/// The output during the demo.
#[derive(Debug)]
pub struct Show {
    seconds: u32,
    way: Way,
}

#[derive(Debug)]
enum Way {
    /// A table that updates in place.
    Live(InPlace),
    /// The number of the last printed snapshot.
    Snapshots(u32),
    /// `--json` prints only the results.
    Silent,
}

impl Show {
    pub fn new(args: &DemoArgs, program: &str, cpu: u32) -> Result<Self> {
        let way = match (args.format.json, terminal::columns()) {
            (true, _) => Way::Silent,
            (false, Some(_)) => Way::Live(InPlace::default()),
            (false, None) => Way::Snapshots(0),
        };
        if !args.format.json {
            output::line(&format!(
                "Three copies of `{program}` share CPU {cpu} by tickets."
            ))?;
            let (last, tickets) = PROGRAMS[PROGRAMS.len() - 1];
            let half_s = f64::from(args.seconds) / 2.0;
            output::line(&format!(
                "After {half_s} s the {last} one is inflated from {tickets} to {INFLATED} tickets.\n"
            ))?;
        }
        Ok(Self {
            seconds: args.seconds,
            way,
        })
    }

    /// Shows the last sample.
    pub fn update(&mut self, record: &Record) -> Result<()> {
        let seconds = self.seconds;
        let length_ns = u64::from(seconds) * 1_000_000_000;
        match &mut self.way {
            Way::Silent => {}
            Way::Live(in_place) => in_place.draw(&frame(record, seconds))?,
            Way::Snapshots(printed) => {
                let due = (1..=SNAPSHOTS).rev().find(|&number| {
                    record.now_ns() >= length_ns * u64::from(number) / u64::from(SNAPSHOTS)
                });
                if let Some(due) = due.filter(|due| due > printed) {
                    *printed = due;
                    frame(record, seconds)
                        .iter()
                        .try_for_each(|line| output::line(line))?;
                }
            }
        }
        Ok(())
    }
}

fn frame(record: &Record, seconds: u32) -> Vec<String> {
    let mut table = Table::new(&[
        ("PROGRAM", Side::Left),
        ("TICKETS", Side::Right),
        ("SPECIFIED", Side::Right),
        ("RECEIVED", Side::Right),
        ("ERROR", Side::Right),
        ("", Side::Left),
    ]);
    for program in record.now() {
        table.row(vec![
            program.name.to_owned(),
            program.tickets.to_string(),
            output::percent(program.specified_share),
            output::percent(program.received_share),
            output::quanta(program.error_quanta),
            share_bar(program.received_share, program.specified_share, BAR_COLUMNS),
        ]);
    }
    let mut lines = table.lines(None);
    lines.push(format!(
        "{:.1} of {seconds} s; received over the last second; error in quanta since the start",
        record.now_ns() as f64 / 1e9
    ));
    lines.push(String::new());
    lines
}

/// The printed results.
pub fn summary(summary: &Summary) -> Vec<String> {
    let mut table = Table::new(&[
        ("TICKETS", Side::Left),
        ("PROGRAM", Side::Left),
        ("SPECIFIED", Side::Right),
        ("RECEIVED", Side::Right),
        ("CPU TIME", Side::Right),
        ("ERROR", Side::Right),
    ]);
    for phase in &summary.phases {
        for (place, program) in phase.programs.iter().enumerate() {
            table.row(vec![
                if place == 0 {
                    tickets(phase)
                } else {
                    String::new()
                },
                program.name.to_owned(),
                output::percent(program.specified_share),
                output::percent(program.received_share),
                output::seconds(program.received_ns),
                output::quanta(program.error_quanta),
            ]);
        }
    }
    let programs = || summary.phases.iter().flat_map(|phase| &phase.programs);
    let largest = programs()
        .map(|program| program.error_quanta.abs())
        .fold(0.0, f64::max);
    let mut lines = vec!["Summary:".to_owned()];
    lines.extend(table.lines(None));
    lines.push(format!(
        "Largest error {largest:.1} quanta of {} ms. The {} engine (mechanism {}) used {:.2} % of one CPU, and is gone.",
        summary.quantum_ns as f64 / 1e6,
        summary.engine,
        summary.mechanism,
        summary.daemon_cpu_share * 100.0
    ));
    let least = summary
        .phases
        .iter()
        .map(|phase| phase.cpu_share)
        .fold(1.0, f64::min);
    if least < QUIET {
        lines.push(format!(
            "Other programs were busy and left {:.0} % of the CPU: tickets divide what is left.",
            least * 100.0
        ));
    }
    lines.push(
        "Next: prorata run -t 300 -- COMMAND, and prorata ps; prorata --help lists the rest."
            .to_owned(),
    );
    lines
}

/// Such as `3:2:1`.
fn tickets(phase: &Phase) -> String {
    let each: Vec<String> = phase
        .programs
        .iter()
        .map(|program| program.tickets.to_string())
        .collect();
    each.join(":")
}
