//! What a paper says of an experiment, and whether it came out.

use serde::{Deserialize, Serialize};

use crate::finding::Measured;

/// Where a paper's number is from.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub enum Source {
    /// It is printed, or follows from what is.
    #[default]
    #[serde(rename = "printed")]
    Printed,
    /// It was read from a drawing.
    #[serde(rename = "read from the plot")]
    Plot,
}

/// How a number must compare with the paper's.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// No further from it than the tolerance.
    #[default]
    Within,
    /// No greater, but for the tolerance.
    AtMost,
}

/// A number that a paper gives, as scenario files write it.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Claim {
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
    #[serde(default)]
    pub source: Source,
    /// Where it stands, and why the tolerance is what it is.
    pub why: String,
}

/// A paper's number, ours, and the verdict.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Metric {
    /// What was measured.
    pub metric: String,
    /// The paper's number.
    pub paper: f64,
    /// Ours.
    pub measured: f64,
    /// Of both, and of the tolerance.
    pub unit: &'static str,
    /// How far off ours may be.
    pub tolerance: f64,
    /// In which direction.
    pub rule: Rule,
    /// Whether it is not.
    pub ok: bool,
    /// Where the paper's number is from.
    pub source: Source,
    /// Where it stands, and why the tolerance is what it is.
    pub why: String,
    /// Whether `measured` depends on how fast this machine is at this moment,
    /// so that it differs from run to run.
    #[serde(skip)]
    pub is_timed: bool,
}

impl Claim {
    /// The verdict on what was measured.
    pub fn judge(&self, measured: &Measured) -> Metric {
        let distance = measured.value - self.paper;
        // Sums of decimal fractions must not decide at the very edge.
        let tolerance = self.tolerance + 1e-9 * self.paper.abs().max(1.0);
        let ok = match self.rule {
            Rule::Within => distance.abs() <= tolerance,
            Rule::AtMost => distance <= tolerance,
        };
        Metric {
            metric: self.metric.clone(),
            paper: self.paper,
            measured: measured.value,
            unit: measured.unit,
            tolerance: self.tolerance,
            rule: self.rule,
            ok,
            source: self.source,
            why: self.why.clone(),
            is_timed: measured.is_timed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(rule: Rule) -> Claim {
        Claim {
            metric: "ratio".into(),
            paper: 2.0,
            tolerance: 0.1,
            rule,
            source: Source::Printed,
            why: "here".into(),
        }
    }

    #[test]
    fn verdicts_at_the_tolerance_and_past_it() {
        let ok = |rule, value| claim(rule).judge(&Measured::new("ratio", value, "")).ok;
        for (value, within, at_most) in [
            (2.1, true, true),
            (2.11, false, false),
            (1.9, true, true),
            (1.89, false, true),
            (f64::NAN, false, false),
        ] {
            assert_eq!(ok(Rule::Within, value), within, "{value}");
            assert_eq!(ok(Rule::AtMost, value), at_most, "{value}");
        }
    }
}
