//! What the programs received, look by look and phase by phase.

use std::time::Duration;

use prorata_protocol::{ClientReport, StatusReport};
use prorata_report::plot::{Series, SharePlot};
use serde::Serialize;

use crate::shares;

/// Received shares are shown over this time; over less they say little.
const WINDOW: Duration = Duration::from_secs(1);

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
    pub fn new(program: String, cpu: u32, quantum_ns: u64) -> Self {
        Self {
            looks: Vec::new(),
            phases: Vec::new(),
            quantum_ns,
            program,
            cpu,
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
        // The latest look that is a window old; at first there is none yet.
        let old = self.looks[..=last].partition_point(|look| look.at + WINDOW <= now.at);
        let first = old.saturating_sub(1);
        shares::received(&self.looks[first].clients, &now.clients)
    }

    /// What each phase gave to whom, and what the daemon took between `before`,
    /// when it had started, and `after`.
    pub fn summary(&self, before: &StatusReport, after: &StatusReport) -> Summary {
        let ends = self
            .phases
            .iter()
            .skip(1)
            .copied()
            .chain([self.looks.len().saturating_sub(1)]);
        let since = |before: u64, after: u64| after.saturating_sub(before) as f64;
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
            policy: after.policy,
            engine: after.engine.clone(),
            mechanism: after.mechanism.clone(),
            daemon_cpu_share: since(before.own_cpu_ns, after.own_cpu_ns)
                / since(before.uptime_ns, after.uptime_ns).max(1.0),
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
        let seconds = (after.at - before.at).as_secs_f64();
        Phase {
            seconds,
            cpu_share: total_ns as f64 / 1e9 / seconds,
            programs: programs.collect(),
        }
    }

    /// Received shares over time.
    pub fn plot(&self, summary: &Summary) -> SharePlot {
        let last = self.looks.last();
        let series = |place: usize| {
            let of = |look: &Look| look.clients[place].clone();
            let received = (0..self.looks.len())
                .filter(|&look| self.looks[look].at - self.looks[0].at >= WINDOW)
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
    pub policy: prorata_protocol::PolicyName,
    /// Who decided: `user` or `kernel`.
    pub engine: String,
    /// How decisions were enforced.
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
    /// Part of the CPU that the three received together; other programs had
    /// the rest.
    pub cpu_share: f64,
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

#[cfg(test)]
mod tests {
    use prorata_protocol::{ClientState, EngineChoice, PolicyName};

    use super::*;

    const QUANTUM_NS: u64 = 20_000_000;

    fn client(name: &str, tickets: u32, received_ms: u64, specified_ms: u64) -> ClientReport {
        ClientReport {
            id: name.to_owned(),
            name: name.to_owned(),
            owner: 0,
            pid: 1,
            processes: 1,
            state: ClientState::Running,
            tickets: vec![(tickets, "me".to_owned())],
            value: 0.0,
            quantum_ns: None,
            share: 0.5,
            specified_ns: specified_ms * 1_000_000,
            received_ns: received_ms * 1_000_000,
            error_quanta: 0.0,
            turns: None,
        }
    }

    /// A second before [`status`], most of which it computed: that it started
    /// is no part of the demo.
    fn started() -> StatusReport {
        StatusReport {
            uptime_ns: 3_000_000_000,
            own_cpu_ns: 20_000_000,
            ..status()
        }
    }

    fn status() -> StatusReport {
        StatusReport {
            version: String::new(),
            pid: 1,
            engine: String::new(),
            engine_choice: EngineChoice::User,
            stays: false,
            mechanism: "idle".to_owned(),
            policy: PolicyName::Stride,
            quantum_ns: QUANTUM_NS,
            cpus: vec![3],
            uptime_ns: 4_000_000_000,
            own_cpu_ns: 40_000_000,
            decisions: 0,
            clients: 2,
            queues: None,
            abbreviated: false,
            traced: false,
            trouble: None,
        }
    }

    /// Two seconds at 3:1, two at 1:1; in the second phase `a` gets 40 ms too
    /// much.
    fn record() -> Record {
        let mut record = Record::new("burn".to_owned(), 3, QUANTUM_NS);
        let at = Duration::from_secs;
        record.begin_phase(at(0), vec![client("a", 3, 0, 0), client("b", 1, 0, 0)]);
        record.add(
            at(1),
            vec![client("a", 3, 750, 750), client("b", 1, 250, 250)],
        );
        record.add(
            at(2),
            vec![client("a", 3, 1500, 1500), client("b", 1, 500, 500)],
        );
        record.begin_phase(
            at(2),
            vec![client("a", 3, 1500, 1500), client("b", 3, 500, 500)],
        );
        record.add(
            at(4),
            vec![client("a", 3, 2540, 2500), client("b", 3, 1460, 1500)],
        );
        record
    }

    #[test]
    fn phases_are_counted_apart() {
        let summary = record().summary(&started(), &status());
        let [first, second] = &summary.phases[..] else {
            panic!("{summary:?}")
        };
        assert_eq!((first.seconds, second.seconds), (2.0, 2.0));
        assert_eq!((first.cpu_share, second.cpu_share), (1.0, 1.0));
        let shares = |phase: &Phase| {
            phase
                .programs
                .iter()
                .map(|p| (p.specified_share, p.received_share))
                .collect::<Vec<_>>()
        };
        assert_eq!(shares(first), [(0.75, 0.75), (0.25, 0.25)]);
        assert_eq!(shares(second), [(0.5, 0.52), (0.5, 0.48)]);
        assert_eq!(second.programs[0].error_quanta, 2.0);
        assert_eq!(second.programs[1].error_quanta, -2.0);
        assert_eq!(
            (first.programs[1].tickets, second.programs[1].tickets),
            (1, 3)
        );
        assert_eq!(summary.daemon_cpu_share, 0.02);
    }

    #[test]
    fn the_last_second_is_shown() {
        let record = record();
        // Only the look two seconds ago is that old, so the window begins there.
        let received: Vec<f64> = record.now().iter().map(|(_, received)| *received).collect();
        assert_eq!(received, [0.52, 0.48]);
    }

    #[test]
    fn the_plot_names_what_happened() {
        let record = record();
        let plot = record.plot(&record.summary(&started(), &status()));
        assert_eq!(plot.events, [(2.0, "b inflated".to_owned())]);
        assert_eq!(plot.series[0].name, "a: 3 tickets");
        assert_eq!(plot.series[1].name, "b: 1, then 3 tickets");
        assert_eq!(plot.series[1].specified, [(0.0, 0.25), (2.0, 0.5)]);
        assert_eq!(plot.series[0].received.first(), Some(&(1.0, 0.75)));
        assert_eq!(plot.duration_s, 4.0);
    }
}
