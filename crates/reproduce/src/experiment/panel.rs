//! Panels of a figure: the same scenario under several policies and with
//! several tickets.

use std::collections::BTreeMap;

use prorata_core::policy::PolicyName;
use prorata_scenario::Scenario;
use prorata_scenario::file::Tickets;
use serde::Deserialize;

use super::{Context, Result};

/// A panel.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Panel {
    /// Its letter.
    pub panel: String,
    /// What decides in it.
    pub policy: PolicyName,
    /// Tickets by client, instead of the scenario's.
    #[serde(default)]
    pub tickets: BTreeMap<String, Tickets>,
    /// Runs that are averaged.
    #[serde(default = "one")]
    pub runs: u32,
    /// Allocations after which the schedule repeats, where it does.
    #[serde(default)]
    pub period: Option<u32>,
    /// The observed client; without it, the first one.
    #[serde(default)]
    pub client: Option<String>,
    /// Allocations drawn; without it, all.
    #[serde(default)]
    pub shown: Option<u32>,
}

fn one() -> u32 {
    1
}

impl Panel {
    pub(super) fn scenario(&self, context: &Context<'_>) -> Result<Scenario> {
        let mut scenario = context.figure.scenario.clone();
        scenario.machine.policy = self.policy;
        for (name, tickets) in &self.tickets {
            let client = scenario.clients.iter_mut().find(|c| c.name == *name);
            let client = client.ok_or_else(|| {
                context.malformed(format!(
                    "has tickets for '{name}', which the scenario lacks"
                ))
            })?;
            client.tickets = tickets.clone();
        }
        Ok(scenario)
    }

    /// Name of the client that it is about.
    pub fn client<'a>(&'a self, scenario: &'a Scenario) -> &'a str {
        let first = || scenario.clients[0].name.as_str();
        self.client.as_deref().unwrap_or_else(first)
    }

    pub fn metric(&self, what: &str) -> String {
        format!("({}) {what}", self.panel)
    }

    fn differs_only_in_policy(&self, other: &Panel) -> bool {
        self.tickets == other.tickets && self.client == other.client
    }
}

/// What decides in some panels.
pub fn policies(panels: &[Panel]) -> Vec<PolicyName> {
    panels.iter().map(|panel| panel.policy).collect()
}

/// The panels to go through: the paper's, or under another policy those that
/// then differ. Of those that do not the last is taken, the one with the
/// stricter expectations.
pub(super) fn to_run(panels: &[Panel], context: &Context<'_>) -> Vec<Panel> {
    let Some(policy) = context.policy else {
        return panels.to_vec();
    };
    let distinct = panels.iter().enumerate().filter(|(place, panel)| {
        let later = &panels[place + 1..];
        !later
            .iter()
            .any(|other| panel.differs_only_in_policy(other))
    });
    let distinct = distinct.map(|(_, panel)| Panel {
        policy,
        ..panel.clone()
    });
    distinct.collect()
}
