//! 2005, Figure 2.6: the table of slots at several stages of a run.

use prorata_core::slots::geometry::Cell;
use prorata_report::slot_svg::slot_svg;
use prorata_report::slot_table::SlotTable;
use prorata_scenario::event::Event;
use prorata_scenario::file::Time;
use prorata_sim::{Machine, Observer};
use serde::Deserialize;

use super::{Context, Result};
use crate::finding::Findings;

/// The claims of each client, and the turns that followed.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SlotStages {
    /// When to look: each a multiple of `measure.every`.
    pub stages: Vec<Stage>,
    /// The client whose first column counts.
    pub wakes: String,
    /// When it wakes.
    pub wakes_at: Time,
}

/// A stage of the run.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Stage {
    /// What it is called.
    pub name: String,
    /// When to look.
    pub at: Time,
}

/// The owners of all slots, row by row, at the stages' times; and the first time that a client
/// got a CPU after it woke.
#[derive(Default)]
struct Looks {
    stages: Vec<(String, u64)>,
    tables: Vec<(String, Vec<Vec<Option<String>>>)>,
    wakes: (String, u64),
    ran_ns: Option<u64>,
    /// Claims of which each client was deprived so far, at the stages' times.
    revoked: Vec<Vec<(String, u32)>>,
    revoked_now: Vec<(String, u32)>,
}

impl Observer for Looks {
    fn observe(&mut self, now_ns: u64, event: Event<'_>, machine: &Machine) {
        match event {
            Event::Sample => {
                if let Some(stage) = self.stages.iter().find(|stage| stage.1 == now_ns) {
                    self.tables.push((stage.0.clone(), owners(machine)));
                    self.revoked.push(self.revoked_now.clone());
                }
            }
            Event::Revoked { client, .. } => {
                let name = machine.client_name(client).into_owned();
                match self.revoked_now.iter_mut().find(|(of, _)| *of == name) {
                    Some((_, count)) => *count += 1,
                    None => self.revoked_now.push((name, 1)),
                }
            }
            Event::Dispatched { client, .. }
                if now_ns >= self.wakes.1 && machine.client_name(client) == self.wakes.0 =>
            {
                self.ran_ns.get_or_insert(now_ns);
            }
            _ => {}
        }
    }
}

fn owners(machine: &Machine) -> Vec<Vec<Option<String>>> {
    let Some(timetable) = machine.timetable() else {
        return Vec::new();
    };
    let geometry = timetable.geometry();
    let owner = |row, column| {
        let claim = timetable.table().get(Cell { row, column })?;
        let client = claim.owner.client?;
        Some(machine.client_name(client.index()).into_owned())
    };
    let rows = 0..geometry.rows();
    rows.map(|row| {
        (0..geometry.columns())
            .map(|column| owner(row, column))
            .collect()
    })
    .collect()
}

impl SlotStages {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<Findings> {
        let scenario = context.scenario();
        let slot_ns = scenario.slots.as_ref().map(|slots| slots.length.0);
        let slot_ns = slot_ns.ok_or_else(|| context.malformed("needs [slots]"))?;
        let looks = Looks {
            stages: self
                .stages
                .iter()
                .map(|stage| (stage.name.clone(), stage.at.0))
                .collect(),
            wakes: (self.wakes.clone(), self.wakes_at.0),
            ..Looks::default()
        };
        let seed = context.seed(0);
        let (machine, looks) = context.simulate(&scenario, seed, looks)?;
        if looks.tables.len() < self.stages.len() {
            return Err(context.malformed("looks at times that are no multiples of measure.every"));
        }
        let mut findings = Findings::default();
        let names: Vec<&str> = scenario.clients.iter().map(|c| c.name.as_str()).collect();
        for ((stage, rows), revoked) in looks.tables.iter().zip(&looks.revoked) {
            for name in &names {
                let of = |row: &Vec<Option<String>>| {
                    row.iter().flatten().filter(|owner| owner == name).count()
                };
                for (cpu, row) in (1..).zip(rows) {
                    let metric = format!("{stage}: slots of {name} on CPU {cpu}");
                    findings.add(metric, of(row) as f64, "");
                }
                let lost = revoked.iter().find(|(of, _)| of == name);
                let metric = format!("{stage}: claims that {name} has lost");
                findings.add(metric, f64::from(lost.map_or(0, |(_, count)| *count)), "");
            }
            let table = SlotTable {
                first: 1,
                rows: (1..).zip(rows.iter().cloned()).collect(),
            };
            let svg = slot_svg(&table, &scenario.title, stage);
            findings.draw_svg(stage, svg);
        }
        let columns = machine
            .timetable()
            .map_or(1, |table| u64::from(table.geometry().columns()));
        let ran = looks
            .ran_ns
            .ok_or_else(|| context.malformed("has nobody who wakes"))?;
        let column = ran / slot_ns % columns + 1;
        findings.add(
            format!("column in which {} runs first", self.wakes),
            column as f64,
            "",
        );
        let client = names
            .iter()
            .position(|name| *name == self.wakes)
            .unwrap_or(0);
        let usage = machine.dispatcher().usage(machine.client_id(client as u32));
        let in_slots_ms = usage.in_slots_ns as f64 / 1e6;
        findings.add(
            format!("time of {} in its slots", self.wakes),
            in_slots_ms,
            "ms",
        );
        Ok(findings)
    }
}
