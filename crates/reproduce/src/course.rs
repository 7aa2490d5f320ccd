//! What clients received over time, whatever engine gave it to them.

use prorata_sim::Measures;
use prorata_sim::scenario::Scenario;

use crate::error::ReproduceError;
use crate::experiment::Context;
use crate::statistics;

/// What clients had received at some moments.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Course {
    /// Names of the clients, in the scenario's order.
    pub clients: Vec<String>,
    /// In order of time; the first at 0.
    pub points: Vec<Point>,
    /// What is counted.
    pub unit: &'static str,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Point {
    /// Seconds of the scenario, also where it is gone through faster.
    pub at_s: f64,
    /// By client, since the start.
    pub received: Vec<f64>,
}

impl Course {
    /// Everything received by a client up to a time, read off the line
    /// between the two nearest moments.
    pub fn received(&self, client: usize, at_s: f64) -> f64 {
        let after = self.points.partition_point(|point| point.at_s < at_s);
        let Some(next) = self.points.get(after) else {
            return self.points.last().map_or(0.0, |last| last.received[client]);
        };
        let Some(before) = after.checked_sub(1).map(|before| &self.points[before]) else {
            return next.received[client];
        };
        let part = (at_s - before.at_s) / (next.at_s - before.at_s);
        before.received[client] + part * (next.received[client] - before.received[client])
    }

    /// What a client received between two times.
    pub fn between(&self, client: usize, (from_s, to_s): (f64, f64)) -> f64 {
        self.received(client, to_s) - self.received(client, from_s)
    }

    /// A client's part of everything received over whole waits: from the
    /// beginning of its first turn to that of its last. Turns in a row are one.
    /// Nothing if it did not wait in between; the points must be closer than
    /// its turns.
    pub fn share_over_whole_waits(&self, client: usize) -> Option<f64> {
        let begins = self.begins(client);
        let (first, last) = (*begins.first()?, *begins.last()?);
        let received = last.received[client] - first.received[client];
        let total = |point: &Point| point.received.iter().sum::<f64>();
        let all = total(last) - total(first);
        (all > 0.0).then(|| received / all)
    }

    /// The last moments before a client's turns, each after another client
    /// had one. The first is left out: processes run before anybody decides,
    /// and what follows is no whole wait. Programs that the experiment knows
    /// nothing of may run within a turn, so a pause alone is no wait.
    fn begins(&self, client: usize) -> Vec<&Point> {
        let spans = || self.points.windows(2);
        let rate = |span: &[Point], client: usize| {
            let received = span[1].received[client] - span[0].received[client];
            received / (span[1].at_s - span[0].at_s)
        };
        // A process that does not run may still get a sliver of its CPU.
        let clients = 0..self.clients.len();
        let slivers: Vec<f64> = clients
            .clone()
            .map(|client| statistics::largest(spans().map(|span| rate(span, client))) / 10.0)
            .collect();
        let runs = |span: &[Point], client: usize| rate(span, client) > slivers[client];
        let (mut begins, mut waits) = (Vec::new(), true);
        for span in spans() {
            if runs(span, client) {
                if waits {
                    begins.push(&span[0]);
                }
                waits = false;
            } else if clients.clone().any(|other| runs(span, other)) {
                waits = true;
            }
        }
        begins.into_iter().skip(1).collect()
    }

    /// When it ends, in seconds.
    pub fn end_s(&self) -> f64 {
        self.points.last().map_or(0.0, |point| point.at_s)
    }

    /// A client's place.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.clients.iter().position(|client| client == name)
    }

    /// Time and what a client had received, to be drawn.
    pub fn curve(&self, client: usize) -> Vec<(f64, f64)> {
        let points = self.points.iter();
        points
            .map(|point| (point.at_s, point.received[client]))
            .collect()
    }
}

/// The course of a simulation. The scenario says how often to look.
pub(crate) fn simulated(
    context: &mut Context<'_>,
    scenario: &Scenario,
    seed: u64,
) -> Result<Course, ReproduceError> {
    if scenario.measure.every.is_none() {
        return Err(context.malformed("needs [measure] every: say how often to look"));
    }
    let (machine, measures) = context.simulate(scenario, seed, Measures::new())?;
    let count = machine.client_count();
    let mut points = vec![Point {
        at_s: 0.0,
        received: vec![0.0; count as usize],
    }];
    points.extend(measures.series().iter().map(|point| Point {
        at_s: point.time_ns as f64 / 1e9,
        received: point.service.iter().map(|s| s.0 as f64 / 1e9).collect(),
    }));
    Ok(Course {
        clients: (0..count)
            .map(|c| machine.client_name(c).into_owned())
            .collect(),
        points,
        unit: "CPU seconds",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_moments_it_is_read_off_a_line() {
        let point = |at_s, received| Point {
            at_s,
            received: vec![received],
        };
        let course = Course {
            clients: vec!["A".into()],
            points: vec![point(0.0, 0.0), point(2.0, 10.0), point(4.0, 10.0)],
            unit: "",
        };
        let at = [0.0, 1.0, 2.0, 3.0, 9.0].map(|at_s| course.received(0, at_s));
        assert_eq!(at, [0.0, 5.0, 10.0, 10.0, 10.0]);
        assert_eq!(course.between(0, (1.0, 3.0)), 5.0);
        assert_eq!((course.find("A"), course.find("B")), (Some(0), None));
    }

    #[test]
    fn whole_waits_begin_and_end_with_a_turn() {
        // A runs first, then in the third, fourth, seventh and eighth second,
        // with a sliver in between; in the ninth nobody does, in the others B.
        // The tenth of A's goes on with its turn before the pause.
        let a = [0.0, 0.5, 0.5, 1.5, 2.5, 2.5, 2.51, 3.51, 4.51, 4.51, 5.0];
        let b = [0.0, 0.0, 1.0, 1.0, 1.0, 2.0, 2.99, 2.99, 2.99, 2.99, 2.99];
        let points = a.into_iter().zip(b).zip(0..).map(|((a, b), at_s)| Point {
            at_s: f64::from(at_s),
            received: vec![a, b],
        });
        let mut course = Course {
            clients: vec!["A".into(), "B".into()],
            points: points.collect(),
            unit: "",
        };
        // From the third second to the seventh: 2 and a sliver of 4.
        let share = course.share_over_whole_waits(0).expect("it waited");
        assert!((share - 2.01 / 4.0).abs() < 1e-12, "{share}");
        // B's second turn is the only one that may count.
        assert_eq!(course.share_over_whole_waits(1), None);
        course.points.truncate(4);
        assert_eq!(course.share_over_whole_waits(0), None);
    }
}
