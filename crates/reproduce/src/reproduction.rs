//! Runs a figure and compares it with the paper.

use prorata_core::policy::PolicyName;
use prorata_stage::{KERNEL, ProcessEngine, USER};
use serde::Serialize;

use crate::error::ReproduceError;
use crate::expectation::{Expectation, Metric, Source, Verdict};
use crate::experiment::Context;
use crate::figure::Figure;
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

    /// `23 of 44 reproduced, 21 differ`. Checks of the paper's own numbers are counted apart.
    pub fn summary(&self) -> String {
        let is_check = |metric: &&Metric| metric.source == Source::Check;
        let (checks, numbers): (Vec<_>, Vec<_>) = self.metrics.iter().partition(is_check);
        let mut text = Tally::of(numbers).words();
        if !checks.is_empty() {
            let checked = Tally::of(checks).words();
            text.push_str(&format!("; of the paper's own sums, {checked}"));
        }
        text
    }

    /// Why numbers differ: each reason once, with the metrics that it is of.
    pub fn reasons(&self) -> Vec<(&str, Vec<&str>)> {
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for metric in &self.metrics {
            let Some(because) = metric.differs.as_deref() else {
                continue;
            };
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
    let mut expectations = figure.expectations()?;
    expectations.retain(|expectation| settings.full || !expectation.in_full);
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
    let metrics = judge(&expectations, &findings);
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
    if settings.engine == Engine::Sim {
        for policy in experiment.others(&figure.scenario, figure.reproduces.paper) {
            context.policy = Some(policy);
            let findings = experiment.run(&mut context)?;
            beyond.push(Beyond {
                policy,
                baseline: policy.is_baseline(),
                metrics: judge(&expectations, &findings),
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
        notes: reproduces.notes.clone(),
        drawings: findings.drawings,
    })
}

/// The expectations on what was measured, in the file's order.
fn judge(expectations: &[Expectation], findings: &Findings) -> Vec<Metric> {
    let metrics = expectations.iter().filter_map(|expectation| {
        let mut measured = findings.measured.iter();
        let measured = measured.find(|measured| measured.metric == expectation.metric)?;
        Some(expectation.judge(measured))
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
