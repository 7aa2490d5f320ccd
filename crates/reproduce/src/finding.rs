//! What an experiment finds: numbers and drawings.

use prorata_report::chart::Chart;

use crate::statistics::{deviation, mean};

/// A number that was measured.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// What it is, in words that expectations repeat.
    pub metric: String,
    /// How much.
    pub value: f64,
    /// Standard deviation over several runs, of which `value` is the mean.
    pub spread: Option<f64>,
    /// The same by what programs count themselves, where they do.
    pub counted: Option<f64>,
    /// Of both.
    pub unit: &'static str,
    /// Whether the clock of this machine comes into it.
    pub is_timed: bool,
}

impl Measured {
    /// A number in which no clock but the experiment's own comes into play.
    pub fn new(metric: impl Into<String>, value: f64, unit: &'static str) -> Measured {
        Measured {
            metric: metric.into(),
            value,
            spread: None,
            counted: None,
            unit,
            is_timed: false,
        }
    }

    /// A number taken by a real clock.
    pub fn timed(metric: impl Into<String>, value: f64, unit: &'static str) -> Measured {
        Measured {
            is_timed: true,
            ..Measured::new(metric, value, unit)
        }
    }
}

/// A picture as the paper draws it.
#[derive(Clone, PartialEq, Debug)]
pub struct Drawing {
    /// Which of the figure's panels: `a`; empty if it has only one.
    pub panel: String,
    /// A whole SVG document.
    pub svg: String,
}

#[derive(Clone, PartialEq, Default, Debug)]
pub struct Findings {
    pub measured: Vec<Measured>,
    pub drawings: Vec<Drawing>,
}

impl Findings {
    pub fn add(&mut self, metric: impl Into<String>, value: f64, unit: &'static str) {
        self.measured.push(Measured::new(metric, value, unit));
    }

    /// What was found under a name; not a number if nothing was.
    pub fn value(&self, metric: &str) -> f64 {
        let found = self.measured.iter().find(|found| found.metric == metric);
        found.map_or(f64::NAN, |found| found.value)
    }

    /// Means over runs; of what programs count there may be none.
    pub fn add_means(
        &mut self,
        metric: impl Into<String>,
        values: &[f64],
        counted: &[f64],
        unit: &'static str,
    ) {
        self.measured.push(Measured {
            counted: (!counted.is_empty()).then(|| mean(counted)),
            ..Measured::new(metric, mean(values), unit)
        });
    }

    /// Means and deviations of what several runs found, each metric by its
    /// name; drawn is the first. What one of them did not find is not a number.
    pub fn of_runs(runs: Vec<Findings>) -> Findings {
        let mut all = runs.into_iter();
        let mut first = all.next().unwrap_or_default();
        let others: Vec<Findings> = all.collect();
        if others.is_empty() {
            return first;
        }
        for measured in &mut first.measured {
            let found = others.iter().map(|run| run.value(&measured.metric));
            let values: Vec<f64> = std::iter::once(measured.value).chain(found).collect();
            measured.value = mean(&values);
            // None of a quotient by what did not happen in some run.
            measured.spread = Some(deviation(&values)).filter(|spread| spread.is_finite());
        }
        first
    }

    pub fn draw(&mut self, panel: &str, chart: &Chart) {
        self.draw_svg(panel, chart.svg());
    }

    pub fn draw_svg(&mut self, panel: &str, svg: String) {
        let panel = panel.to_owned();
        self.drawings.push(Drawing { panel, svg });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(numbers: &[(&str, f64)]) -> Findings {
        let mut findings = Findings::default();
        for (metric, value) in numbers {
            findings.add(*metric, *value, "");
        }
        findings
    }

    #[test]
    fn runs_are_averaged_by_name() {
        let one = run(&[("hold", 1.0), ("hold over wait", 4.0)]);
        let other = run(&[("more", 9.0), ("hold over wait", 8.0), ("hold", 3.0)]);
        let all = Findings::of_runs(vec![one.clone(), other]);
        let found = |metric: &str| {
            let found = all.measured.iter().find(|found| found.metric == metric);
            found.map(|found| (found.value, found.spread))
        };
        assert_eq!(found("hold"), Some((2.0, Some(1.0))));
        assert_eq!(found("hold over wait"), Some((6.0, Some(2.0))));
        assert_eq!(found("more"), None);
        assert_eq!(Findings::of_runs(vec![one.clone()]), one);
        let all = Findings::of_runs(vec![one, run(&[("hold", 3.0)])]);
        assert!(
            all.value("hold over wait").is_nan(),
            "one run did not find it"
        );
    }
}
