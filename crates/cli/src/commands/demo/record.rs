//! The programs' received time, by sample and by phase.

use prorata_core::policy::PolicyName;
use prorata_report::plot::{Series, SharePlot};
use prorata_scenario::measure::PointReport;
use serde::Serialize;

use super::{INFLATED, PROGRAMS, QUANTUM_NS};

/// Received shares are over this time, because shorter windows have few quanta.
const WINDOW_NS: u64 = 1_000_000_000;

/// A sample of all programs.
#[derive(Clone, Debug)]
struct Look {
    /// Time of the scenario.
    at_ns: u64,
    real_ns: u64,
    received_ns: Vec<u64>,
    specified_ns: Vec<u64>,
}

/// All samples of a demo.
#[derive(Clone, Debug)]
pub struct Record {
    /// At least the first sample.
    looks: Vec<Look>,
    /// CPU time of our own process and real time, at the first and the last sample.
    own_ns: Option<[(u64, u64); 2]>,
    program: String,
    cpu: u32,
    half_ns: u64,
}

/// The present state of a program in the live view.
#[derive(Clone, PartialEq, Debug)]
pub struct Now {
    pub name: &'static str,
    pub tickets: u32,
    pub specified_share: f64,
    /// Share received over the last second.
    pub received_share: f64,
    /// Error since the start.
    pub error_quanta: f64,
}

impl Record {
    /// A record with the first sample only.
    pub fn new(program: String, cpu: u32, seconds: u32) -> Self {
        let nothing = vec![0; PROGRAMS.len()];
        let begin = Look {
            at_ns: 0,
            real_ns: 0,
            received_ns: nothing.clone(),
            specified_ns: nothing,
        };
        Self {
            looks: vec![begin],
            own_ns: None,
            program,
            cpu,
            half_ns: u64::from(seconds) * 500_000_000,
        }
    }

    /// Adds a sample, with the CPU time that our own process has used.
    pub fn add(&mut self, point: &PointReport, real_ns: u64, own_cpu_ns: u64) {
        self.looks.push(Look {
            at_ns: point.time_ns,
            real_ns,
            received_ns: point.received_ns.clone(),
            specified_ns: point.specified_ns.clone(),
        });
        let now = (own_cpu_ns, real_ns);
        let first = self.own_ns.map_or(now, |own_ns| own_ns[0]);
        self.own_ns = Some([first, now]);
    }

    fn last(&self) -> &Look {
        &self.looks[self.looks.len() - 1]
    }

    /// Time of the last sample.
    pub fn now_ns(&self) -> u64 {
        self.last().at_ns
    }

    /// The programs at the last sample.
    pub fn now(&self) -> Vec<Now> {
        let last = self.last();
        let tickets = tickets(last.at_ns > self.half_ns);
        let total: u32 = tickets.iter().sum();
        let received = self.received_until(self.looks.len() - 1);
        let programs = PROGRAMS.iter().enumerate().map(|(program, (name, _))| Now {
            name,
            tickets: tickets[program],
            specified_share: f64::from(tickets[program]) / f64::from(total),
            received_share: received[program],
            error_quanta: quanta(last.received_ns[program], last.specified_ns[program]),
        });
        programs.collect()
    }

    /// Each program's share of the received time in the window that ends with a sample.
    fn received_until(&self, last: usize) -> Vec<f64> {
        let now = &self.looks[last];
        // The window starts at the latest sample that is old enough, or at the first.
        let old = self.looks[..=last].partition_point(|look| look.at_ns + WINDOW_NS <= now.at_ns);
        let first = &self.looks[old.saturating_sub(1)];
        parts(&since(&first.received_ns, &now.received_ns))
    }

    /// The results of each phase.
    pub fn summary(
        &self,
        policy: PolicyName,
        engine: &'static str,
        mechanism: &'static str,
    ) -> Summary {
        let half = self.half();
        let [first, last] = self.own_ns.unwrap_or_default();
        Summary {
            program: self.program.clone(),
            cpu: self.cpu,
            quantum_ns: QUANTUM_NS,
            policy,
            engine,
            mechanism,
            daemon_cpu_share: (last.0 - first.0) as f64 / (last.1 - first.1).max(1) as f64,
            phases: [
                self.phase(0, half, tickets(false)),
                self.phase(half, self.looks.len() - 1, tickets(true)),
            ],
        }
    }

    /// The first sample of the second phase.
    fn half(&self) -> usize {
        let first = self
            .looks
            .partition_point(|look| look.at_ns <= self.half_ns);
        first - 1
    }

    fn phase(&self, first: usize, last: usize, tickets: [u32; PROGRAMS.len()]) -> Phase {
        let (before, after) = (&self.looks[first], &self.looks[last]);
        let received_ns = since(&before.received_ns, &after.received_ns);
        let specified_ns = since(&before.specified_ns, &after.specified_ns);
        // Specified and received time have separate totals: an engine adds a client's due
        // time at the end of its turns, so the two totals differ by some quanta.
        let specified = parts(&specified_ns);
        let received = parts(&received_ns);
        let programs = PROGRAMS.iter().enumerate();
        let programs = programs.map(|(program, (name, _))| Program {
            name,
            tickets: tickets[program],
            specified_share: specified[program],
            received_share: received[program],
            received_ns: received_ns[program],
            error_quanta: quanta(received_ns[program], specified_ns[program]),
        });
        let total_ns: u64 = received_ns.iter().sum();
        let real_ns = after.real_ns - before.real_ns;
        Phase {
            seconds: real_ns as f64 / 1e9,
            cpu_share: total_ns as f64 / real_ns.max(1) as f64,
            programs: programs.collect(),
        }
    }

    /// Received shares over time.
    pub fn plot(&self, summary: &Summary) -> SharePlot {
        let half = self.half();
        let half_s = seconds(self.looks[half].at_ns);
        let series = PROGRAMS.iter().enumerate().map(|(program, (name, _))| {
            let looks = (0..self.looks.len()).filter(|look| self.looks[*look].at_ns >= WINDOW_NS);
            let received = looks.map(|look| {
                let share = self.received_until(look)[program];
                (seconds(self.looks[look].at_ns), share)
            });
            let phases = [0.0, half_s].into_iter().zip(&summary.phases);
            let mut tickets: Vec<String> = summary
                .phases
                .iter()
                .map(|phase| phase.programs[program].tickets.to_string())
                .collect();
            tickets.dedup();
            Series {
                name: format!("{name}: {} tickets", tickets.join(", then ")),
                received: received.collect(),
                specified: phases
                    .map(|(from_s, phase)| (from_s, phase.programs[program].specified_share))
                    .collect(),
            }
        });
        let (inflated, _) = PROGRAMS[PROGRAMS.len() - 1];
        SharePlot {
            title: "Three programs share one CPU by tickets".to_owned(),
            caption: format!(
                "CPU time that three copies of {} received over the last second (solid), and what was specified (dashed)",
                self.program
            ),
            duration_s: seconds(self.now_ns()),
            series: series.collect(),
            events: vec![(half_s, format!("{inflated} inflated"))],
        }
    }
}

/// The programs' tickets before or after the inflation.
fn tickets(is_inflated: bool) -> [u32; PROGRAMS.len()] {
    let mut tickets = PROGRAMS.map(|(_, tickets)| tickets);
    if is_inflated {
        tickets[PROGRAMS.len() - 1] = INFLATED;
    }
    tickets
}

fn since(before: &[u64], after: &[u64]) -> Vec<u64> {
    let pairs = before.iter().zip(after);
    pairs
        .map(|(before, after)| after.saturating_sub(*before))
        .collect()
}

fn parts(times: &[u64]) -> Vec<f64> {
    let total: u64 = times.iter().sum();
    let parts = times.iter().map(|time| *time as f64 / total.max(1) as f64);
    parts.collect()
}

fn quanta(received_ns: u64, specified_ns: u64) -> f64 {
    (received_ns as f64 - specified_ns as f64) / QUANTUM_NS as f64
}

fn seconds(time_ns: u64) -> f64 {
    time_ns as f64 / 1e9
}

/// The results of a demo, as `--json` prints them.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// The program, which ran three times.
    pub program: String,
    pub cpu: u32,
    pub quantum_ns: u64,
    pub policy: PolicyName,
    /// The engine: `user` or `kernel`.
    pub engine: &'static str,
    /// The engine's mechanism.
    pub mechanism: &'static str,
    /// CPU time of the engine, as a part of one CPU.
    pub daemon_cpu_share: f64,
    /// Before and after the inflation.
    pub phases: [Phase; 2],
}

/// A time of constant specified shares.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Phase {
    /// Length in real time.
    pub seconds: f64,
    /// Part of the CPU that the three programs received together.
    pub cpu_share: f64,
    pub programs: Vec<Program>,
}

/// Results of a program in a phase.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Program {
    pub name: &'static str,
    pub tickets: u32,
    /// Its specified part of the three programs' CPU time.
    pub specified_share: f64,
    /// Its received part of that time.
    pub received_share: f64,
    /// Its received CPU time.
    pub received_ns: u64,
    /// Received less specified, in quanta.
    pub error_quanta: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times in milliseconds: of the scenario, in real time, received and specified.
    type Row = (u64, u64, [u64; 3], [u64; 3]);

    /// Two seconds at 3:2:1 and two at 3:2:4, which took three on a busy host. At the end
    /// the first program is two quanta ahead, and specified times sum to 40 ms more than
    /// received times.
    fn record() -> Record {
        let rows: [Row; 3] = [
            (1000, 1000, [500, 333, 167], [500, 333, 167]),
            (2000, 2000, [1000, 667, 333], [1000, 667, 333]),
            (4000, 5000, [1707, 1111, 1182], [1680, 1120, 1240]),
        ];
        let mut record = Record::new("burn".to_owned(), 3, 4);
        let ns = |times: [u64; 3]| times.map(|ms| ms * 1_000_000).to_vec();
        for (at_ms, real_ms, received, specified) in rows {
            let point = PointReport {
                time_ns: at_ms * 1_000_000,
                received_ns: ns(received),
                specified_ns: ns(specified),
                relative_errors: Vec::new(),
                waiting_threads: None,
                waiting_in_pools: Vec::new(),
            };
            record.add(&point, real_ms * 1_000_000, (20 + real_ms / 50) * 1_000_000);
        }
        record
    }

    fn summary() -> Summary {
        record().summary(PolicyName::Stride, "user", "idle")
    }

    #[test]
    fn phases_are_counted_apart() {
        let [first, second] = summary().phases;
        assert_eq!((first.seconds, second.seconds), (2.0, 3.0));
        assert_eq!(first.cpu_share, 1.0);
        assert!((second.cpu_share - 2.0 / 3.0).abs() < 1e-9);
        let tickets = |phase: &Phase| {
            let programs = phase.programs.iter();
            programs.map(|program| program.tickets).collect::<Vec<_>>()
        };
        assert_eq!(
            (tickets(&first), tickets(&second)),
            (vec![3, 2, 1], vec![3, 2, 4])
        );
        assert_eq!(first.programs[0].specified_share, 0.5);
        assert_eq!(second.programs[0].received_share, 0.3535);
        assert!((second.programs[0].error_quanta - 1.35).abs() < 1e-9);
    }

    #[test]
    fn specified_shares_sum_to_one_where_accounts_are_longer_than_what_was_received() {
        for phase in summary().phases {
            let sum: f64 = phase.programs.iter().map(|p| p.specified_share).sum();
            assert!((sum - 1.0).abs() < 1e-12, "{sum}");
        }
    }

    #[test]
    fn only_what_sharing_out_took_between_the_looks_counts() {
        assert_eq!(summary().daemon_cpu_share, 0.02);
    }

    #[test]
    fn the_last_second_is_shown() {
        let now = record().now();
        // Only the sample two seconds ago is old enough for the window.
        assert_eq!(now[0].received_share, 0.3535);
        assert_eq!(now[2].tickets, INFLATED);
        assert_eq!(now[1].specified_share, 2.0 / 9.0);
    }

    #[test]
    fn the_plot_names_what_happened() {
        let plot = record().plot(&summary());
        assert_eq!(plot.events, [(2.0, "third inflated".to_owned())]);
        assert_eq!(plot.series[0].name, "first: 3 tickets");
        assert_eq!(plot.series[2].name, "third: 1, then 4 tickets");
        assert_eq!(plot.series[0].specified[0], (0.0, 0.5));
        assert_eq!(plot.series[0].received.first(), Some(&(1.0, 0.5)));
        assert_eq!(plot.duration_s, 4.0);
    }
}
