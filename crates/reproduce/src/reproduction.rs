//! Runs a figure and compares it with the paper.

use prorata_core::policy::PolicyName;
use prorata_stage::{KERNEL, ProcessEngine, USER};
use serde::Serialize;

use crate::error::ReproduceError;
use crate::expectation::{Expectation, Kind, Metric, Seeds, Verdict};
use crate::experiment::Context;
use crate::figure::{Figure, Parameter};
use crate::finding::{Drawing, Findings};
use crate::paper::{Tally, worst};

/// What runs the programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// The simulator.
    Sim,
    /// The user engine, with real processes.
    User,
    /// A scheduler in the kernel, with real processes.
    Kernel,
}

impl Engine {
    /// Tells apart what engines ran, in headings; empty for the simulator.
    pub(crate) fn remark(self) -> &'static str {
        match self {
            Engine::Sim => "",
            Engine::User => " (on real processes)",
            Engine::Kernel => " (on real processes, by the kernel)",
        }
    }

    /// The engine, if it is one for processes.
    pub(crate) fn for_processes(self) -> Option<&'static ProcessEngine> {
        match self {
            Engine::Sim => None,
            Engine::User => Some(&USER),
            Engine::Kernel => Some(&KERNEL),
        }
    }
}

/// How figures are reproduced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// On what.
    pub engine: Engine,
    /// On processes as long as in the paper; by simulation also what takes
    /// minutes.
    pub full: bool,
    /// Of the first run, instead of the scenario file's.
    pub seed: Option<u32>,
    /// Whether the experiment is repeated under policies that the paper lacks.
    pub beyond: bool,
}

/// A watcher of a reproduction.
pub trait Watch {
    /// Something begins; an empty name if it is only one more of the same.
    fn step(&mut self, what: &str);

    /// Whether it is to end before its time.
    fn is_over(&mut self) -> bool {
        false
    }
}

impl Watch for () {
    fn step(&mut self, _: &str) {}
}

/// A figure that was reproduced.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Reproduction {
    /// Path below `scenarios/`.
    pub id: String,
    /// Year of the paper.
    pub paper: u32,
    /// Figure, table or section.
    pub figure: String,
    /// What it shows.
    pub title: String,
    /// What ran the programs.
    pub engine: Engine,
    /// The worst verdict on its numbers.
    pub verdict: Verdict,
    /// What the paper prints, and what came of it.
    pub metrics: Vec<Metric>,
    /// The same under other policies.
    pub beyond: Vec<Beyond>,
    /// How the numbers came about that the paper does not print.
    pub parameters: Vec<Parameter>,
    /// Remarks.
    pub notes: Vec<String>,
    /// The figure as the paper draws it.
    #[serde(skip)]
    pub drawings: Vec<Drawing>,
}

/// The same experiment under a policy that the paper does not use, against
/// the paper's expectations for its own.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Beyond {
    /// Which policy.
    pub policy: PolicyName,
    /// Whether it is only there to compare with.
    pub baseline: bool,
    /// What came of it. Its verdicts are none on us.
    pub metrics: Vec<Metric>,
}

impl Reproduction {
    /// `1994, Figure 4: Relative rate accuracy`.
    pub fn heading(&self) -> String {
        format!("{}, {}: {}", self.paper, self.figure, self.title)
    }

    /// Counts its metrics of one kind.
    pub fn tally(&self, kind: Kind) -> Tally {
        let of_kind = |metric: &&Metric| metric.source.kind() == kind;
        Tally::of(self.metrics.iter().filter(of_kind))
    }

    /// `23 of 44 reproduced, 21 differ`. Numbers to which parameters are fitted, checks of the
    /// paper's own, and claims of ours past it are counted apart.
    pub fn summary(&self) -> String {
        let kinds = [
            (Kind::Number, ""),
            (Kind::Fit, "fitted, "),
            (Kind::Check, "of the paper's own sums, "),
            (Kind::Beyond, "past the paper, "),
        ];
        let parts = kinds.into_iter().filter_map(|(kind, what)| {
            let tally = self.tally(kind);
            (tally.total() > 0).then(|| format!("{what}{}", tally.words()))
        });
        parts.collect::<Vec<_>>().join("; ")
    }

    /// Why numbers differ: each reason once, with the metrics that it is of, and whether it
    /// leaves them unexplained.
    pub fn reasons(&self) -> Vec<(String, Vec<&str>)> {
        let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
        for metric in &self.metrics {
            let Some(because) = &metric.differs else {
                continue;
            };
            let unexplained = if metric.unexplained {
                " (unexplained)"
            } else {
                ""
            };
            let because = format!("{because}{unexplained}");
            match reasons.iter_mut().find(|(reason, _)| *reason == because) {
                Some((_, metrics)) => metrics.push(&metric.metric),
                None => reasons.push((because, vec![&metric.metric])),
            }
        }
        reasons
    }
}

/// Runs a figure.
///
/// # Errors
///
/// If it cannot be run; not if it fails to come out.
pub fn reproduce(
    figure: &Figure,
    settings: Settings,
    watch: &mut dyn Watch,
) -> Result<Reproduction, ReproduceError> {
    if settings.engine != Engine::Sim && !figure.on_processes() {
        return Err(ReproduceError::NotOnProcesses(figure.id.clone()));
    }
    if settings.engine == Engine::Sim && !figure.by_simulation() {
        return Err(ReproduceError::NotBySimulation(figure.id.clone()));
    }
    let seeded;
    let (figure, seeds) = match settings.seed {
        Some(seed) if seed != figure.scenario.seed => {
            seeded = figure.with_seed(seed);
            (&seeded, Seeds::Others)
        }
        _ => (figure, Seeds::OfTheFile),
    };
    let mut expectations = figure.expectations()?;
    expectations.retain(|expectation| {
        let is_measured = settings.engine != Engine::Sim || !expectation.on_processes;
        is_measured && (settings.full || !expectation.in_full)
    });
    let mut context = Context {
        figure,
        expectations: &expectations,
        run: 0,
        engine: settings.engine,
        full: settings.full,
        policy: None,
        watch,
    };
    let experiment = &figure.reproduces.experiment;
    let findings = experiment.run(&mut context)?;
    let metrics = judge(&expectations, &findings, seeds);
    if settings.engine == Engine::Sim
        && let Some(expectation) = expectations.iter().find(|expectation| {
            !metrics
                .iter()
                .any(|metric| metric.metric == expectation.metric)
        })
    {
        return Err(unmeasured(figure, &expectation.metric, &findings));
    }
    let mut beyond = Vec::new();
    if settings.engine == Engine::Sim && settings.beyond {
        for policy in experiment.others(&figure.scenario, figure.reproduces.paper) {
            context.policy = Some(policy);
            let findings = experiment.run(&mut context)?;
            beyond.push(Beyond {
                policy,
                baseline: policy.is_baseline(),
                metrics: judge(&expectations, &findings, seeds),
            });
        }
    }
    let reproduces = &figure.reproduces;
    Ok(Reproduction {
        id: figure.id.clone(),
        paper: reproduces.paper,
        figure: reproduces.figure.clone(),
        title: figure.scenario.title.clone(),
        engine: settings.engine,
        verdict: worst(metrics.iter().map(|metric| metric.verdict)),
        metrics,
        beyond,
        parameters: reproduces.parameters.clone(),
        notes: reproduces.notes.clone(),
        drawings: findings.drawings,
    })
}

/// The expectations on what was measured, in the file's order.
fn judge(expectations: &[Expectation], findings: &Findings, seeds: Seeds) -> Vec<Metric> {
    let metrics = expectations.iter().filter_map(|expectation| {
        let mut measured = findings.measured.iter();
        let measured = measured.find(|measured| measured.metric == expectation.metric)?;
        Some(expectation.judge(measured, seeds))
    });
    metrics.collect()
}

fn unmeasured(figure: &Figure, metric: &str, findings: &Findings) -> ReproduceError {
    let known = findings
        .measured
        .iter()
        .map(|measured| measured.metric.as_str());
    let known: Vec<&str> = known.collect();
    ReproduceError::Malformed {
        id: figure.id.clone(),
        what: format!(
            "prints '{metric}', which is not measured: name one of '{}'",
            known.join("', '")
        ),
    }
}
