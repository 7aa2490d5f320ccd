//! What the programs received, look by look and phase by phase.

use std::time::Duration;

use prorata_control::protocol::{ClientReport, StatusReport};
use prorata_report::plot::{Series, SharePlot};
use serde::Serialize;

use super::stage::Stage;
use crate::shares;

/// Received shares are shown over this time.
const WINDOW: Duration = Duration::from_secs(1);

/// Over less than this they say little: a few quanta.
const LEAST_WINDOW: Duration = Duration::from_millis(300);

/// One look at the clients.
#[derive(Clone, Debug)]
struct Look {
    at: Duration,
    clients: Vec<ClientReport>,
}

/// All looks of a demo.
#[derive(Clone, Debug)]
pub struct Record {
    looks: Vec<Look>,
    /// Indices of the looks with which phases began.
    phases: Vec<usize>,
    quantum_ns: u64,
    program: String,
    cpu: u32,
}

impl Record {
    /// Nothing seen yet.
    pub fn new(stage: &Stage) -> Self {
        Self {
            looks: Vec::new(),
            phases: Vec::new(),
            quantum_ns: stage.quantum_ns(),
            program: stage.program(),
            cpu: stage.cpu(),
        }
    }

    /// Adds a look.
    pub fn add(&mut self, at: Duration, clients: Vec<ClientReport>) {
        self.looks.push(Look { at, clients });
    }

    /// Adds a look, after which other shares are specified than before.
    pub fn begin_phase(&mut self, at: Duration, clients: Vec<ClientReport>) {
        self.phases.push(self.looks.len());
        self.add(at, clients);
    }

    /// The last look, with the share that each client received over the last
    /// second.
    pub fn now(&self) -> Vec<(&ClientReport, f64)> {
        let Some(last) = self.looks.len().checked_sub(1) else {
            return Vec::new();
        };
        self.looks[last]
            .clients
            .iter()
            .zip(self.received_until(last))
            .collect()
    }

    fn received_until(&self, last: usize) -> Vec<f64> {
        let now = &self.looks[last];
        let first = self.looks[..=last].partition_point(|look| look.at + WINDOW < now.at);
        shares::received(&self.looks[first].clients, &now.clients)
    }

    /// What each phase gave to whom.
    pub fn summary(&self, status: &StatusReport) -> Summary {
        let ends = self
            .phases
            .iter()
            .skip(1)
            .copied()
            .chain([self.looks.len().saturating_sub(1)]);
        let phases = self
            .phases
            .iter()
            .zip(ends)
            .map(|(&first, last)| self.phase(first, last))
            .collect();
        Summary {
            program: self.program.clone(),
            cpu: self.cpu,
            quantum_ns: self.quantum_ns,
            policy: status.policy,
            mechanism: status.mechanism.clone(),
            daemon_cpu_share: status.own_cpu_ns as f64 / status.uptime_ns.max(1) as f64,
            phases,
        }
    }

    fn phase(&self, first: usize, last: usize) -> Phase {
        let (before, after) = (&self.looks[first], &self.looks[last]);
        let pairs = || before.clients.iter().zip(&after.clients);
        let total_ns: u64 = pairs()
            .map(|(a, b)| b.received_ns.saturating_sub(a.received_ns))
            .sum();
        let part = |time_ns: u64| time_ns as f64 / total_ns.max(1) as f64;
        let programs = pairs().map(|(before, after)| {
            let received_ns = after.received_ns.saturating_sub(before.received_ns);
            let specified_ns = after.specified_ns.saturating_sub(before.specified_ns);
            Program {
                name: after.name.clone(),
                tickets: before
                    .tickets
                    .iter()
                    .map(|(amount, _)| u64::from(*amount))
                    .sum(),
                specified_share: part(specified_ns),
                received_share: part(received_ns),
                received_ns,
                error_quanta: (received_ns as f64 - specified_ns as f64) / self.quantum_ns as f64,
            }
        });
        Phase {
            seconds: (after.at - before.at).as_secs_f64(),
            programs: programs.collect(),
        }
    }

    /// Received shares over time.
    pub fn plot(&self, summary: &Summary) -> SharePlot {
        let last = self.looks.last();
        let series = |place: usize| {
            let of = |look: &Look| look.clients[place].clone();
            let received = (0..self.looks.len())
                .filter(|&look| self.looks[look].at - self.looks[0].at >= LEAST_WINDOW)
                .map(|look| {
                    (
                        self.looks[look].at.as_secs_f64(),
                        self.received_until(look)[place],
                    )
                });
            let tickets: Vec<String> = summary
                .phases
                .iter()
                .map(|phase| phase.programs[place].tickets.to_string())
                .collect();
            let mut tickets = tickets;
            tickets.dedup();
            Series {
                name: format!(
                    "{}: {} tickets",
                    of(&self.looks[0]).name,
                    tickets.join(", then ")
                ),
                received: received.collect(),
                specified: self
                    .phases
                    .iter()
                    .zip(&summary.phases)
                    .map(|(&first, phase)| {
                        (
                            self.looks[first].at.as_secs_f64(),
                            phase.programs[place].specified_share,
                        )
                    })
                    .collect(),
            }
        };
        SharePlot {
            title: "Three programs share one CPU by tickets".to_owned(),
            caption: format!(
                "CPU time that three copies of {} received over the last second (solid), and what was specified (dashed)",
                self.program
            ),
            duration_s: last.map_or(0.0, |look| look.at.as_secs_f64()),
            series: (0..last.map_or(0, |look| look.clients.len()))
                .map(series)
                .collect(),
            events: self
                .phases
                .iter()
                .skip(1)
                .map(|&first| self.event(first))
                .collect(),
        }
    }

    fn event(&self, first: usize) -> (f64, String) {
        let changed = self.looks[first]
            .clients
            .iter()
            .zip(&self.looks[first - 1].clients);
        let inflated: Vec<&str> = changed
            .filter(|(now, before)| now.tickets != before.tickets)
            .map(|(now, _)| now.name.as_str())
            .collect();
        (
            self.looks[first].at.as_secs_f64(),
            format!("{} inflated", inflated.join(", ")),
        )
    }
}

/// What came of a demo, as `--json` prints it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// What ran, three times.
    pub program: String,
    /// The CPU that was shared.
    pub cpu: u32,
    /// Length of a quantum.
    pub quantum_ns: u64,
    /// What picked the winners.
    pub policy: prorata_control::protocol::PolicyKind,
    /// How losers were held back.
    pub mechanism: String,
    /// Part of one CPU that the daemon used itself.
    pub daemon_cpu_share: f64,
    /// Before and after the inflation.
    pub phases: Vec<Phase>,
}

/// A time in which the specified shares stayed the same.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Phase {
    /// How long it took.
    pub seconds: f64,
    /// Who got what.
    pub programs: Vec<Program>,
}

/// What a program got in a phase.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Its tickets.
    pub tickets: u64,
    /// Part of the CPU time of all three that it should have received.
    pub specified_share: f64,
    /// Part of it that it did receive.
    pub received_share: f64,
    /// CPU time that it received.
    pub received_ns: u64,
    /// Received less specified, in quanta.
    pub error_quanta: f64,
}
