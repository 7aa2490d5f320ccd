//! 1999, Figure 10: what a program gets done beside programs that wake all the time, with the
//! costs of two schedulers.
//!
//! Switches are those of a machine on which they take no time. Programs that wake at the same
//! tick of a clock wake together there, also after many ticks.

use prorata_report::chart::{Axis, Chart, Curve, Shape};
use prorata_scenario::file::Time;
use serde::Deserialize;

use super::{Context, Result};
use crate::finding::Findings;
use crate::statistics::mean;

/// Work with two costs of a context switch.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Slowdown {
    /// Numbers of programs that wake, with the costs that go with them.
    pub cases: Vec<Case>,
    /// What the first client does in a second of the CPU.
    pub per_cpu_second: f64,
}

/// Numbers of programs with the same costs.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Case {
    /// Copies of the scenario's second client.
    pub beside: Vec<u32>,
    /// Runs that are averaged. Lots decide which programs wake together from then on.
    pub runs: u32,
    /// Under the peer's scheduler.
    pub peer: SwitchCosts,
    /// Under the paper's scheduler.
    pub paper: SwitchCosts,
}

/// What a scheduler costs.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SwitchCosts {
    /// To choose a process and to switch to it.
    pub switch: Time,
    /// To make a process runnable.
    pub wake: Time,
}

impl SwitchCosts {
    /// A process that is switched away from was made runnable before, by its wake or by being
    /// preempted (`setrunqueue()`), so each switch costs both.
    fn seconds(self) -> f64 {
        self.switch.as_secs_f64() + self.wake.as_secs_f64()
    }
}

/// What came of a second.
struct Outcome {
    /// CPU time of the first client.
    received: f64,
    switches: f64,
}

impl Outcome {
    /// CPU time of the first client where switches take it.
    fn worked(&self, costs: SwitchCosts) -> f64 {
        self.received - self.switches * costs.seconds()
    }
}

impl Slowdown {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        let mut findings = Findings::default();
        let (mut peer, mut own) = (Vec::new(), Vec::new());
        let cases = self.cases.iter();
        let cases = cases.flat_map(|case| case.beside.iter().map(move |beside| (*beside, case)));
        for (beside, case) in cases {
            let (mut slower, mut switches) = (Vec::new(), Vec::new());
            let (mut with_peer, mut with_own) = (Vec::new(), Vec::new());
            for run in 0..case.runs {
                let outcome = outcome(context, beside, run)?;
                let (peer, own) = (outcome.worked(case.peer), outcome.worked(case.paper));
                slower.push((1.0 - own / peer) * 100.0);
                switches.push(outcome.switches);
                with_peer.push(peer * self.per_cpu_second);
                with_own.push(own * self.per_cpu_second);
            }
            let metric = |what: &str| format!("{beside} interactive: {what}");
            findings.add_runs(metric("slower"), &slower, "%");
            findings.add_runs(metric("switches"), &switches, "/s");
            peer.push((f64::from(beside), mean(&with_peer)));
            own.push((f64::from(beside), mean(&with_own)));
        }
        let chart = Chart {
            title: context.figure.scenario.title.clone(),
            caption: String::new(),
            x: Axis::of("interactive processes"),
            y: Axis::of("keys a second"),
            curves: vec![
                Curve::new(Shape::Line, 1, "costs of FreeBSD", peer),
                Curve::new(Shape::Line, 0, "costs of hybrid lottery scheduling", own),
            ],
            rules: Vec::new(),
        };
        findings.draw("", &chart);
        Ok(findings)
    }
}

fn outcome(context: &mut Context<'_>, beside: u32, run: u32) -> Result<Outcome> {
    let mut scenario = context.scenario();
    match (beside, scenario.clients.get_mut(1)) {
        (_, None) => return Err(context.malformed("needs a second client")),
        (0, Some(_)) => scenario.clients.truncate(1),
        (_, Some(second)) => second.count = Some(beside),
    }
    let seconds = scenario.duration.as_secs_f64();
    let (machine, ()) = context.simulate(&scenario, context.seed(run), ())?;
    Ok(Outcome {
        received: machine.received_ns(0) as f64 / 1e9 / seconds,
        switches: machine.counts().context_switches as f64 / seconds,
    })
}
