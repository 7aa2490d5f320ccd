//! `prorata slots run`: slots for a command that knows nothing of them.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use prorata_slots::{
    BestEffort, CacheSensitive, Claimant, Gang, Geometry, Periodic, Runs, Scheduler, Slots,
    SlotsError,
};

use super::row_of;
use crate::args::slots_run::SlotsRunArgs;
use crate::caller::Caller;
use crate::commands::run::run_with_slots;
use crate::output;

/// How long to wait for the next daemon before another look.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Runs the command as a client that has slots from its first instruction on.
pub fn run(caller: &Caller, args: &SlotsRunArgs) -> Result<ExitCode> {
    let claim = |client: &str| {
        let slots = Slots::open(Some(caller.paths().socket.path()))?;
        let scheduler = scheduler(args, slots.table().geometry(), slots.table().cpus())?;
        let runs = Runs::Client(client.to_owned());
        let claimant = Claimant::begin(slots, scheduler, runs, args.level)?;
        std::thread::Builder::new()
            .name("slots".into())
            .spawn(|| answer_all(claimant))
            .context("cannot watch the timetable")?;
        Ok(())
    };
    run_with_slots(caller, args, &claim)
}

type AnyScheduler = Box<dyn Scheduler + Send>;

fn scheduler(args: &SlotsRunArgs, geometry: &Geometry, cpus: &[u32]) -> Result<AnyScheduler> {
    let row = args.cpu.map(|cpu| row_of(cpus, cpu)).transpose()?;
    let slot_ns = u128::from(geometry.slot_ns());
    let columns = geometry.columns();
    if let Some(wish) = args.periodic {
        let (time_ns, period_ns) = (wish.time.as_nanos() as u64, wish.period.as_nanos() as u64);
        let mut periodic = Periodic::of_time(geometry, time_ns, period_ns)?;
        periodic.row = row;
        let jitter = args
            .jitter
            .map(|jitter| (jitter.as_nanos() / slot_ns) as u32);
        periodic.windows.jitter = jitter;
        return Ok(Box::new(periodic));
    }
    if let Some(threads) = args.gang {
        return Ok(Box::new(Gang {
            threads: threads as usize,
            columns: args.columns.unwrap_or(columns.div_ceil(4)) as usize,
            preferred: Vec::new(),
        }));
    }
    if let Some(time) = args.cache {
        let slots = time.as_nanos().div_ceil(slot_ns).max(1) as u32;
        return Ok(Box::new(CacheSensitive { slots }));
    }
    let percent = args.best_effort.context("one wish is required")?;
    let slots = (u64::from(columns) * u64::from(percent.0)).div_ceil(100) as usize;
    Ok(Box::new(BestEffort { slots, row }))
}

/// Answers what happens to the slots, as long as this process lives.
fn answer_all(mut claimant: Claimant<AnyScheduler>) {
    let mut is_lost = false;
    loop {
        let answered = match is_lost {
            true => claimant.reconnect(),
            false => claimant.answer_next(),
        };
        match answered {
            Ok(()) => is_lost = false,
            Err(SlotsError::Closed) => {
                output::say("the timetable was closed: the command goes on without slots");
                return;
            }
            Err(SlotsError::ScheduleeEnded) => return,
            // The next daemon has the claims that last; until then there is nothing to answer.
            Err(error @ (SlotsError::Connect(_) | SlotsError::Bulletin(_))) => {
                if !is_lost {
                    output::say(format_args!(
                        "slots that are lost are not replaced now: {error}"
                    ));
                }
                is_lost = true;
                std::thread::sleep(LOOK_AGAIN);
            }
            Err(error) => output::say(format_args!("a lost slot is not replaced: {error}")),
        }
    }
}
