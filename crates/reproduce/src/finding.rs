//! What an experiment finds: numbers and drawings.

use prorata_report::chart::Chart;

use crate::statistics::{Sample, halves, mean, ratio};

/// A number that was measured.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// What it is, in words that expectations repeat.
    pub metric: String,
    /// How much.
    pub value: f64,
    /// The runs of which `value` is the mean, if there are several.
    pub sample: Option<Sample>,
    /// The same by what programs count themselves, where they do.
    pub counted: Option<f64>,
    /// Of both.
    pub unit: &'static str,
}

impl Measured {
    /// A number of one run.
    pub fn new(metric: impl Into<String>, value: f64, unit: &'static str) -> Measured {
        Measured {
            metric: metric.into(),
            value,
            sample: None,
            counted: None,
            unit,
        }
    }

    /// The mean of one number for each run.
    pub fn of_runs(metric: impl Into<String>, values: &[f64], unit: &'static str) -> Measured {
        Measured {
            sample: Sample::of(values),
            ..Measured::new(metric, mean(values), unit)
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

/// What each run has above and below the line of a ratio.
#[derive(Clone, Default, Debug)]
pub struct Pairs {
    above: Vec<f64>,
    below: Vec<f64>,
}

impl Pairs {
    pub fn push(&mut self, (above, below): (f64, f64)) {
        self.above.push(above);
        self.below.push(below);
    }
}

impl FromIterator<(f64, f64)> for Pairs {
    fn from_iter<I: IntoIterator<Item = (f64, f64)>>(pairs: I) -> Pairs {
        let (above, below) = pairs.into_iter().unzip();
        Pairs { above, below }
    }
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

    /// What was found under a name, which most findings of a kind have at the same place; not a
    /// number if nothing was.
    fn value_near(&self, place: usize, metric: &str) -> f64 {
        let near = self.measured.get(place);
        let near = near.filter(|found| found.metric == metric);
        near.map_or_else(|| self.value(metric), |found| found.value)
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
            ..Measured::of_runs(metric, values, unit)
        });
    }

    /// The mean of one number for each run.
    pub fn add_runs(&mut self, metric: impl Into<String>, values: &[f64], unit: &'static str) {
        self.measured.push(Measured::of_runs(metric, values, unit));
    }

    /// The ratio of two sums over runs; of what programs count there may be none.
    pub fn add_ratio(&mut self, metric: impl Into<String>, received: &Pairs, counted: &Pairs) {
        let (value, sample) = ratio(&received.above, &received.below);
        let has_counted = !counted.above.is_empty();
        self.measured.push(Measured {
            sample,
            counted: has_counted.then(|| ratio(&counted.above, &counted.below).0),
            ..Measured::new(metric, value, ": 1")
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
        for (place, measured) in first.measured.iter_mut().enumerate() {
            let found = others
                .iter()
                .map(|run| run.value_near(place, &measured.metric));
            let values: Vec<f64> = std::iter::once(measured.value).chain(found).collect();
            measured.value = mean(&values);
            measured.sample = Sample::of(&values);
        }
        first
    }

    /// Means of several runs, and what `derive` computes from them. The error of a derived
    /// number is how it differs between halves of the runs. A number that some half lacks is none:
    /// without an error an order would be judged by chance.
    pub fn derived(runs: Vec<Findings>, derive: impl Fn(&mut Findings)) -> Findings {
        let of_half = |half: Vec<usize>| {
            let runs = half.into_iter().map(|run| Findings {
                measured: runs[run].measured.clone(),
                drawings: Vec::new(),
            });
            let mut findings = Findings::of_runs(runs.collect());
            derive(&mut findings);
            findings
        };
        let count = runs.len();
        let halves: Vec<Findings> = halves(count).into_iter().map(of_half).collect();
        let mut findings = Findings::of_runs(runs);
        let averaged = findings.measured.len();
        derive(&mut findings);
        for (place, measured) in findings.measured.iter_mut().enumerate().skip(averaged) {
            let values = halves
                .iter()
                .map(|half| half.value_near(place, &measured.metric));
            measured.sample = Sample::of_halves(&values.collect::<Vec<_>>(), count);
            if count > 1 && measured.sample.is_none() {
                measured.value = f64::NAN;
            }
        }
        findings
    }

    /// Gives each number the error of the jackknife. `without` has the same numbers as they are
    /// without each batch of what was drawn in turn.
    pub fn set_errors_of_jackknife(&mut self, without: &[Findings]) {
        for measured in &mut self.measured {
            let values = without
                .iter()
                .map(|findings| findings.value(&measured.metric));
            measured.sample = Sample::of_jackknife(&values.collect::<Vec<_>>());
        }
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

    /// Half of four runs is one of six pairs, and two hundred draws have all of them.
    #[test]
    fn derived_numbers_have_the_errors_that_halves_show() {
        let runs = [1.0, 2.0, 4.0, 9.0].map(|value| run(&[("hold", value)]));
        let derive = |findings: &mut Findings| {
            let twice = 2.0 * findings.value("hold");
            findings.add("twice", twice, "");
        };
        let findings = Findings::derived(runs.to_vec(), derive);
        let error = |place: usize| findings.measured[place].sample.expect("four runs").error;
        assert_eq!(findings.value("twice"), 8.0);
        assert!(
            (error(1) / error(0) / 2.0 - 1.0).abs() < 0.1,
            "{findings:?}"
        );
        let alone = Findings::derived(vec![run(&[("hold", 1.0)])], derive);
        assert_eq!(alone.measured[1].sample, None, "one run has no error");
    }

    /// Of four runs one has an event, so half of the halves lack it.
    #[test]
    fn a_derived_number_that_some_half_lacks_is_none() {
        let runs = [0.0, 0.0, 0.0, 4.0].map(|value| run(&[("events", value)]));
        let derived = Findings::derived(runs.to_vec(), |findings| {
            findings.add("time for an event", 1.0 / findings.value("events"), "");
        });
        let found = &derived.measured[1];
        assert!(found.value.is_nan() && found.sample.is_none(), "{found:?}");
    }

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
            found.map(|found| (found.value, found.sample.map(|sample| sample.deviation)))
        };
        assert_eq!(found("hold"), Some((2.0, Some(2.0f64.sqrt()))));
        assert_eq!(found("hold over wait"), Some((6.0, Some(8.0f64.sqrt()))));
        assert_eq!(found("more"), None);
        assert_eq!(Findings::of_runs(vec![one.clone()]), one);
        let all = Findings::of_runs(vec![one, run(&[("hold", 3.0)])]);
        assert!(
            all.value("hold over wait").is_nan(),
            "one run did not find it"
        );
    }
}
