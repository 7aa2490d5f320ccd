//! The printed results.

use anyhow::Result;
use prorata_report::slot_table::SlotTable;
use prorata_report::table::{Side, Table};
use prorata_report::timeline::{Stretch, Timeline};

use super::house::RAISE;
use super::part::Part;
use super::players::PERIOD;
use super::summary::{Measured, Summary};
use crate::args::values::CpuList;
use crate::output;

/// Periods that a timeline shows.
const PERIODS: u64 = 3;

/// The time that a letter of a timeline stands for.
const CELL_NS: u64 = 1_000_000;

/// Columns of a table that is not cut.
const WIDTH: usize = 100;

/// What the columns mean, and how Linux was asked for the same.
const LEGEND: [&str; 6] = [
    "LATEST    from a deadline to the end of the work",
    "BARRIERS  that the gang passed in a second of its CPU time; 1000 is the most with 2 threads",
    "JOBS      CPU time of the two clients; with nice and SCHED_DEADLINE the second one has nice 5",
    "OTHERS    part of the CPUs that other programs used, or the host of this virtual machine",
    "STOLEN    time in which that host ran something else, and nothing here",
    "SCHED_DEADLINE gives the controller 5 of 20 ms, and each thread of the gang 10 of 20 ms.",
];

const SPARE: &str = "The controller's slot on the second CPU is spare: jobs run there unless its own slot was too short.";

const WEAKER: &str = "Without CAP_SYS_NICE or RLIMIT_RTPRIO slots hold against other clients only, not against other programs.";

pub fn introduction(cpus: &[u32], seconds: u32) -> Result<()> {
    let list = CpuList(cpus.to_vec());
    let (threads, jobs) = (cpus.len(), 6 * cpus.len());
    let lines = [
        format!("On CPUs {list}, {seconds} s in each part:"),
        "  controller    4 ms of work in every 20 ms, a deadline at their end".to_owned(),
        format!(
            "  gang          {threads} threads that spin at a barrier after each 0.5 ms of work"
        ),
        format!("  compile jobs  {jobs}, in two clients with tickets 3:1"),
        String::new(),
    ];
    lines.iter().try_for_each(|line| output::line(line))
}

pub fn summary(summary: &Summary) -> Vec<String> {
    let mut lines = numbers(summary).lines(None);
    lines.extend(LEGEND.map(str::to_owned));
    for outcome in &summary.parts {
        if let Some(reason) = &outcome.left_out {
            lines.push(format!("Left out: {reason}"));
        }
    }
    if let Some(slots) = summary.measured(Part::Slots) {
        lines.extend(timetable(slots));
    }
    lines.push(String::new());
    lines.push(
        "Timelines in ms: c controller, g gang at work, s gang spinning in vain, . jobs and all else"
            .to_owned(),
    );
    for outcome in &summary.parts {
        if let Some(measured) = &outcome.measured {
            lines.push(outcome.name.to_owned());
            lines.extend(timeline(&summary.cpus, measured));
        }
    }
    lines.push(String::new());
    for promise in &summary.promises {
        let held = match promise.held {
            true => "held",
            false => "NOT HELD",
        };
        lines.push(format!("{held}: {} ({})", promise.promise, promise.found));
    }
    lines
}

fn numbers(summary: &Summary) -> Table {
    let mut table = Table::new(&[
        ("", Side::Left),
        ("DEADLINES MISSED", Side::Right),
        ("LATEST", Side::Right),
        ("BARRIERS", Side::Right),
        ("JOBS", Side::Right),
        ("OTHERS", Side::Right),
        ("STOLEN", Side::Right),
    ]);
    for outcome in &summary.parts {
        let mut row = vec![outcome.name.to_owned()];
        row.extend(match &outcome.measured {
            None => ["left out", "-", "-", "-", "-", "-"].map(str::to_owned),
            Some(measured) => [
                format!("{} of {}", measured.missed, measured.deadlines),
                format!("{:.1} ms", measured.worst_late_ns as f64 / 1e6),
                format!("{:.0}", measured.barriers_per_cpu_second),
                format!("{:.2}:1", measured.jobs_ratio),
                output::percent(measured.others_share),
                output::milliseconds(measured.stolen_ns),
            ],
        });
        table.row(row);
    }
    table
}

/// The table of slots, how it was enforced, and what that does not hold against.
fn timetable(slots: &Measured) -> Vec<String> {
    let Some((rows, report)) = slots.table.clone().zip(slots.enforcement.as_ref()) else {
        return Vec::new();
    };
    let length = output::milliseconds(report.slot_ns);
    let mechanism = report.mechanism.as_deref().unwrap_or("none");
    let mut lines = vec![
        String::new(),
        format!("The timetable: slots of {length}, enforced by: {mechanism}"),
    ];
    lines.extend(SlotTable { first: 0, rows }.lines(WIDTH));
    lines.push(match mechanism {
        RAISE => SPARE.to_owned(),
        _ => WEAKER.to_owned(),
    });
    lines.extend(report.trouble.clone());
    lines
}

/// Some periods in the middle of a part, from the beginning of one of the controller's.
fn timeline(cpus: &[u32], measured: &Measured) -> Vec<String> {
    let period_ns = PERIOD.as_nanos() as u64;
    let first = measured.marks().map(|(_, segment)| segment.from_ns).min();
    let first_ns = first.unwrap_or(0);
    let passed = first_ns
        .saturating_sub(measured.origin_ns)
        .div_ceil(period_ns);
    let timeline = Timeline {
        from_ns: measured.origin_ns + passed * period_ns,
        cell_ns: CELL_NS,
        cells: (PERIODS * period_ns / CELL_NS) as usize,
        cpus: cpus.to_vec(),
    };
    let stretches = measured.marks().map(|(mark, segment)| Stretch {
        cpu: segment.cpu,
        mark,
        from_ns: segment.from_ns,
        to_ns: segment.to_ns,
    });
    timeline.lines(&stretches.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use prorata_load::{Doing, Segment};

    use super::super::summary::Outcome;
    use super::super::summary::tests::measured;
    use super::*;

    const MS: u64 = 1_000_000;

    fn segment(cpu: u32, doing: Doing, from_ms: u64, to_ms: u64) -> Segment {
        Segment {
            cpu,
            doing,
            from_ns: from_ms * MS,
            to_ns: to_ms * MS,
        }
    }

    fn outcome(part: Part, measured: Measured) -> Outcome {
        Outcome {
            part,
            name: part.name(),
            left_out: None,
            measured: Some(measured),
        }
    }

    #[test]
    fn a_timeline_begins_with_a_period_of_the_controller() {
        let mut part = measured(0, 900.0, [3, 1]);
        part.origin_ns = 5 * MS;
        part.controller_ran = vec![
            segment(0, Doing::Work, 25, 29),
            segment(0, Doing::Work, 45, 49),
        ];
        part.gang_ran = vec![
            segment(0, Doing::Work, 21, 24),
            segment(1, Doing::Work, 30, 34),
            segment(1, Doing::Spin, 34, 36),
        ];
        let lines = timeline(&[0, 1], &part);
        assert!(
            lines[1].starts_with("CPU 0  cccc................cccc"),
            "{lines:?}"
        );
        assert!(
            lines[2].starts_with("CPU 1  .....ggggss........."),
            "{lines:?}"
        );
        assert_eq!(lines[2].len(), "CPU 1  ".len() + 60);
    }

    #[test]
    fn what_was_left_out_and_what_did_not_hold_is_named() {
        let mut all = Summary::new(&[0, 1], 10);
        all.parts
            .push(outcome(Part::Plain, measured(490, 400.0, [1000, 1000])));
        all.parts
            .push(Outcome::left_out(Part::Nice, "it needs root".into()));
        let mut slots = measured(2, 900.0, [3000, 1000]);
        slots.table = Some(vec![(0, vec![Some("controller".into()), None])]);
        all.parts.push(outcome(Part::Slots, slots));
        all.judge();
        let text = summary(&all).join("\n");
        for wanted in [
            "plain Linux        490 of 500",
            "nice -20             left out",
            "Left out: it needs root",
            "NOT HELD: no deadline is missed (2 of 500 missed)",
            "held: compile jobs share the rest 3:1 within 1 % (3.00:1)",
        ] {
            assert!(text.contains(wanted), "no {wanted:?} in\n{text}");
        }
    }
}
