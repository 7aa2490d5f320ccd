//! The numbers of ours that a scenario file states beside its reasons, as lines of its text.
//! Comments and the order of lines stay as they are.

use std::collections::BTreeMap;

use prorata_reproduce::{Metric, Verdict};

/// Before the numbers of a reason.
const NUMBERS: &str = "[reproduces.differences.ours]";

/// Before a reason.
const REASON: &str = "[[reproduces.differences]]";

/// What becomes of a stated number after a run.
#[derive(Clone, PartialEq, Debug)]
pub enum Change {
    /// It has other digits. The reason may still hold.
    Restated { from: f64, to: f64 },
    /// The paper's number comes out now, so its reason has no subject.
    Dropped { from: f64 },
    /// A person has to look first: the number stays as it was, and fails.
    Refused { to: f64, why: &'static str },
}

/// A file after a run.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Restated {
    pub text: String,
    /// By metric.
    pub changes: BTreeMap<String, Change>,
    /// Metrics that fail and have no reason, with our numbers.
    pub without_reason: Vec<(String, f64)>,
}

impl Restated {
    /// Whether a number fails that only a person can mend.
    pub fn needs_a_person(&self) -> bool {
        let refused = |change: &Change| matches!(change, Change::Refused { .. });
        !self.without_reason.is_empty() || self.changes.values().any(refused)
    }
}

/// A line `"metric" = number` below a reason.
fn stated(line: &str) -> Option<(&str, f64)> {
    let (metric, number) = line.strip_prefix('"')?.rsplit_once("\" = ")?;
    Some((metric, number.trim().parse().ok()?))
}

/// How the number on a line changes, by all that the file says of its metric.
fn change(from: f64, of_metric: &[&Metric]) -> Option<Change> {
    let mut missed = of_metric
        .iter()
        .filter(|metric| metric.verdict != Verdict::Reproduced)
        .peekable();
    let to = of_metric.first()?.measured;
    if missed.peek().is_none() {
        return Some(Change::Dropped { from });
    }
    if of_metric.iter().all(|m| m.verdict != Verdict::Failed) {
        return None;
    }
    let why = if !to.is_finite() {
        "it is no number"
    } else if missed.any(|metric| (from > metric.paper) != (to > metric.paper)) {
        "it is on the other side of the paper's now, so its reason may be wrong"
    } else {
        return Some(Change::Restated { from, to });
    };
    Some(Change::Refused { to, why })
}

/// Rewrites the numbers of a scenario file's text by those of a run. A number without a line of
/// its own below a reason gets none.
pub fn restate(text: &str, metrics: &[Metric]) -> Restated {
    let mut restated = Restated::default();
    let mut lines = Vec::new();
    let mut has_reason = Vec::new();
    let mut below_reason = false;
    for line in text.lines() {
        if line.starts_with('[') {
            below_reason = line == NUMBERS;
        }
        let Some((name, from)) = stated(line).filter(|_| below_reason) else {
            lines.push(line.to_owned());
            continue;
        };
        has_reason.push(name);
        let of_metric: Vec<&Metric> = metrics.iter().filter(|m| m.metric == name).collect();
        let change = change(from, &of_metric);
        match &change {
            Some(Change::Restated { to, .. }) => lines.push(format!("\"{name}\" = {to:.4}")),
            Some(Change::Dropped { .. }) => {}
            Some(Change::Refused { .. }) | None => lines.push(line.to_owned()),
        }
        if let Some(change) = change {
            restated.changes.insert(name.to_owned(), change);
        }
    }
    let failed = metrics.iter().filter(|m| m.verdict == Verdict::Failed);
    let without = failed.filter(|metric| !has_reason.contains(&metric.metric.as_str()));
    let named = without.map(|metric| (metric.metric.clone(), metric.measured));
    restated.without_reason = named.collect();
    restated.without_reason.dedup();
    restated.text = without_empty_reasons(&lines);
    restated
}

/// Leaves out reasons that are of no number any more.
fn without_empty_reasons(lines: &[String]) -> String {
    let mut kept = Vec::new();
    let mut rest = lines;
    while let Some((first, after)) = rest.split_first() {
        let block = if first == REASON {
            let begins = |line: &String| line.starts_with('[') && line != NUMBERS;
            1 + after.iter().position(begins).unwrap_or(after.len())
        } else {
            1
        };
        let (these, others) = rest.split_at(block);
        if first != REASON || these.iter().any(|line| stated(line).is_some()) {
            kept.extend_from_slice(these);
        }
        rest = others;
    }
    let text = kept.join("\n");
    format!("{}\n", text.trim_end())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use prorata_reproduce::{Engine, Figure, Settings, reproduce};
    use prorata_scenario::Scenario;

    use super::*;

    /// Stride scheduling without chance: the stride of B is 3.
    const FIGURE: &str = include_str!("../../../../scenarios/1995/figure-2.toml");

    /// The figure, in whose paper the stride of B is another, with the file's reasons.
    fn text(paper: f64, reasons: &str) -> String {
        let printed = "metric = \"stride of B\"\npaper = 3\n";
        assert!(FIGURE.contains(printed), "the test knows the file");
        let other = printed.replace("paper = 3", &format!("paper = {paper}"));
        format!("{}{reasons}", FIGURE.replace(printed, &other))
    }

    fn reason(number: &str) -> String {
        format!("\n{REASON}\nbecause = \"of us\"\n\n{NUMBERS}\n\"stride of B\" = {number}\n")
    }

    fn metrics(text: &str) -> Vec<Metric> {
        let scenario = Scenario::parse(Path::new("figure.toml"), text.to_owned());
        let figure = Figure::new("figure", scenario.expect("a scenario")).expect("a figure");
        let settings = Settings {
            engine: Engine::Sim,
            full: false,
            seed: None,
            beyond: false,
        };
        let reproduction = reproduce(&figure, settings, &mut ()).expect("it runs");
        reproduction.metrics
    }

    fn after_a_run(text: &str) -> Restated {
        restate(text, &metrics(text))
    }

    #[test]
    fn a_failed_number_with_a_reason_gets_its_new_digits() {
        let restated = after_a_run(&text(4.0, &reason("2.5000")));
        assert_eq!(restated.text, text(4.0, &reason("3.0000")));
        assert!(!restated.needs_a_person());
        let again = after_a_run(&restated.text);
        assert_eq!((again.text, again.changes.len()), (restated.text, 0));
    }

    #[test]
    fn a_failed_number_without_a_reason_stays_failed() {
        let text = text(4.0, "");
        let restated = after_a_run(&text);
        assert_eq!(restated.text, text);
        assert_eq!(restated.without_reason, [("stride of B".to_owned(), 3.0)]);
        assert!(restated.needs_a_person());
    }

    #[test]
    fn a_number_on_the_other_side_of_the_papers_stays_failed() {
        let text = text(4.0, &reason("4.5000"));
        let restated = after_a_run(&text);
        assert_eq!(restated.text, text);
        assert!(restated.needs_a_person());
    }

    #[test]
    fn a_number_that_is_no_number_stays_failed() {
        let text = text(4.0, &reason("2.5000"));
        let mut metrics = metrics(&text);
        for metric in &mut metrics {
            metric.measured = f64::NAN;
        }
        let restated = restate(&text, &metrics);
        assert_eq!(restated.text, text);
        assert!(restated.needs_a_person());
    }

    /// A reason that stayed would excuse the number when it fails again.
    #[test]
    fn the_reason_of_a_reproduced_number_is_dropped() {
        let restated = after_a_run(&text(3.0, &reason("2.5000")));
        assert_eq!(restated.text, FIGURE);
        assert!(!restated.needs_a_person());
        // The other number of that reason is not measured.
        let both = text(3.0, &reason("2.5000")) + "\"advance\" = 9.0000\n";
        let kept = restate(&both, &metrics(FIGURE));
        assert!(kept.text.contains("of us"), "it is of another number, too");
    }

    /// Numbers that only longer runs measure keep what is stated of them.
    #[test]
    fn a_number_that_was_not_measured_stays_as_it_is() {
        let text = text(4.0, &reason("2.5000"));
        let restated = restate(&text, &[]);
        assert_eq!((restated.text, restated.changes.len()), (text, 0));
    }
}
