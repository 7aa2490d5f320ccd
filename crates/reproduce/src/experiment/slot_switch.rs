//! 2005, Table 4.1: what a switch from one slot's schedulee to the next one's costs, beside an ordinary
//! switch.
//!
//! The programs read the clock all the time, so only real processes show it.

use prorata_report::chart::{Axis, Chart, Curve, Shape};
use prorata_scenario::Scenario;
use prorata_scenario::file::Time;
use serde::Deserialize;

use super::{Context, Result};
use crate::error::ReproduceError;
use crate::finding::{Findings, Measured};
use crate::processes::switches::switches_ns;
use crate::statistics::{mean, median};

/// Two programs that take turns: in slots, by tickets, and under plain Linux.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SlotSwitch {
    /// Switches that are averaged.
    pub switches: usize,
    /// The length of slots of which the loss is told.
    pub short_slot: Time,
}

/// Kinds of switches.
const SLOT: &str = "slot switch";
const ORDINARY: &str = "ordinary switch";
/// At the end of a turn that tickets gave, under the same engine.
const BY_TICKETS: &str = "switch by tickets";

impl SlotSwitch {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        let slots = context.scenario();
        let without = Scenario {
            slots: None,
            claims: Vec::new(),
            ..slots.clone()
        };
        let kind = context.engine.for_processes();
        let kind =
            kind.ok_or_else(|| ReproduceError::NotBySimulation(context.figure.id.clone()))?;
        let mut times_us = Vec::new();
        for (name, scenario, is_plain) in [
            (ORDINARY, &without, true),
            (BY_TICKETS, &without, false),
            (SLOT, &slots, false),
        ] {
            context.step(name)?;
            let seed = context.seed(0);
            let pace = context.on_processes()?.1;
            let played = Scenario {
                duration: Time(scenario.duration.0 / u64::from(pace.times)),
                ..scenario.clone()
            };
            let switches_ns = switches_ns((kind, seed), &played, is_plain, context.watch)?;
            times_us.push((name, self.mean_us(&switches_ns)));
        }
        Ok(self.findings(context, &times_us))
    }

    /// The mean of so many switches: the median over all such groups; not a number without one.
    fn mean_us(&self, switches_ns: &[u64]) -> f64 {
        let groups = switches_ns.chunks_exact(self.switches);
        let us = |group: &[u64]| group.iter().map(|ns| *ns as f64 / 1e3).collect::<Vec<_>>();
        let means: Vec<f64> = groups.map(|group| mean(&us(group))).collect();
        match means.is_empty() {
            true => f64::NAN,
            false => median(&means),
        }
    }

    fn findings(&self, context: &Context<'_>, times_us: &[(&str, f64)]) -> Findings {
        let mut findings = Findings::default();
        for (name, us) in times_us {
            findings.measured.push(Measured::new(*name, *us, "us"));
        }
        let (slot, ordinary) = (findings.value(SLOT), findings.value(ORDINARY));
        let ratio = Measured::new("slot switch over ordinary switch", slot / ordinary, "times");
        let lost = (slot - ordinary) * 1e3 / self.short_slot.0 as f64 * 100.0;
        // Without a measurement there is none: `max` would make it 0.
        let lost = if lost < 0.0 { 0.0 } else { lost };
        let lost = Measured::new("lost of a short slot", lost, "%");
        findings.measured.extend([ratio, lost]);
        findings.draw("", &chart(context, times_us));
        findings
    }
}

fn chart(context: &Context<'_>, times_us: &[(&str, f64)]) -> Chart {
    let bars = times_us.iter().zip(0_u8..).map(|(&(name, us), place)| {
        let points = vec![(f64::from(place) + 0.5, us)];
        Curve::new(Shape::Bars(0.8), place.into(), name, points)
    });
    Chart {
        title: context.figure.scenario.title.clone(),
        x: Axis::up_to(times_us.len() as f64, ""),
        y: Axis::of("a switch (us)"),
        curves: bars.collect(),
        ..Chart::default()
    }
}
