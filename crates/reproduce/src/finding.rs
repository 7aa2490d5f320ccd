//! What an experiment finds: numbers and drawings.

use prorata_report::chart::Chart;

use crate::statistics::mean;

/// A number that was measured.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// What it is, in words that claims repeat.
    pub metric: String,
    /// How much.
    pub value: f64,
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

/// All that an experiment finds.
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

    pub fn draw(&mut self, panel: &str, chart: &Chart) {
        self.draw_svg(panel, chart.svg());
    }

    pub fn draw_svg(&mut self, panel: &str, svg: String) {
        let panel = panel.to_owned();
        self.drawings.push(Drawing { panel, svg });
    }
}
