//! What a paper says of an experiment, and whether it came out.

use serde::{Deserialize, Serialize};

use crate::finding::Measured;
use crate::statistics::Sample;

/// Where a paper's number is from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub enum Source {
    /// It is printed as it stands.
    #[serde(rename = "printed")]
    Printed,
    /// It was read from a drawing.
    #[serde(rename = "read from the plot")]
    Plot,
    /// The paper prints a law, a rule or a ratio, from which we worked it out.
    #[serde(rename = "follows from the law")]
    Law,
    /// The paper prints the smallest and the largest of several.
    #[serde(rename = "middle of a printed range")]
    Middle,
    /// The text says so, without a number.
    #[serde(rename = "said in the text")]
    Text,
    /// The paper prints it, and a parameter is fitted to it, so that it tests nothing.
    #[serde(rename = "fitted")]
    Fitted,
    /// The paper does not say so: we do, past it.
    #[serde(rename = "ours, past the paper")]
    Beyond,
    /// The paper prints it, and it is worked out from numbers that the paper prints beside it.
    /// This checks the paper and reproduces nothing.
    #[serde(rename = "check of the paper")]
    Check,
}

/// What a number says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Whether we reproduce the paper.
    Number,
    /// How well parameters fit.
    Fit,
    /// Whether the paper is right about its own numbers.
    Check,
    /// What we claim past the paper.
    Beyond,
}

impl Source {
    /// All of them.
    pub const ALL: [Source; 8] = [
        Source::Printed,
        Source::Plot,
        Source::Law,
        Source::Middle,
        Source::Text,
        Source::Fitted,
        Source::Beyond,
        Source::Check,
    ];

    /// What a number from here says.
    pub fn kind(self) -> Kind {
        match self {
            Source::Fitted => Kind::Fit,
            Source::Check => Kind::Check,
            Source::Beyond => Kind::Beyond,
            _ => Kind::Number,
        }
    }

    /// As scenario files write it.
    pub fn words(self) -> &'static str {
        match self {
            Source::Printed => "printed",
            Source::Plot => "read from the plot",
            Source::Law => "follows from the law",
            Source::Middle => "middle of a printed range",
            Source::Text => "said in the text",
            Source::Fitted => "fitted",
            Source::Beyond => "ours, past the paper",
            Source::Check => "check of the paper",
        }
    }
}

/// A known difference: ours is not the paper's number, and the file says why, or that the reason
/// is open.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Differs {
    /// Ours, to four digits behind the point. Any other number fails. Where only processes show it, ours
    /// on one machine: a clock has other digits each time.
    pub ours: f64,
    /// Why it is not the paper's.
    pub because: String,
    /// Whether the reason is open, in whole or in its main part.
    #[serde(default)]
    pub unexplained: bool,
}

/// The verdict on a number, on a figure or on a paper. The greater one is the worse.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Ours is the paper's, within the tolerance.
    Reproduced,
    /// Ours is not the paper's, and the scenario file states ours and the reason.
    Differs,
    /// Ours is neither the paper's nor the stated one.
    Failed,
}

impl Verdict {
    /// For tables.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Reproduced => "reproduced",
            Verdict::Differs => "differs",
            Verdict::Failed => "FAILED",
        }
    }
}

/// How a number must compare with the paper's.
#[derive(
    Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// No further from it than the tolerance.
    #[default]
    Within,
    /// No greater, but for the tolerance.
    AtMost,
    /// No smaller, but for the tolerance.
    AtLeast,
    /// Equal in the mean: the paper's number is a law without chance of its own, and lies in the
    /// interval of 99.9 % around the mean of ours, of at least ten runs. At 95 % one in twenty
    /// laws would fail.
    Law,
    /// One of ours: the paper's number is of one run, and no further from the mean of ours than
    /// two standard deviations of a run, of at least ten runs. More runs do not widen that.
    Draw,
    /// Greater: the interval of ours lies above the paper's number.
    Above,
    /// Smaller: the interval of ours lies below the paper's number.
    Below,
}

/// A number that a paper gives, as scenario files write it.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Expectation {
    /// What was measured, in the experiment's own words.
    pub metric: String,
    /// The number.
    pub paper: f64,
    /// How far off ours may be.
    #[serde(default)]
    pub tolerance: f64,
    /// In which direction.
    #[serde(default)]
    pub rule: Rule,
    /// Where the number is from.
    pub source: Source,
    /// Where it stands, and why the tolerance is what it is.
    pub why: String,
    /// Whether it is measured only in full.
    #[serde(default)]
    pub in_full: bool,
    /// Whether only real processes can show it.
    #[serde(default)]
    pub on_processes: bool,
    /// Whether the paper's conclusions rest on it.
    #[serde(default)]
    pub headline: bool,
    /// If ours is known to be another.
    pub differs: Option<Differs>,
}

/// A paper's number, ours, and the verdict.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Metric {
    /// What was measured.
    pub metric: String,
    /// The paper's number.
    pub paper: f64,
    /// Ours; on processes by their CPU clocks.
    pub measured: f64,
    /// Of ours over several runs, where there were some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<Sample>,
    /// The interval that holds the mean of ours in 95 % of cases, where there were runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// The same by what the processes counted, where they did. No verdict goes
    /// by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted: Option<f64>,
    /// Of all these, and of the tolerance.
    pub unit: &'static str,
    /// How far off ours may be.
    pub tolerance: f64,
    /// In which direction.
    pub rule: Rule,
    /// Whether ours is the paper's.
    pub verdict: Verdict,
    /// Whether the paper's conclusions rest on it.
    pub headline: bool,
    /// Where the paper's number is from.
    pub source: Source,
    /// Where it stands, and why the tolerance is what it is.
    pub why: String,
    /// Why it differs, where that is the verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub differs: Option<String>,
    /// Whether it differs and the reason is open.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unexplained: bool,
}

impl Metric {
    /// Where the number is from, and whether it is a headline, for tables.
    pub fn origin(&self) -> String {
        let headline = if self.headline { ", headline" } else { "" };
        format!("{}{headline}", self.source.words())
    }

    /// Whether other seeds may well lead to another verdict: a limit of the rule lies within
    /// the interval of 99.9 % around ours. Laws and draws have levels of their own.
    pub fn is_close(&self) -> bool {
        let Some(sample) = self.sample else {
            return false;
        };
        let (low, high) = (self.paper - self.tolerance, self.paper + self.tolerance);
        let limits = match self.rule {
            Rule::Within => vec![low, high],
            Rule::AtMost => vec![high],
            Rule::AtLeast => vec![low],
            Rule::Above => vec![high + sample.margin()],
            Rule::Below => vec![low - sample.margin()],
            Rule::Law | Rule::Draw => Vec::new(),
        };
        let is_near = |limit: &f64| (self.measured - limit).abs() <= sample.wide_margin();
        limits.iter().any(is_near)
    }
}

/// Fewer runs say too little of how far their mean may be off.
const LEAST_RUNS: usize = 10;

/// Half of the last digit of a number that is written with four of them. The last bits of a
/// decimal fraction must not decide at the very edge.
const FOUR_DIGITS: f64 = 0.00005 + 1e-9;

/// Which seeds the runs had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seeds {
    /// That of the scenario file, for which it states differences to the digit.
    OfTheFile,
    /// Others.
    Others,
}

impl Expectation {
    /// How far off ours may be, which of one draw is a matter of how ours spread.
    fn tolerance_of(&self, measured: &Measured) -> f64 {
        let enough = measured.sample.filter(|sample| sample.runs >= LEAST_RUNS);
        match self.rule {
            Rule::Draw => self.tolerance + enough.map_or(0.0, |sample| 2.0 * sample.deviation),
            _ => self.tolerance,
        }
    }

    /// Whether a number keeps to the rule. The tolerance is the paper's own spread. The margin
    /// is that of the mean of ours. It counts only where the paper's number has no spread: at a
    /// law, for us; at an order, against us.
    fn is_reproduced_by(&self, measured: &Measured) -> bool {
        let distance = measured.value - self.paper;
        // Sums of decimal fractions must not decide at the very edge.
        let tolerance = self.tolerance_of(measured) + 1e-9 * self.paper.abs().max(1.0);
        let margin = measured.sample.map_or(0.0, Sample::margin);
        let of_law = measured.sample.filter(|sample| sample.runs >= LEAST_RUNS);
        let keeps_to_rule = match self.rule {
            Rule::Within | Rule::Draw => distance.abs() <= tolerance,
            Rule::AtMost => distance <= tolerance,
            Rule::AtLeast => distance >= -tolerance,
            Rule::Law => distance.abs() <= tolerance + of_law.map_or(0.0, Sample::wide_margin),
            Rule::Above => distance - margin > tolerance,
            Rule::Below => distance + margin < -tolerance,
        };
        keeps_to_rule && measured.value.is_finite()
    }

    /// The verdict on a number. `seeds` says whether the runs had the scenario file's own seed:
    /// then a difference is known by its digits, else by its reason alone.
    pub fn judge(&self, measured: &Measured, seeds: Seeds) -> Metric {
        let reproduced = self.is_reproduced_by(measured);
        let is_known = |known: &&Differs| match seeds {
            Seeds::OfTheFile if !self.on_processes => {
                (measured.value - known.ours).abs() <= FOUR_DIGITS
            }
            _ => measured.value.is_finite(),
        };
        let known = self.differs.as_ref();
        let known = known.filter(|known| !reproduced && is_known(known));
        let verdict = match (reproduced, known) {
            (true, _) => Verdict::Reproduced,
            (false, Some(_)) => Verdict::Differs,
            (false, None) => Verdict::Failed,
        };
        Metric {
            metric: self.metric.clone(),
            paper: self.paper,
            measured: measured.value,
            sample: measured.sample,
            interval: measured.sample.map(|sample| {
                [
                    measured.value - sample.margin(),
                    measured.value + sample.margin(),
                ]
            }),
            counted: measured.counted,
            unit: measured.unit,
            tolerance: self.tolerance_of(measured),
            rule: self.rule,
            verdict,
            headline: self.headline,
            source: self.source,
            why: self.why.clone(),
            differs: known.map(|known| known.because.clone()),
            unexplained: known.is_some_and(|known| known.unexplained),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expectation(rule: Rule) -> Expectation {
        Expectation {
            metric: "ratio".into(),
            paper: 2.0,
            tolerance: 0.1,
            rule,
            source: Source::Printed,
            why: "here".into(),
            in_full: false,
            on_processes: false,
            headline: false,
            differs: None,
        }
    }

    /// Ten runs with a standard error of 0.01: intervals of 0.0226 and 0.0478.
    #[test]
    fn a_verdict_is_close_if_its_limit_lies_in_the_interval_of_ours() {
        let sample = Sample {
            runs: 10,
            deviation: 0.01 * 10.0f64.sqrt(),
            error: 0.01,
        };
        let is_close = |rule, value| {
            let mut measured = Measured::new("ratio", value, "");
            measured.sample = Some(sample);
            let metric = expectation(rule).judge(&measured, Seeds::Others);
            metric.is_close()
        };
        for (rule, near, far) in [
            (Rule::Within, [1.86, 1.94, 2.06, 2.14], [1.84, 2.0, 2.16]),
            (Rule::AtMost, [2.06, 2.08, 2.12, 2.14], [2.04, 2.16, 1.9]),
            (Rule::AtLeast, [1.86, 1.88, 1.92, 1.94], [1.84, 1.96, 2.1]),
            (Rule::Above, [2.09, 2.1, 2.15, 2.16], [2.06, 2.18, 1.9]),
            (Rule::Below, [1.84, 1.85, 1.9, 1.91], [1.82, 1.94, 2.1]),
        ] {
            for value in near {
                assert!(is_close(rule, value), "{rule:?}: {value}");
            }
            for value in far {
                assert!(!is_close(rule, value), "{rule:?}: {value}");
            }
        }
        let without =
            expectation(Rule::Within).judge(&Measured::new("ratio", 2.1, ""), Seeds::Others);
        assert!(!without.is_close());
    }

    #[test]
    fn a_known_difference_of_processes_has_other_digits_each_time() {
        let expectation = Expectation {
            on_processes: true,
            differs: Some(Differs {
                ours: 3.0,
                because: "of us".into(),
                unexplained: false,
            }),
            ..expectation(Rule::AtMost)
        };
        for (value, verdict) in [
            (2.0, Verdict::Reproduced),
            (2.9, Verdict::Differs),
            (f64::NAN, Verdict::Failed),
        ] {
            let metric = expectation.judge(&Measured::new("ratio", value, ""), Seeds::OfTheFile);
            assert_eq!(metric.verdict, verdict, "{value}");
        }
    }

    #[test]
    fn a_known_difference_is_one_number_and_no_other() {
        let expectation = Expectation {
            differs: Some(Differs {
                ours: 3.0,
                because: "of us".into(),
                unexplained: false,
            }),
            ..expectation(Rule::Within)
        };
        for (value, verdict) in [
            (2.1, Verdict::Reproduced),
            (3.0, Verdict::Differs),
            // More than half a digit off by no more than the last bits of a sum may be.
            (3.000_050_000_000_1, Verdict::Differs),
            (2.999_96, Verdict::Differs),
            (3.0001, Verdict::Failed),
            (f64::NAN, Verdict::Failed),
        ] {
            let metric = expectation.judge(&Measured::new("ratio", value, ""), Seeds::OfTheFile);
            assert_eq!(metric.verdict, verdict, "{value}");
            assert_eq!(
                metric.differs.is_some(),
                verdict == Verdict::Differs,
                "{value}"
            );
        }
    }

    #[test]
    fn verdicts_at_the_tolerance_and_past_it() {
        let ok = |rule, value| {
            let metric =
                expectation(rule).judge(&Measured::new("ratio", value, ""), Seeds::OfTheFile);
            metric.verdict == Verdict::Reproduced
        };
        for (value, within, at_most, at_least) in [
            (2.1, true, true, true),
            (2.11, false, false, true),
            (1.9, true, true, true),
            (1.89, false, true, false),
            (f64::NAN, false, false, false),
            (f64::INFINITY, false, false, false),
            (f64::NEG_INFINITY, false, false, false),
        ] {
            assert_eq!(ok(Rule::Within, value), within, "{value}");
            assert_eq!(ok(Rule::AtMost, value), at_most, "{value}");
            assert_eq!(ok(Rule::AtLeast, value), at_least, "{value}");
        }
    }

    /// The mean of some runs.
    fn sampled(value: f64, error: f64, runs: usize) -> Measured {
        Measured {
            sample: Some(Sample {
                runs,
                deviation: error * (runs as f64).sqrt(),
                error,
            }),
            ..Measured::new("ratio", value, "")
        }
    }

    fn reproduced(rule: Rule, tolerance: f64, measured: &Measured) -> bool {
        let expectation = Expectation {
            tolerance,
            ..expectation(rule)
        };
        expectation.judge(measured, Seeds::OfTheFile).verdict == Verdict::Reproduced
    }

    /// The interval of ten runs is 4.78 standard errors wide to either side.
    #[test]
    fn a_law_lies_in_the_interval_of_ours() {
        assert!(reproduced(Rule::Law, 0.0, &sampled(2.46, 0.1, 10)));
        assert!(!reproduced(Rule::Law, 0.0, &sampled(2.5, 0.1, 10)));
        let few = sampled(2.1, 0.1, 9);
        assert!(
            !reproduced(Rule::Law, 0.0, &few),
            "nine runs say too little"
        );
    }

    /// An order needs an interval that excludes equality, and few runs have a wide one.
    #[test]
    fn an_order_excludes_equality() {
        assert!(reproduced(Rule::Above, 0.0, &sampled(2.25, 0.1, 10)));
        assert!(!reproduced(Rule::Above, 0.0, &sampled(2.25, 0.1, 2)));
        assert!(!reproduced(Rule::Above, 0.0, &sampled(2.2, 0.1, 10)));
        assert!(reproduced(Rule::Below, 0.0, &sampled(1.75, 0.1, 10)));
        assert!(!reproduced(Rule::Below, 0.0, &sampled(1.8, 0.1, 10)));
        assert!(!reproduced(
            Rule::Above,
            0.0,
            &Measured::new("ratio", 2.0, "")
        ));
        assert!(reproduced(
            Rule::Above,
            0.0,
            &Measured::new("ratio", 2.01, "")
        ));
    }

    /// Two deviations of a run are 0.63 here, however many runs tell so.
    #[test]
    fn one_draw_of_the_paper_lies_where_ours_do() {
        let runs = |value, runs| sampled(value, 0.316 / f64::from(runs).sqrt(), runs as usize);
        for count in [10, 1_000_u32] {
            assert!(reproduced(Rule::Draw, 0.0, &runs(2.63, count)), "{count}");
            assert!(!reproduced(Rule::Draw, 0.0, &runs(2.64, count)), "{count}");
        }
        assert!(!reproduced(Rule::Draw, 0.0, &runs(2.01, 9)), "too few");
        let expectation = expectation(Rule::Draw);
        let metric = expectation.judge(&runs(2.0, 10), Seeds::OfTheFile);
        assert!(
            (metric.tolerance - (0.1 + 2.0 * 0.316)).abs() < 1e-9,
            "it is shown"
        );
    }

    /// Few runs of ours, with a wide interval, do not stretch the paper's tolerance.
    #[test]
    fn our_margin_does_not_widen_the_papers_spread() {
        assert!(!reproduced(Rule::Within, 0.1, &sampled(2.2, 1.0, 2)));
    }
}
