//! Experiments on real processes: the same ledger and policies as in the
//! simulator, enforced by an engine on programs that compute.

mod program;
mod stage;
pub(crate) mod worker;

use std::thread::sleep;
use std::time::{Duration, Instant};

use prorata_scenario::Scenario;
use prorata_scenario::file::{Rule, Tickets, Time};
use prorata_stage::EngineKind;

use self::stage::Stage;
use self::worker::{State, Work};
use crate::course::{Course, Point};
use crate::error::ReproduceError;
use crate::figure::Pace;
use crate::reproduction::Watch;

type Result<T> = std::result::Result<T, ReproduceError>;

/// Longest time without asking whether anybody still waits.
const PATIENCE: Duration = Duration::from_millis(50);

/// Looks at the programs in a run whose scenario does not say how many.
const LOOKS: u32 = 100;

/// Shortest time between two looks at how far the programs are.
const SHORTEST_SLEEP: Duration = Duration::from_millis(1);

/// Programs that receive nothing for so long have ended, or will not go on.
const LONGEST_STANDSTILL: Duration = Duration::from_secs(60);

/// Runs a scenario's clients as processes and looks at them by and by, after
/// those who start at the beginning had some time to settle.
///
/// Time is CPU time that they receive together. With nothing else to do for the
/// CPU that is as long as by the clock; and where it has, or where a virtual
/// machine stands still, there are yet as many quanta as there should be.
pub(crate) fn course(
    (kind, seed): (&'static EngineKind, u64),
    scenario: &Scenario,
    pace: &Pace,
    settle: Time,
    watch: &mut dyn Watch,
) -> Result<Course> {
    let faster = |time: Time| Duration::from_nanos(time.0) / pace.times;
    let end = faster(scenario.duration);
    let every = scenario.measure.every.map_or(end / LOOKS, faster);
    let mut stage = Stage::new(kind, scenario, seed, pace.quantum.0)?;
    let work = work(scenario);
    let starts = scenario.clients.iter().map(|client| faster(client.start));
    let mut starts: Vec<(Duration, usize)> = starts.zip(0..).collect();
    starts.sort();
    let mut starts = starts.into_iter().peekable();
    let (mut now, mut advanced) = (Duration::ZERO, Instant::now());
    let mut begin = None;
    let mut points = Vec::new();
    let mut next = Duration::ZERO;
    loop {
        let mut started = Vec::new();
        while let Some((_, client)) = starts.next_if(|(start, _)| *start <= now) {
            started.push(client);
        }
        stage.start(&started, work)?;
        let begin = match &begin {
            Some(begin) => begin,
            None => {
                sleep_for(faster(settle), watch)?;
                begin.insert(Begin(stage.states()?))
            }
        };
        let look = begin.look(&stage, pace.times)?;
        if look.0 > now {
            advanced = Instant::now();
        } else if advanced.elapsed() > LONGEST_STANDSTILL {
            return Err(ReproduceError::Process {
                doing: "get CPU time for processes",
                error: std::io::ErrorKind::TimedOut.into(),
            });
        }
        now = look.0;
        if now >= next || now >= end {
            points.push(with_turns(look.1, points.last()));
            if work == Work::MonteCarlo {
                stage.follow_errors()?;
            }
            // Looks that were slept through are not made up for.
            next = (next + every).max(now + every / 2);
        }
        if now >= end {
            break;
        }
        let start = starts.peek().map_or(end, |(start, _)| *start);
        let left = next.min(start).min(end).saturating_sub(now);
        sleep_for(left.max(SHORTEST_SLEEP), watch)?;
    }
    Ok(Course {
        clients: scenario.clients.iter().map(|c| c.name.clone()).collect(),
        points,
        unit: "CPU seconds",
    })
}

/// Where the engine does not show turns: who received something since the point
/// before has one.
fn with_turns(mut point: Point, before: Option<&Point>) -> Point {
    if point.has_turn.is_empty() {
        let received = point.received.iter().enumerate();
        let had = |client: usize| before.map_or(0.0, |before| before.received[client]);
        point.has_turn = received.map(|(client, now)| *now > had(client)).collect();
    }
    point
}

/// How far each program was when counting began.
struct Begin(Vec<State>);

impl Begin {
    /// CPU time that all have received since, and how far each has come. The
    /// latter's times are those of the scenario, which is gone through so many
    /// times faster.
    fn look(&self, stage: &Stage, times: u32) -> Result<(Duration, Point)> {
        let states = stage.states()?;
        let since = || states.iter().zip(&self.0);
        let cpu = |(now, begin): (&State, &State)| {
            Duration::from_nanos(now.cpu_ns.saturating_sub(begin.cpu_ns))
        };
        let all: Duration = since().map(cpu).sum();
        let point = Point {
            at_s: (all * times).as_secs_f64(),
            received: since()
                .map(|states| (cpu(states) * times).as_secs_f64())
                .collect(),
            counted: since()
                .map(|(now, begin)| now.done.saturating_sub(begin.done) as f64)
                .collect(),
            // Asked for last: who has none yet has received nothing of it.
            has_turn: stage.has_turn().unwrap_or_default(),
        };
        Ok((all, point))
    }
}

/// Slices of time under the engine, and as many without; an odd number.
const SLICES: u32 = 5;

/// What is lost under the engine against the plain kernel, in per cent.
pub(crate) struct Lost {
    /// Of CPU time.
    pub received: f64,
    /// Of iterations.
    pub counted: f64,
}

/// Slices in turns, so that other load falls on both, and the medians of their
/// comparisons.
pub(crate) fn lost(
    (kind, seed): (&'static EngineKind, u64),
    scenario: &Scenario,
    pace: &Pace,
    watch: &mut dyn Watch,
) -> Result<Lost> {
    let slice = Duration::from_nanos(scenario.duration.0) / pace.times / SLICES;
    let tasks = scenario.clients[0].count.unwrap_or(1) as usize;
    let (mut received, mut counted) = (Vec::new(), Vec::new());
    for _ in 0..SLICES {
        let mut stage = Stage::new(kind, scenario, seed, pace.quantum.0)?;
        let tasks: Vec<usize> = (0..tasks).collect();
        stage.start(&tasks, Work::Arithmetic)?;
        let managed = rate(&stage, slice, watch)?;
        stage.end_engine();
        let plain = rate(&stage, slice, watch)?;
        received.push((1.0 - managed.0 / plain.0) * 100.0);
        counted.push((1.0 - managed.1 / plain.1) * 100.0);
    }
    Ok(Lost {
        received: median(received),
        counted: median(counted),
    })
}

/// Of an odd number of values.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// CPU time and iterations of all programs together in a second.
fn rate(stage: &Stage, time: Duration, watch: &mut dyn Watch) -> Result<(f64, f64)> {
    let all = || {
        let states = stage.states()?;
        let cpu_ns: u64 = states.iter().map(|state| state.cpu_ns).sum();
        let done: u64 = states.iter().map(|state| state.done).sum();
        Ok::<_, ReproduceError>((cpu_ns, done))
    };
    // The first turns are still to be given.
    sleep_for(time / 10, watch)?;
    let (begin, before) = (Instant::now(), all()?);
    sleep_for(time, watch)?;
    let (after, time_s) = (all()?, begin.elapsed().as_secs_f64());
    let cpu_s = (after.0 - before.0) as f64 / 1e9;
    Ok((cpu_s / time_s, (after.1 - before.1) as f64 / time_s))
}

fn sleep_for(time: Duration, watch: &mut dyn Watch) -> Result<()> {
    let end = Instant::now() + time;
    loop {
        if watch.is_over() {
            return Err(ReproduceError::Interrupted);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        sleep(left.min(PATIENCE));
    }
}

/// What the scenario's programs do.
fn work(scenario: &Scenario) -> Work {
    let follows_errors = scenario
        .clients
        .iter()
        .any(|client| matches!(client.tickets, Tickets::Ruled(Rule::MonteCarlo(_))));
    if follows_errors {
        Work::MonteCarlo
    } else {
        Work::Arithmetic
    }
}
