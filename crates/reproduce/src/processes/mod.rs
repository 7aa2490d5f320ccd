//! Experiments on real processes: the same ledger, dispatcher and policy as in
//! the simulator, enforced by the user engine on programs that compute.

mod program;
mod stage;
pub(crate) mod worker;

use std::thread::sleep;
use std::time::{Duration, Instant};

use prorata_core::policy::Policy;
use prorata_sim::scenario::{Rule, Scenario, Tickets};

use self::stage::Stage;
use self::worker::Work;
use crate::course::{Course, Point};
use crate::error::ReproduceError;
use crate::figure::Pace;
use crate::reproduction::Watch;

type Result<T> = std::result::Result<T, ReproduceError>;
type BoxedPolicy = Box<dyn Policy + Send>;

/// Longest time without asking whether anybody still waits.
const PATIENCE: Duration = Duration::from_millis(50);

/// Looks at the programs in a run whose scenario does not say how many.
const LOOKS: u32 = 100;

/// Runs a scenario's clients as processes and looks at them by and by.
pub(crate) fn course(
    scenario: &Scenario,
    policy: BoxedPolicy,
    pace: &Pace,
    watch: &mut dyn Watch,
) -> Result<Course> {
    let faster = |time_ns: u64| Duration::from_nanos(time_ns) / pace.times;
    let end = faster(scenario.duration.0);
    let every = scenario
        .measure
        .every
        .map_or(end / LOOKS, |every| faster(every.0));
    let mut stage = Stage::new(scenario, policy, pace.quantum.0)?;
    let work = work(scenario);
    let mut starts: Vec<(Duration, usize)> = scenario
        .clients
        .iter()
        .map(|client| faster(client.start.0))
        .zip(0..)
        .collect();
    starts.sort();
    let mut starts = starts.into_iter().peekable();
    // All who start together wait for one another to be ready.
    let mut begin = None;
    let mut points = Vec::new();
    let mut next = Duration::ZERO;
    loop {
        let now = begin.map_or(Duration::ZERO, |begin: Instant| begin.elapsed());
        let mut started = Vec::new();
        while let Some((_, client)) = starts.next_if(|(start, _)| *start <= now) {
            stage.prepare(client, work)?;
            started.push(client);
        }
        started
            .iter()
            .try_for_each(|client| stage.let_go(*client))?;
        let begin = *begin.get_or_insert_with(Instant::now);
        let now = begin.elapsed();
        if now >= next || now >= end {
            points.push(Point {
                at_s: now.as_secs_f64() * f64::from(pace.times),
                received: stage.received()?,
            });
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
        wait_until(begin + next.min(start).min(end), watch)?;
    }
    Ok(Course {
        clients: scenario.clients.iter().map(|c| c.name.clone()).collect(),
        points,
        unit: match work {
            Work::Arithmetic => "iterations",
            Work::MonteCarlo => "trials",
        },
    })
}

/// Slices of time under the engine, and as many without; an odd number.
const SLICES: u32 = 5;

/// Work that is lost under the engine against the plain kernel, in per cent:
/// slices in turns, so that other load falls on both, and the median of their
/// comparisons.
pub(crate) fn lost_percent(
    scenario: &Scenario,
    policy: &dyn Fn() -> BoxedPolicy,
    pace: &Pace,
    watch: &mut dyn Watch,
) -> Result<f64> {
    let slice = Duration::from_nanos(scenario.duration.0) / pace.times / SLICES;
    let tasks = scenario.clients[0].count.unwrap_or(1) as usize;
    let mut lost = Vec::new();
    for _ in 0..SLICES {
        let mut stage = Stage::new(scenario, policy(), pace.quantum.0)?;
        for client in 0..tasks {
            stage.prepare(client, Work::Arithmetic)?;
        }
        (0..tasks).try_for_each(|client| stage.let_go(client))?;
        let managed = rate(&stage, slice, watch)?;
        stage.end_engine();
        let plain = rate(&stage, slice, watch)?;
        lost.push((1.0 - managed / plain) * 100.0);
    }
    lost.sort_by(f64::total_cmp);
    Ok(lost[lost.len() / 2])
}

/// Work of all programs together in a second.
fn rate(stage: &Stage, time: Duration, watch: &mut dyn Watch) -> Result<f64> {
    let all = || Ok::<f64, ReproduceError>(stage.received()?.iter().sum());
    // The first turns are still to be given.
    wait_until(Instant::now() + time / 10, watch)?;
    let (begin, before) = (Instant::now(), all()?);
    wait_until(begin + time, watch)?;
    Ok((all()? - before) / begin.elapsed().as_secs_f64())
}

fn wait_until(then: Instant, watch: &mut dyn Watch) -> Result<()> {
    loop {
        if watch.is_over() {
            return Err(ReproduceError::Interrupted);
        }
        let left = then.saturating_duration_since(Instant::now());
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
