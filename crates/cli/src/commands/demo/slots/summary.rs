//! The results of the demo, and which promises of slots held.

use prorata_load::controller::ControllerReport;
use prorata_load::gang::GangReport;
use prorata_load::{Doing, Segment};
use prorata_protocol::slots::SlotsReport;
use prorata_report::slot_table::SlotTable;
use serde::Serialize;

use super::part::Part;
use super::players::{JOBS, WORK};
use super::{COLUMNS, SLOT_NS};

/// The gang passes so many times the barriers that it passes under plain Linux.
const MORE_BARRIERS: f64 = 2.0;

/// The jobs' ratio is that of their tickets, but for this part.
const RATIO_TOLERANCE: f64 = 0.01;

/// What a part has measured.
pub struct Results {
    /// The time of all CPUs together.
    pub all_ns: u64,
    pub controller: ControllerReport,
    pub gang: GangReport,
    /// CPU time of the jobs of each client.
    pub jobs_ns: [u64; JOBS.len()],
    /// Time that the host of a virtual machine took from the CPUs.
    pub stolen_ns: u64,
    /// The timetable, with slots.
    pub table: Option<SlotTable>,
    /// How the timetable was enforced, with slots.
    pub enforcement: Option<SlotsReport>,
}

impl Results {
    fn others_share(&self) -> f64 {
        let worked = self.controller.periods - self.controller.skipped;
        let controller_ns = worked * WORK.as_nanos() as u64;
        let used_ns = controller_ns + self.gang.cpu_ns + self.jobs_ns.iter().sum::<u64>();
        // The gang's time is from barrier to barrier, so it may end later than the window.
        (1.0 - used_ns as f64 / self.all_ns.max(1) as f64).max(0.0)
    }
}

/// All results, as `--json` prints them.
#[derive(Debug, Serialize)]
pub struct Summary {
    pub cpus: Vec<u32>,
    /// Length of each part, without the time to start.
    pub seconds: u32,
    pub slot_ns: u64,
    /// Slots of a period.
    pub columns: u32,
    pub parts: Vec<Outcome>,
    /// What slots promise.
    pub promises: Vec<Promise>,
}

/// What became of a part.
#[derive(Debug, Serialize)]
pub struct Outcome {
    #[serde(skip)]
    pub part: Part,
    pub name: &'static str,
    /// Why it was left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
    /// Else what was measured.
    #[serde(flatten)]
    pub measured: Option<Measured>,
}

/// What a part has measured, in numbers.
#[derive(Debug, Serialize)]
pub struct Measured {
    /// Periods of the controller, each with a deadline.
    pub deadlines: u64,
    pub missed: u64,
    /// Those of the missed in which the work was not begun.
    pub skipped: u64,
    /// From a deadline to the end of the work; 0 if none was missed.
    pub worst_late_ns: u64,
    pub barriers: u64,
    pub gang_cpu_ns: u64,
    pub barriers_per_cpu_second: f64,
    /// CPU time of the two clients of compile jobs.
    pub jobs_cpu_ns: [u64; JOBS.len()],
    pub jobs_ratio: f64,
    /// What programs other than these used, and the host: a part of the CPUs.
    pub others_share: f64,
    /// Time that the host of a virtual machine took from the CPUs: nothing ran.
    pub stolen_ns: u64,
    /// When the controller's first period began.
    pub origin_ns: u64,
    /// Where and when controller and gang ran, in the middle of the part.
    pub controller_ran: Vec<Segment>,
    pub gang_ran: Vec<Segment>,
    /// What has the slots of each CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<Vec<(u32, Vec<Option<String>>)>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforcement: Option<SlotsReport>,
}

/// A promise of slots.
#[derive(Debug, PartialEq, Serialize)]
pub struct Promise {
    pub promise: &'static str,
    /// What was measured.
    pub found: String,
    pub held: bool,
}

impl Summary {
    pub fn new(cpus: &[u32], seconds: u32) -> Self {
        Self {
            cpus: cpus.to_vec(),
            seconds,
            slot_ns: SLOT_NS,
            columns: COLUMNS,
            parts: Vec::new(),
            promises: Vec::new(),
        }
    }

    pub fn measured(&self, part: Part) -> Option<&Measured> {
        let outcome = self.parts.iter().find(|outcome| outcome.part == part)?;
        outcome.measured.as_ref()
    }

    /// Compares what slots promise with what was measured.
    pub fn judge(&mut self) {
        let both = self.measured(Part::Plain).zip(self.measured(Part::Slots));
        self.promises = both.map_or(Vec::new(), |(plain, slots)| promises(plain, slots).into());
    }

    pub fn all_held(&self) -> bool {
        self.promises.iter().all(|promise| promise.held)
    }
}

fn promises(plain: &Measured, slots: &Measured) -> [Promise; 3] {
    let more = slots.barriers_per_cpu_second / plain.barriers_per_cpu_second;
    let wanted = f64::from(JOBS[0].1) / f64::from(JOBS[1].1);
    let (missed, deadlines) = (slots.missed, slots.deadlines);
    [
        Promise {
            promise: "no deadline is missed",
            found: format!("{missed} of {deadlines} missed"),
            held: missed == 0,
        },
        Promise {
            promise: "the gang passes twice the barriers of plain Linux in a CPU second",
            found: format!("{more:.1} times"),
            held: more >= MORE_BARRIERS,
        },
        Promise {
            promise: "compile jobs share the rest 3:1 within 1 %",
            found: format!("{:.2}:1", slots.jobs_ratio),
            held: (slots.jobs_ratio / wanted - 1.0).abs() <= RATIO_TOLERANCE,
        },
    ]
}

impl Outcome {
    pub fn left_out(part: Part, reason: String) -> Self {
        Self {
            part,
            name: part.name(),
            left_out: Some(reason),
            measured: None,
        }
    }

    pub fn of(part: Part, results: Results) -> Self {
        let others_share = results.others_share();
        let Results {
            controller,
            gang,
            jobs_ns,
            stolen_ns,
            table,
            enforcement,
            ..
        } = results;
        let measured = Measured {
            deadlines: controller.periods,
            missed: controller.missed,
            skipped: controller.skipped,
            worst_late_ns: controller.worst_late_ns,
            barriers: gang.barriers,
            gang_cpu_ns: gang.cpu_ns,
            barriers_per_cpu_second: gang.barriers_per_cpu_second,
            jobs_cpu_ns: jobs_ns,
            jobs_ratio: jobs_ns[0] as f64 / jobs_ns[1] as f64,
            others_share,
            stolen_ns,
            origin_ns: controller.origin_ns,
            controller_ran: controller.segments,
            gang_ran: gang.segments,
            table: table.map(|table| table.rows),
            enforcement,
        };
        Self {
            part,
            name: part.name(),
            left_out: None,
            measured: Some(measured),
        }
    }
}

impl Measured {
    /// What ran where: `c` the controller's work, `g` the gang's, `s` the gang's spinning.
    pub fn marks(&self) -> impl Iterator<Item = (char, &Segment)> {
        let controller = self.controller_ran.iter().map(|segment| ('c', segment));
        let gang = self.gang_ran.iter().map(|segment| match segment.doing {
            Doing::Work => ('g', segment),
            Doing::Spin => ('s', segment),
        });
        controller.chain(gang)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A part without segments.
    pub fn measured(missed: u64, barriers: f64, jobs_ms: [u64; 2]) -> Measured {
        let controller = ControllerReport {
            periods: 500,
            missed,
            skipped: 0,
            worst_late_ns: missed * 1_000_000,
            longest_ns: 0,
            origin_ns: 0,
            segments: Vec::new(),
        };
        let gang = GangReport {
            barriers: barriers as u64,
            cpu_ns: 1_000_000_000,
            barriers_per_cpu_second: barriers,
            segments: Vec::new(),
        };
        let results = Results {
            all_ns: 20_000_000_000,
            controller,
            gang,
            jobs_ns: jobs_ms.map(|ms| ms * 1_000_000),
            stolen_ns: 0,
            table: None,
            enforcement: None,
        };
        Outcome::of(Part::Plain, results).measured.unwrap()
    }

    /// Whether each promise holds.
    fn held(missed: u64, barriers: f64, jobs_ms: [u64; 2]) -> [bool; 3] {
        let plain = measured(490, 400.0, [1000, 1000]);
        promises(&plain, &measured(missed, barriers, jobs_ms)).map(|promise| promise.held)
    }

    #[test]
    fn what_these_programs_did_not_use_others_did() {
        // 500 times 4 ms, a second of the gang and 7 s of jobs are half of 20 s.
        assert_eq!(measured(0, 900.0, [6000, 1000]).others_share, 0.5);
        assert_eq!(measured(0, 900.0, [60_000, 1000]).others_share, 0.0);
    }

    #[test]
    fn each_promise_is_judged_at_its_edge() {
        assert_eq!(held(0, 800.0, [3000, 1000]), [true, true, true]);
        assert_eq!(held(1, 799.0, [3031, 1000]), [false, false, false]);
        assert_eq!(held(0, 801.0, [3029, 1000]), [true, true, true]);
        assert_eq!(held(0, 801.0, [2969, 1000]), [true, true, false]);
    }

    #[test]
    fn a_part_that_was_left_out_says_why_and_breaks_no_promise() {
        let mut summary = Summary::new(&[0, 1], 10);
        let left_out = Outcome::left_out(Part::Nice, "nice -20 needs root".into());
        summary.parts.push(left_out);
        summary.judge();
        assert!(summary.all_held());
        let json = serde_json::to_value(&summary).unwrap();
        let part = &json["parts"][0];
        assert_eq!(part["left_out"], "nice -20 needs root");
        assert!(part.get("missed").is_none(), "{part}");
    }

    #[test]
    fn all_parts_that_ran_have_the_same_names_of_numbers() {
        let mut summary = Summary::new(&[0, 1], 10);
        let of = |part: Part, measured| Outcome {
            part,
            name: part.name(),
            left_out: None,
            measured: Some(measured),
        };
        summary
            .parts
            .push(of(Part::Plain, measured(490, 400.0, [1000, 1000])));
        summary
            .parts
            .push(of(Part::Slots, measured(2, 900.0, [3000, 1000])));
        summary.judge();
        assert!(!summary.all_held(), "two deadlines were missed");
        let json = serde_json::to_value(&summary).unwrap();
        for part in 0..2 {
            for name in [
                "deadlines",
                "missed",
                "worst_late_ns",
                "barriers_per_cpu_second",
                "jobs_ratio",
            ] {
                assert!(json["parts"][part][name].is_number(), "{part} {name}");
            }
        }
        assert_eq!(json["promises"][0]["found"], "2 of 500 missed");
    }
}
