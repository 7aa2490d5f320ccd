//! The numbers of which the thesis speaks, worked out from sums over sets.

use super::averages::Averages;
use super::batch::Batch;
use super::{Comparison, FirstFit, HIGH, LOW, MIDDLE, TOP, loads, on_cpus};
use crate::finding::Findings;

impl FirstFit {
    /// By what became of the same part of the sets on machines of all sizes.
    pub(super) fn claims(&self, sizes: &[Batch]) -> Findings {
        let mut findings = Findings::default();
        for size in sizes {
            add_claims_on(size, &mut findings);
        }
        for pair in sizes.windows(2) {
            let sizes = format!("{} over {} CPUs", pair[1].cpus, pair[0].cpus);
            let gain = |of: fn(&Batch) -> &Averages| {
                of(&pair[1]).achieved(TOP) / of(&pair[0]).achieved(TOP)
            };
            let metric = format!("{sizes}, {}: achieved", loads(TOP));
            findings.add(metric, gain(|size| &size.chosen), ": 1");
            let metric = format!("{sizes}, own {}: achieved", loads(TOP));
            findings.add(metric, gain(|size| &size.by_own_load), ": 1");
        }
        if let Some(comparison) = &self.comparison {
            add_comparison(comparison, sizes, &mut findings);
        }
        findings
    }
}

fn add_claims_on(size: &Batch, findings: &mut Findings) {
    let (on, all) = (on_cpus(size.cpus), &size.chosen);
    for tenth in [LOW, TOP] {
        let metric = format!("{on}, {}: achieved", loads(tenth));
        findings.add(metric, all.achieved(tenth), "%");
    }
    let falls = || (1..10).map(|tenth| all.achieved(tenth - 1) - all.achieved(tenth));
    let largest = |changes: &mut dyn Iterator<Item = f64>| changes.fold(0.0, f64::max);
    let metric = format!("{on}: largest fall from a tenth of load to the next");
    findings.add(metric, largest(&mut falls()), "points");
    let metric = format!("{on}: largest rise from a tenth of load to the next");
    findings.add(metric, largest(&mut falls().map(|fall| -fall)), "points");
    let metric = format!("{on}, all loads: achieved");
    findings.add(metric, all.achieved_overall(), "%");
    let metric = format!("{on}, all loads: sets placed in whole");
    findings.add(metric, all.whole(), "%");
    let metric = format!("{on}, {}: tasks left out", loads(HIGH));
    findings.add(metric, all.left_out(HIGH), "%");
}

fn add_comparison(comparison: &Comparison, sizes: &[Batch], findings: &mut Findings) {
    for (place, other) in comparison.choices.iter().enumerate() {
        let other = other.title();
        let gain = |size: &Batch| size.chosen.achieved(TOP) / size.others[place].achieved(TOP);
        for size in sizes {
            let on = on_cpus(size.cpus);
            let metric = format!("{on}, {}: achieved, over {other}", loads(TOP));
            findings.add(metric, gain(size), ": 1");
            let more = size.chosen.empty_cpus(MIDDLE) - size.others[place].empty_cpus(MIDDLE);
            let metric = format!(
                "{on}, {}: CPUs without a task, more than {other}",
                loads(MIDDLE)
            );
            findings.add(metric, more, "points");
        }
        if let [first, .., last] = sizes {
            let metric = format!(
                "{} over {} CPUs, {}: achieved, over {other}",
                last.cpus,
                first.cpus,
                loads(TOP),
            );
            findings.add(metric, gain(last) / gain(first), ": 1");
        }
    }
    for size in sizes {
        let on = on_cpus(size.cpus);
        let metric = format!("optimum, {on}: sets placed in whole");
        findings.add(metric, size.optimum.whole(), "%");
        let metric = format!("optimum, {on}, {}: achieved", loads(TOP));
        findings.add(metric, size.optimum.achieved(TOP), "%");
        let given_up = f64::from(size.given_up) / f64::from(size.sets);
        let metric = format!("optimum, {on}: sets given up");
        findings.add(metric, 100.0 * given_up, "%");
        if size.cpus == 1 {
            let metric = "1 CPU: largest rise in room from a tenth of use to the next";
            findings.add(metric, size.largest_rise_in_room(), "points");
        }
    }
}
