//! 1995, Figure 4: what a change of tickets does to a client's stride and to
//! what remains of it. Drives stride scheduling itself; the changes are those
//! of the scenario's timeline.

use prorata_core::policy::{ClientIndex, Policy, Stride};
use prorata_report::svg::{Anchor, Px, Svg};
use prorata_scenario::Scenario;
use prorata_scenario::file::Action;
use serde::Deserialize;

use super::passes::join_all;
use super::{Context, Result};
use crate::finding::Findings;

/// Changes of tickets.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Modification {}

/// Where a client stands, in passes.
#[derive(Clone, Copy, Debug)]
struct Stand {
    tickets: u32,
    global_pass: f64,
    pass: f64,
}

impl Stand {
    fn stride(&self) -> f64 {
        1.0 / f64::from(self.tickets)
    }

    fn remain(&self) -> f64 {
        self.pass - self.global_pass
    }
}

impl Modification {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        let scenario = context.scenario();
        let mut findings = Findings::default();
        for (before, after) in changes(&scenario)
            .ok_or_else(|| context.malformed("needs base tickets and times on whole quanta"))?
        {
            let change = format!("{} to {} tickets", before.tickets, after.tickets);
            let stride = after.stride() / before.stride();
            findings.add(format!("{change}: new stride over old"), stride, "");
            let remain = after.remain() / before.remain();
            findings.add(format!("{change}: new remain over old"), remain, "");
            findings.draw_svg(&change, drawing(&change, before, after));
        }
        Ok(findings)
    }
}

/// Where a client stands before and after each change.
fn changes(scenario: &Scenario) -> Option<Vec<(Stand, Stand)>> {
    let mut policy = Stride::new();
    join_all(&mut policy, scenario)?;
    let mut tickets: Vec<u32> = Vec::new();
    for client in &scenario.clients {
        let prorata_scenario::file::Tickets::Fixed(amounts) = &client.tickets else {
            return None;
        };
        tickets.push(amounts.first()?.amount);
    }
    let (mut quanta, mut changes) = (0, Vec::new());
    for at in &scenario.timeline {
        let Action::SetTickets(set) = &at.action else {
            return None;
        };
        while quanta < at.time.0 / scenario.machine.quantum.0 {
            let winner = policy.pick()?;
            policy.charge(winner, 1, 1).ok()?;
            quanta += 1;
        }
        let index = scenario.clients.iter().position(|c| c.name == set.of)?;
        let client = ClientIndex(index as u32);
        let stand = |policy: &Stride, tickets: u32| {
            Some(Stand {
                tickets,
                global_pass: policy.global_pass(),
                pass: policy.pass(client)?,
            })
        };
        let before = stand(&policy, tickets[index])?;
        tickets[index] = set.tickets.amount;
        policy.set_tickets(client, tickets[index]).ok()?;
        changes.push((before, stand(&policy, tickets[index])?));
    }
    Some(changes)
}

fn drawing(change: &str, before: Stand, after: Stand) -> String {
    let mut svg = Svg::new(560.0, 190.0, change);
    svg.text("title", (20.0, 30.0), Anchor::Start, change);
    let longest = before.stride().max(after.stride());
    // The longer wait begins at the left and takes the width.
    let x = |from_global: f64| 300.0 + from_global / longest * 220.0;
    svg.path("event", &format!("M{} 52 V170", Px(x(0.0))));
    svg.text("faint", (x(0.0) + 4.0, 62.0), Anchor::Start, "global pass");
    for (y, stand, pass) in [(100.0, before, "pass"), (150.0, after, "pass'")] {
        let (end, begin) = (x(stand.remain()), x(stand.remain() - stand.stride()));
        svg.path("axis", &format!("M{} {} H{}", Px(begin), Px(y), Px(end)));
        svg.path(
            "line s0",
            &format!("M{} {} H{}", Px(x(0.0)), Px(y), Px(end)),
        );
        for tick in [begin, end] {
            svg.path("axis", &format!("M{} {} v12", Px(tick), Px(y - 6.0)));
        }
        let remain = format!(
            "remain {:.3} of stride {:.3}",
            stand.remain(),
            stand.stride()
        );
        svg.text("faint", (x(0.0) + 4.0, y - 8.0), Anchor::Start, &remain);
        svg.text("strong", (end + 6.0, y + 5.0), Anchor::Start, pass);
    }
    svg.finish()
}
