//! What a paper says of an experiment, and whether it came out.

use serde::{Deserialize, Serialize};

use crate::finding::Measured;

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
    /// The paper does not say so: we do, past it.
    #[serde(rename = "ours, past the paper")]
    Beyond,
    /// The paper prints it, and it is worked out from numbers that the paper prints beside it.
    /// This checks the paper and reproduces nothing.
    #[serde(rename = "check of the paper")]
    Check,
}

impl Source {
    /// As scenario files write it.
    pub fn words(self) -> &'static str {
        match self {
            Source::Printed => "printed",
            Source::Plot => "read from the plot",
            Source::Law => "follows from the law",
            Source::Middle => "middle of a printed range",
            Source::Text => "said in the text",
            Source::Beyond => "ours, past the paper",
            Source::Check => "check of the paper",
        }
    }
}

/// A difference that is understood: ours is what it should be, and is not the
/// paper's number.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Differs {
    /// Ours, to four digits behind the point. Any other number fails.
    pub ours: f64,
    /// Why it is not the paper's.
    pub because: String,
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
    /// Standard deviation of ours over several runs, where there were some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<f64>,
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
    /// Whether `measured` depends on how fast this machine is at this moment,
    /// so that it differs from run to run.
    #[serde(skip)]
    pub is_timed: bool,
}

/// Half of the last digit of a number that is written with four of them.
const FOUR_DIGITS: f64 = 0.00005;

impl Expectation {
    pub fn judge(&self, measured: &Measured) -> Metric {
        let distance = measured.value - self.paper;
        let is_number = measured.value.is_finite();
        // Sums of decimal fractions must not decide at the very edge.
        let tolerance = self.tolerance + 1e-9 * self.paper.abs().max(1.0);
        let keeps_to_rule = match self.rule {
            Rule::Within => distance.abs() <= tolerance,
            Rule::AtMost => distance <= tolerance,
            Rule::AtLeast => distance >= -tolerance,
        };
        let ok = keeps_to_rule && is_number;
        let known = self
            .differs
            .as_ref()
            .filter(|known| !ok && (measured.value - known.ours).abs() <= FOUR_DIGITS);
        let verdict = match (ok, known) {
            (true, _) => Verdict::Reproduced,
            (false, Some(_)) => Verdict::Differs,
            (false, None) => Verdict::Failed,
        };
        Metric {
            metric: self.metric.clone(),
            paper: self.paper,
            measured: measured.value,
            spread: measured.spread,
            counted: measured.counted,
            unit: measured.unit,
            tolerance: self.tolerance,
            rule: self.rule,
            verdict,
            headline: self.headline,
            source: self.source,
            why: self.why.clone(),
            differs: known.map(|known| known.because.clone()),
            is_timed: measured.is_timed,
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
            headline: false,
            differs: None,
        }
    }

    #[test]
    fn a_known_difference_is_one_number_and_no_other() {
        let expectation = Expectation {
            differs: Some(Differs {
                ours: 3.0,
                because: "of us".into(),
            }),
            ..expectation(Rule::Within)
        };
        for (value, verdict) in [
            (2.1, Verdict::Reproduced),
            (3.0, Verdict::Differs),
            (3.0001, Verdict::Failed),
            (f64::NAN, Verdict::Failed),
        ] {
            let metric = expectation.judge(&Measured::new("ratio", value, ""));
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
            let metric = expectation(rule).judge(&Measured::new("ratio", value, ""));
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
}
