//! `demo`: three real programs share one CPU by tickets, for everyone to see.

mod programs;
mod record;
mod show;
mod stage;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;
use prorata_protocol::{EngineChoice, KernelChoice};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use self::record::Record;
use self::show::Show;
use self::stage::Stage;
use crate::args::daemon::DemoArgs;
use crate::args::values::DaemonEngine;
use crate::output;
use crate::wrapper::ending::Ending;
use crate::wrapper::signals::Signals;

/// The programs, and what they hold at first: 3:2:1.
const PROGRAMS: [(&str, u32); 3] = [("first", 3), ("second", 2), ("third", 1)];

/// Half-way the last program gets so many.
const INFLATED: u32 = 4;

/// Time between two looks at what the programs received.
const TICK: Duration = Duration::from_millis(100);

/// So long the programs may take until each has received something.
const TIME_TO_BEGIN: Duration = Duration::from_secs(10);

/// Signals that end the demo early, with everything cleared away.
/// Of these, the last keeps the terminal from stopping it half-way, with the
/// programs running on.
const SIGNALS: [Signal; 5] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGTSTP,
];

/// `prorata demo`.
pub fn demo(args: &DemoArgs) -> Result<ExitCode> {
    let signals = Signals::block(&SIGNALS).context("cannot handle signals")?;
    let engine = match args.engine {
        DaemonEngine::User => EngineChoice::User,
        DaemonEngine::Kernel => EngineChoice::Kernel(KernelChoice::default()),
    };
    let mut stage = Stage::set_up(&signals, engine)?;
    let mut record = Record::new(stage.program(), stage.cpu(), stage.quantum_ns());
    let mut show = Show::new(args, &stage)?;
    let interrupted = play(args, &signals, &mut stage, &mut record, &mut show)?;
    drop(show);
    let (before, after) = (stage.status_at_first().clone(), stage.status()?);
    drop(stage);
    if let Some(signal) = interrupted {
        return Ok(Ending::Killed(signal).pass_on());
    }
    let summary = record.summary(&before, &after);
    if args.format.json {
        output::json(&summary)?;
    } else {
        show::summary(&summary)
            .iter()
            .try_for_each(|line| output::line(line))?;
    }
    if let Some(path) = &args.svg {
        output::document(path, &record.plot(&summary).svg())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs both halves; the signal that ended them early, if one did.
fn play(
    args: &DemoArgs,
    signals: &Signals,
    stage: &mut Stage,
    record: &mut Record,
    show: &mut Show,
) -> Result<Option<Signal>> {
    let length = Duration::from_secs(args.seconds.into());
    stage.let_go()?;
    if let Some(signal) = wait_for_all(signals, stage)? {
        return Ok(Some(signal));
    }
    let begin = Instant::now();
    record.begin_phase(Duration::ZERO, stage.clients()?);
    // Of the second half; none before it.
    let mut end = None;
    let mut next = TICK;
    loop {
        if let Some(signal) = wait_until(begin + next, signals)? {
            return Ok(Some(signal));
        }
        let now = begin.elapsed();
        record.add(now, stage.clients()?);
        show.update(record, now)?;
        match end {
            Some(end) if now >= end => return Ok(None),
            None if now >= length / 2 => {
                stage.inflate(INFLATED)?;
                record.begin_phase(begin.elapsed(), stage.clients()?);
                // On a machine that stood still it begins late, and is as long
                // all the same.
                end = Some(length.max(now + length / 2 - TICK));
            }
            _ => {}
        }
        // Ticks that were slept through are not made up for.
        next = (now + TICK / 2).max(next + TICK);
    }
}

/// Waits until every program has begun, so that the first second does not
/// count those that came first alone.
fn wait_for_all(signals: &Signals, stage: &mut Stage) -> Result<Option<Signal>> {
    let deadline = Instant::now() + TIME_TO_BEGIN;
    while stage
        .clients()?
        .iter()
        .any(|client| client.received_ns == 0)
    {
        ensure!(
            Instant::now() < deadline,
            "the programs received nothing in {TIME_TO_BEGIN:?}: is CPU {} busy with something of a higher priority?",
            stage.cpu()
        );
        if let Some(signal) = wait_until(Instant::now() + TICK / 10, signals)? {
            return Ok(Some(signal));
        }
    }
    Ok(None)
}

/// Waits; a signal that arrives meanwhile ends the wait.
fn wait_until(then: Instant, signals: &Signals) -> Result<Option<Signal>> {
    loop {
        while let Some(received) = signals.next()? {
            if received.signal != Signal::SIGTSTP {
                return Ok(Some(received.signal));
            }
        }
        let left = then.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        let timeout = Timespec::try_from(left).context("a tick is a short time")?;
        match poll(&mut [PollFd::new(signals, PollFlags::IN)], Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
