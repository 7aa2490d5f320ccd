//! Experiments on real processes: a stage plays the scenario, with programs that compute
//! and count what they do.

pub(crate) mod switches;
pub(crate) mod worker;

use std::fs::File;
use std::io;

use prorata_core::ledger::{Operation, Principal};
use prorata_scenario::Scenario;
use prorata_scenario::file::{Amount, Rule, Tickets, Time};
use prorata_scenario::measure::PointReport;
use prorata_scenario::plan::client_id;
use prorata_stage::{Cast, ProcessEngine, Stage, StageError, run_cast};
use rustix::fs::{MemfdFlags, memfd_create};

use self::worker::{NAME, Progress, Work};
use crate::course::{Course, CoursePoint};
use crate::error::ReproduceError;
use crate::figure::Pace;
use crate::reproduction::Watch;
use crate::statistics::median;

type Result<T> = std::result::Result<T, ReproduceError>;

/// Points of a run whose scenario does not say how many.
const POINTS: u64 = 100;

/// Tickets of an integration whose relative error is 1: enough to tell the errors after
/// 10^12 trials apart, and few enough for the errors of the first 1000.
const TICKETS_AT_ERROR_1: f64 = 1e13;

/// Plays a scenario and follows what its clients receive, from when the clients that start
/// at the beginning had some time to settle.
///
/// Time is CPU time that all clients receive together. So a run has as many quanta on a
/// busy machine as on a quiet one.
pub(crate) fn course(
    (kind, seed): (&'static ProcessEngine, u64),
    scenario: &Scenario,
    pace: &Pace,
    settle: Time,
    watch: &mut dyn Watch,
) -> Result<Course> {
    let faster = |time: Time| Time(time.0 / u64::from(pace.times));
    let settle = faster(settle);
    let later = |time: Time| Time(faster(time).0 + settle.0);
    let every = scenario.measure.every.map(faster);
    let every = every.unwrap_or(Time(faster(scenario.duration).0 / POINTS));
    let mut played = paced(scenario, pace, later(scenario.duration), every);
    let mut work = Work::Arithmetic;
    for client in &mut played.clients {
        if client.start > Time::ZERO {
            client.start = later(client.start);
        }
        if let Tickets::Ruled(Rule::MonteCarlo(rule)) = &client.tickets {
            // The error that the program itself has reached takes the place of the rule.
            work = Work::MonteCarlo;
            client.tickets = Tickets::Fixed(vec![Amount {
                amount: rule.scale,
                currency: rule.currency.clone(),
            }]);
        }
    }
    let programs = Programs::new(scenario)?;
    let cast = programs.cast(work)?;
    let mut follow = Follow {
        begin: Moment::zero(programs.0.len()),
        programs,
        work,
        times: pace.times.into(),
        settle,
        points: Vec::new(),
        told_s: 0,
        watch,
    };
    if settle == Time::ZERO {
        follow.add(follow.begin.clone(), Vec::new());
    }
    run_cast(&played, seed, kind, Some(cast), &mut follow).map_err(interrupted)?;
    Ok(Course {
        clients: scenario.clients.iter().map(|c| c.name.clone()).collect(),
        points: follow.points,
        unit: "CPU seconds",
    })
}

/// A scenario at another pace.
fn paced(scenario: &Scenario, pace: &Pace, duration: Time, every: Time) -> Scenario {
    let mut scenario = scenario.clone();
    scenario.machine.quantum = pace.quantum;
    scenario.duration = duration;
    scenario.measure.every = Some(every);
    scenario
}

fn interrupted(error: StageError) -> ReproduceError {
    match error {
        StageError::Interrupted => ReproduceError::Interrupted,
        error => error.into(),
    }
}

/// The programs in the parts of all clients, by the files that they write to.
struct Programs(Vec<File>);

impl Programs {
    fn new(scenario: &Scenario) -> Result<Programs> {
        let clients = scenario.clients.iter();
        let count = clients.map(|client| client.count.unwrap_or(1)).sum();
        let files = (0..count).map(|_| Ok(memfd_create(NAME, MemfdFlags::CLOEXEC)?.into()));
        files
            .collect::<io::Result<_>>()
            .map(Programs)
            .map_err(failed)
    }

    fn cast(&self, work: Work) -> Result<Cast> {
        let outputs = self.0.iter().map(File::try_clone);
        Ok(Cast {
            program: "/proc/self/exe".to_owned(),
            arguments: vec![NAME.to_owned(), work.argument().to_owned()],
            outputs: outputs.collect::<io::Result<_>>().map_err(failed)?,
        })
    }

    fn progress(&self) -> impl Iterator<Item = Option<Progress>> {
        self.0.iter().map(Progress::read)
    }

    /// Iterations or trials of each program.
    fn done(&self) -> Vec<u64> {
        let progress = self.progress();
        progress.map(|p| p.map_or(0, |p| p.done)).collect()
    }
}

fn failed(error: io::Error) -> ReproduceError {
    ReproduceError::Process {
        doing: "make a file for a process",
        error,
    }
}

/// What all clients have received and done, by client.
#[derive(Clone)]
struct Moment {
    received_ns: Vec<u64>,
    done: Vec<u64>,
}

impl Moment {
    fn zero(clients: usize) -> Moment {
        Moment {
            received_ns: vec![0; clients],
            done: vec![0; clients],
        }
    }
}

/// Follows a run, point by point.
struct Follow<'a> {
    programs: Programs,
    work: Work,
    /// So many times faster than in the scenario the run goes.
    times: f64,
    settle: Time,
    /// Where counting begins.
    begin: Moment,
    points: Vec<CoursePoint>,
    /// The last second of the run that was told.
    told_s: u64,
    watch: &'a mut dyn Watch,
}

/// How far a run is, once a second.
fn news(told_s: &mut u64, now_ns: u64, end_ns: u64) -> Option<String> {
    let [now_s, end_s] = [now_ns, end_ns].map(|ns| ns / 1_000_000_000);
    let is_news = now_s > *told_s;
    *told_s = now_s;
    is_news.then(|| format!("{now_s} of {end_s} s"))
}

impl Follow<'_> {
    /// Adds a point unless nothing was received since the last one.
    fn add(&mut self, now: Moment, turns: Vec<bool>) {
        let since = |now: &[u64], begin: &[u64], scale: f64| -> Vec<f64> {
            let pairs = now.iter().zip(begin);
            pairs
                .map(|(now, begin)| now.saturating_sub(*begin) as f64 * scale)
                .collect()
        };
        let received = since(&now.received_ns, &self.begin.received_ns, self.times / 1e9);
        let at_s = received.iter().sum();
        let last = self.points.last();
        if last.is_some_and(|last| last.at_s >= at_s) {
            return;
        }
        let had = |client: usize| last.map_or(0.0, |last| last.received[client]);
        let has_turn = match turns.is_empty() {
            false => turns,
            true => received.iter().zip(0..).map(|(r, c)| *r > had(c)).collect(),
        };
        self.points.push(CoursePoint {
            at_s,
            received,
            counted: since(&now.done, &self.begin.done, 1.0),
            has_turn,
        });
    }

    /// Gives each integration tickets in proportion to the square of its relative error
    /// (1994, 5.2).
    fn follow_errors(&self, stage: &Stage) {
        for (progress, client) in self.programs.progress().zip(0..) {
            let Some(progress) = progress else { continue };
            let tickets = TICKETS_AT_ERROR_1 * progress.relative_error.powi(2);
            // The conversion takes what is too large to the largest.
            set_tickets(stage, client, tickets.max(1.0) as u32);
        }
        stage.nudge();
    }
}

impl prorata_stage::Watch for Follow<'_> {
    fn goes_on(&mut self, now_ns: u64, end_ns: u64) -> bool {
        if let Some(news) = news(&mut self.told_s, now_ns, end_ns) {
            self.watch.step(&news);
        }
        !self.watch.is_over()
    }

    fn sampled(&mut self, stage: &Stage, _: u64, point: &PointReport) {
        if point.time_ns < self.settle.0 {
            return;
        }
        let now = Moment {
            received_ns: point.received_ns.clone(),
            done: self.programs.done(),
        };
        if self.points.is_empty() {
            self.begin = now.clone();
        }
        // Asked for last: a client without a turn has received nothing of one.
        self.add(now, turns(stage, point.received_ns.len() as u32));
        if self.work == Work::MonteCarlo {
            self.follow_errors(stage);
        }
    }
}

/// Whether each client has a turn, where the engine shows turns.
fn turns(stage: &Stage, clients: u32) -> Vec<bool> {
    if !stage.shows_turns() {
        return Vec::new();
    }
    let dispatcher = stage.dispatcher();
    let turns = (0..clients).map(|client| dispatcher.runs(client_id(client)));
    turns.collect()
}

fn set_tickets(stage: &Stage, client: u32, amount: u32) {
    let mut dispatcher = stage.dispatcher();
    let ledger = dispatcher.ledger();
    let ticket = ledger.funding(client_id(client)).next();
    let checked = ticket.and_then(|ticket| {
        let operation = Operation::SetAmount { ticket, amount };
        ledger.check(&Principal::ROOT, operation).ok()
    });
    if let Some(checked) = checked {
        dispatcher.apply(checked);
    }
}

/// Runs of an overhead's measurement; an odd number.
const RUNS: u32 = 5;

/// Points of a span of such a run. Before each span one point passes: the first turns are
/// still to be given.
const SPAN: usize = 10;

/// What is lost under the engine against the plain kernel, in per cent.
pub(crate) struct Lost {
    /// Of CPU time.
    pub received: f64,
    /// Of iterations.
    pub counted: f64,
}

/// Medians of several runs. In each the same processes have a span under the engine and
/// then a span under the plain kernel, so that other load falls on both.
pub(crate) fn lost(
    (kind, seed): (&'static ProcessEngine, u64),
    scenario: &Scenario,
    pace: &Pace,
    watch: &mut dyn Watch,
) -> Result<Lost> {
    let span = scenario.duration.0 / u64::from(pace.times * RUNS);
    let every = span / SPAN as u64;
    let duration = every * 2 * (SPAN as u64 + 1);
    let played = paced(scenario, pace, Time(duration), Time(every));
    let (mut received, mut counted) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let programs = Programs::new(scenario)?;
        let cast = programs.cast(Work::Arithmetic)?;
        let mut comparison = Comparison {
            programs,
            moments: Vec::new(),
            watch,
        };
        run_cast(&played, seed, kind, Some(cast), &mut comparison).map_err(interrupted)?;
        let managed = rate(&comparison.moments[..=SPAN]);
        let plain = rate(&comparison.moments[SPAN + 1..]);
        received.push((1.0 - managed.0 / plain.0) * 100.0);
        counted.push((1.0 - managed.1 / plain.1) * 100.0);
    }
    Ok(Lost {
        received: median(&received),
        counted: median(&counted),
    })
}

/// Compares the halves of a run: after the first, processes are left to the plain kernel.
struct Comparison<'a> {
    programs: Programs,
    /// Real time, CPU time and iterations of all programs together.
    moments: Vec<[u64; 3]>,
    watch: &'a mut dyn Watch,
}

impl prorata_stage::Watch for Comparison<'_> {
    fn goes_on(&mut self, _: u64, _: u64) -> bool {
        !self.watch.is_over()
    }

    fn sampled(&mut self, stage: &Stage, real_ns: u64, point: &PointReport) {
        let received_ns = point.received_ns.iter().sum();
        let done = self.programs.done().iter().sum();
        self.moments.push([real_ns, received_ns, done]);
        if self.moments.len() == SPAN + 1 {
            (0..point.received_ns.len() as u32).for_each(|c| stage.release(client_id(c)));
        }
    }
}

/// CPU time and iterations for each nanosecond of real time.
fn rate(moments: &[[u64; 3]]) -> (f64, f64) {
    let (first, last) = (moments[0], moments[moments.len() - 1]);
    let since = |figure: usize| (last[figure] - first[figure]) as f64;
    (since(1) / since(0), since(2) / since(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_tells_how_far_it_is_once_a_second() {
        let mut told_s = 0;
        let times_ms = [0, 999, 1_000, 1_900, 3_100];
        let told = times_ms.map(|ms| news(&mut told_s, ms * 1_000_000, 60_500_000_000));
        let told = told.each_ref().map(Option::as_deref);
        let known = [None, None, Some("1 of 60 s"), None, Some("3 of 60 s")];
        assert_eq!(told, known);
    }
}
