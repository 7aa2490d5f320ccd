//! A figure of a paper, as its scenario file describes it.

use prorata_scenario::Scenario;
use prorata_scenario::file::Time;
use serde::{Deserialize, Serialize};

use crate::error::ReproduceError;
use crate::expectation::Expectation;
use crate::expectation_table::{Difference, ExpectationTable, all_expectations};
use crate::experiment::Experiment;

/// A figure or table: a scenario, what is looked at, what the paper prints.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Path below `scenarios/` without its ending: `1994/figure-4`.
    pub id: String,
    /// The scenario, or the first of several variants.
    pub scenario: Scenario,
    pub(crate) reproduces: Reproduces,
}

/// The file's table `[reproduces]`.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Reproduces {
    /// Year of the paper.
    pub paper: u32,
    /// Figure, table or section.
    pub figure: String,
    /// What the figure shows, in a sentence or two; why ours differs, where it does.
    pub notes: Vec<String>,
    /// How the numbers came about that the paper does not print.
    #[serde(default)]
    pub parameters: Vec<Parameter>,
    pub experiment: Experiment,
    /// Expectations in rows and columns.
    #[serde(default)]
    pub tables: Vec<ExpectationTable>,
    /// Expectations one by one.
    #[serde(default)]
    pub printed: Vec<Expectation>,
    /// Known differences of our numbers, with reasons.
    #[serde(default)]
    pub differences: Vec<Difference>,
    #[serde(default)]
    pub processes: Option<OnProcesses>,
}

/// A number that the experiment needs and the paper does not print.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Parameter {
    /// What it is, with its value.
    pub what: String,
    /// How it came about.
    pub origin: Origin,
    /// By what; of a fitted one, with which results in sight.
    pub how: String,
}

/// How a parameter came about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Worked out from numbers that the paper prints elsewhere and the figure does not test.
    WorkedOut,
    /// Chosen before any comparison with the paper's results.
    ChosenBefore,
    /// Chosen with results of the same figure in sight. These results then test nothing else.
    Fitted,
}

impl Origin {
    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Origin::WorkedOut => "worked out",
            Origin::ChosenBefore => "chosen before comparing",
            Origin::Fitted => "fitted",
        }
    }
}

/// How a figure is run on real processes.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct OnProcesses {
    /// By default: in less time.
    pub short: Pace,
    /// Number of short runs, of which the mean is judged; at least as many as in the paper.
    /// Under lotteries, a single run keeps within two standard deviations in 95 % of cases,
    /// and all numbers of a figure do so less often.
    #[serde(default)]
    pub runs: u32,
    /// Time to settle before measuring starts. It covers a policy's beginning: under stride
    /// scheduling each client waits a whole stride for its first turn (1995, Figure 1).
    #[serde(default)]
    pub settle: Time,
    /// At the paper's pace.
    pub full: Pace,
}

/// The pace of a run.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Pace {
    /// Divisor of all times but the quantum.
    pub times: u32,
    pub quantum: Time,
}

impl Figure {
    /// A figure from the scenario in its file.
    ///
    /// # Errors
    ///
    /// If the scenario does not say what it reproduces, or not so that it can
    /// be understood.
    pub fn new(id: &str, scenario: Scenario) -> Result<Figure, ReproduceError> {
        let table = scenario
            .reproduces
            .clone()
            .ok_or_else(|| ReproduceError::NoPaper(id.to_owned()))?;
        let malformed = |error: toml::de::Error| ReproduceError::Malformed {
            id: id.to_owned(),
            what: error.message().to_owned(),
        };
        let reproduces: Reproduces = table.try_into().map_err(malformed)?;
        Ok(Figure {
            id: id.to_owned(),
            scenario,
            reproduces,
        })
    }

    /// Year of the paper.
    pub fn paper(&self) -> u32 {
        self.reproduces.paper
    }

    /// The same, with other chances.
    pub(crate) fn with_seed(&self, seed: u32) -> Figure {
        let mut figure = self.clone();
        figure.scenario.seed = seed;
        figure
    }

    /// Whether it can be run on real processes.
    pub fn on_processes(&self) -> bool {
        self.reproduces.processes.is_some()
    }

    /// Whether a simulation shows something that the paper prints.
    pub fn by_simulation(&self) -> bool {
        let Reproduces {
            tables, printed, ..
        } = &self.reproduces;
        !tables.is_empty() || printed.iter().any(|expectation| !expectation.on_processes)
    }

    /// Whether more is measured of it in full, whatever runs it.
    pub fn has_more_in_full(&self) -> bool {
        let Reproduces {
            tables, printed, ..
        } = &self.reproduces;
        let of_tables = tables.iter().map(|table| table.in_full);
        of_tables
            .chain(printed.iter().map(|expectation| expectation.in_full))
            .any(|in_full| in_full)
    }

    /// What the paper says of it.
    ///
    /// # Errors
    ///
    /// If expectations do not fit together.
    pub(crate) fn expectations(&self) -> Result<Vec<Expectation>, ReproduceError> {
        let Reproduces {
            tables,
            printed,
            differences,
            ..
        } = &self.reproduces;
        all_expectations(tables, printed, differences).map_err(|what| ReproduceError::Malformed {
            id: self.id.clone(),
            what,
        })
    }

    /// `1994, Figure 4: Relative rate accuracy`.
    pub fn heading(&self) -> String {
        let Reproduces { paper, figure, .. } = &self.reproduces;
        format!("{paper}, {figure}: {}", self.scenario.title)
    }
}

/// The JSON schema of scenario files, with what `[reproduces]` may hold.
pub fn schema() -> serde_json::Value {
    prorata_scenario::file::schema::<Reproduces>()
}
