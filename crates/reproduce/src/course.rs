//! CPU time of clients over time, on any engine.

use prorata_scenario::Scenario;
use prorata_sim::Measures;

use crate::error::ReproduceError;
use crate::experiment::Context;

/// What clients had received at some moments.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Course {
    /// Names of the clients, in the scenario's order.
    pub clients: Vec<String>,
    /// In order of time; the first at 0.
    pub points: Vec<CoursePoint>,
    /// Of what was received.
    pub unit: &'static str,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct CoursePoint {
    /// Seconds of the scenario, also where the run is faster.
    pub at_s: f64,
    /// CPU time by client, since the start.
    pub received: Vec<f64>,
    /// Iterations or trials by client, since the start; empty where no
    /// programs count them.
    pub counted: Vec<f64>,
    /// Whether each client has a turn, or received something since the moment
    /// before. What it gets of a turn comes after the last moment at which it had
    /// none.
    pub has_turn: Vec<bool>,
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

    /// The same in what the programs counted themselves, if they did.
    pub fn counted(&self) -> Option<Course> {
        let mut course = self.clone();
        course.unit = "iterations";
        for point in &mut course.points {
            if point.counted.is_empty() {
                return None;
            }
            std::mem::swap(&mut point.received, &mut point.counted);
        }
        Some(course)
    }

    /// A client's part of everything received over whole waits: from the
    /// beginning of its second turn to that of its last. Turns in a row are
    /// one. Nothing if it did not wait in between; the points must be closer
    /// than its turns.
    pub fn share_over_whole_waits(&self, client: usize) -> Option<f64> {
        let begins = self.begins(client);
        let (first, last) = (*begins.first()?, *begins.last()?);
        let received = last.received[client] - first.received[client];
        let total = |point: &CoursePoint| point.received.iter().sum::<f64>();
        let all = total(last) - total(first);
        (all > 0.0).then(|| received / all)
    }

    /// The last moments before a client's turns. The first turn is left out: the client may
    /// not have waited for it.
    fn begins(&self, client: usize) -> Vec<&CoursePoint> {
        let spans = self.points.windows(2);
        let begins = spans.filter(|span| !span[0].has_turn[client] && span[1].has_turn[client]);
        begins.map(|span| &span[0]).skip(1).collect()
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
    let mut received = vec![0.0; count as usize];
    let mut points = vec![CoursePoint {
        at_s: 0.0,
        received: received.clone(),
        counted: Vec::new(),
        has_turn: vec![false; count as usize],
    }];
    points.extend(measures.series().iter().map(|point| {
        let now = point
            .received_ns
            .iter()
            .map(|ns| *ns as f64 / 1e9)
            .collect();
        let before = std::mem::replace(&mut received, now);
        CoursePoint {
            at_s: point.time_ns as f64 / 1e9,
            received: received.clone(),
            counted: Vec::new(),
            has_turn: received
                .iter()
                .zip(before)
                .map(|(now, before)| *now > before)
                .collect(),
        }
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

    /// A course of one client, by what it received each second.
    fn course(received: &[f64]) -> Course {
        let points = received
            .iter()
            .zip(0..)
            .map(|(received, at_s)| CoursePoint {
                at_s: f64::from(at_s),
                received: vec![*received],
                counted: vec![2.0 * received],
                has_turn: vec![false],
            });
        Course {
            clients: vec!["A".into()],
            points: points.collect(),
            unit: "CPU seconds",
        }
    }

    #[test]
    fn between_moments_it_is_read_off_a_line() {
        let course = course(&[0.0, 5.0, 10.0, 10.0]);
        let at = [0.0, 0.5, 2.0, 2.5, 9.0].map(|at_s| course.received(0, at_s));
        assert_eq!(at, [0.0, 2.5, 10.0, 10.0, 10.0]);
        assert_eq!(course.between(0, (0.5, 2.5)), 7.5);
        assert_eq!((course.find("A"), course.find("B")), (Some(0), None));
    }

    #[test]
    fn iterations_are_read_as_cpu_time_is() {
        let mut course = course(&[0.0, 5.0]);
        let counted = course.counted().expect("it counts");
        assert_eq!(
            (counted.received(0, 1.0), counted.unit),
            (10.0, "iterations")
        );
        course.points[1].counted.clear();
        assert_eq!(course.counted(), None);
    }

    #[test]
    fn whole_waits_begin_and_end_with_a_turn() {
        // A has a turn up to the first second, the third and fourth, the seventh and eighth
        // and from the ninth on, and a sliver in between; B has all others but the ninth,
        // when neither has one.
        let a = [0.0, 0.5, 0.5, 1.5, 2.5, 2.5, 2.51, 3.51, 4.51, 4.51, 5.0];
        let b = [0.0, 0.0, 1.0, 1.0, 1.0, 2.0, 2.99, 2.99, 2.99, 2.99, 2.99];
        let has_turn = "-ABAABBAA-A".chars();
        let points = a.into_iter().zip(b).zip(has_turn).zip(0..);
        let points = points.map(|(((a, b), turn), at_s)| CoursePoint {
            at_s: f64::from(at_s),
            received: vec![a, b],
            counted: Vec::new(),
            has_turn: vec![turn == 'A', turn == 'B'],
        });
        let mut course = Course {
            clients: vec!["A".into(), "B".into()],
            points: points.collect(),
            unit: "",
        };
        // From the end of the second second to that of the ninth: 4.01 of 7.
        let share = course.share_over_whole_waits(0).expect("it waited");
        assert!((share - 4.01 / 6.0).abs() < 1e-12, "{share}");
        // B's second turn is the only one that may count.
        assert_eq!(course.share_over_whole_waits(1), None);
        course.points.truncate(4);
        assert_eq!(course.share_over_whole_waits(0), None);
    }
}
