//! The loads of `demo --slots`, each a process: a controller, a gang and jobs.

use anyhow::{Context as _, Result};
use prorata_load::{DeadlineReservation, LoadError, Window, controller, gang, jobs};
use prorata_slots::{Reader, Schedulee, Slots, next_slot, now_ns};
use prorata_user::CLIENT_MARKER;
use rustix::process::{Signal, set_parent_process_death_signal, setpriority_process};
use serde::Serialize;

use crate::args::players::{ControllerArgs, GangArgs, JobsArgs, PlayerArgs};
use crate::args::slots_run::TimeOfPeriod;
use crate::output;

/// The time in the middle of a window in which threads note where they run: some periods.
const EXPOSED_NS: u64 = 100_000_000;

pub fn play_controller(args: &ControllerArgs) -> Result<()> {
    let window = begin(&args.player)?;
    let origin_ns = match args.in_slots {
        true => own_slot_ns(Slots::open(None)?.table())?,
        false => now_ns(),
    };
    let settings = controller::ControllerSettings {
        origin_ns,
        period_ns: args.work.period.as_nanos() as u64,
        work_ns: args.work.time.as_nanos() as u64,
        window,
        exposure: middle(window),
        reservation: args.deadline.map(reservation),
    };
    tell(controller::run(&settings, &mut ()))
}

pub fn play_gang(args: &GangArgs) -> Result<()> {
    let window = begin(&args.player)?;
    let settings = gang::GangSettings {
        threads: args.threads,
        work_ns: args.work.as_nanos() as u64,
        window,
        exposure: middle(window),
        reservation: args.deadline.map(reservation),
    };
    tell(gang::run(&settings, &mut ()))
}

pub fn play_jobs(args: &JobsArgs) -> Result<()> {
    let settings = jobs::JobsSettings {
        threads: args.threads,
        window: begin(&args.player)?,
    };
    tell(jobs::run(&settings, &mut ()))
}

/// Prints the result, or `null` if a busy host started the load after its window.
fn tell<T: Serialize>(ended: Result<T, LoadError>) -> Result<()> {
    match ended {
        Err(LoadError::Over { .. }) => output::json(&()),
        ended => output::json(&ended?),
    }
}

/// Prepares this process: no load outlives the demo. Threads inherit the nice value.
fn begin(args: &PlayerArgs) -> Result<Window> {
    set_parent_process_death_signal(Some(Signal::KILL)).context("cannot end with the demo")?;
    if let Some(nice) = args.nice {
        setpriority_process(None, nice).context("cannot set the nice value")?;
    }
    Ok(Window {
        begin_ns: args.begin,
        end_ns: args.end,
    })
}

fn reservation(wish: TimeOfPeriod) -> DeadlineReservation {
    DeadlineReservation {
        time_ns: wish.time.as_nanos() as u64,
        period_ns: wish.period.as_nanos() as u64,
    }
}

/// The middle of a window.
fn middle(window: Window) -> Window {
    let Window { begin_ns, end_ns } = window;
    let exposed_ns = EXPOSED_NS.min(end_ns.saturating_sub(begin_ns));
    let from_ns = begin_ns + (end_ns.saturating_sub(begin_ns) - exposed_ns) / 2;
    Window {
        begin_ns: from_ns,
        end_ns: from_ns + exposed_ns,
    }
}

/// When the next slot of this process's client begins. `slots run` has claimed it by now.
fn own_slot_ns(table: &Reader) -> Result<u64> {
    let client = std::env::var(CLIENT_MARKER).unwrap_or_default();
    let is_own = |schedulee| match schedulee {
        Schedulee::Client(id) => id.to_string() == client,
        Schedulee::Process { pid, .. } => pid == std::process::id(),
        Schedulee::Thread { .. } => false,
    };
    let geometry = table.geometry();
    // The present slot has begun.
    let from = geometry.tick_at(now_ns()) + 1;
    let tick = next_slot(table, from, is_own);
    let tick = tick.context("this client has no slots: run the load by `prorata slots run`")?;
    Ok(geometry.begin_ns(tick))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_a_window_is_in_it() {
        let of = |begin_ns, end_ns| {
            let found = middle(Window { begin_ns, end_ns });
            (found.begin_ns, found.end_ns)
        };
        assert_eq!(of(0, 3 * EXPOSED_NS), (EXPOSED_NS, 2 * EXPOSED_NS));
        assert_eq!(of(7, 9), (7, 9), "a short window is its own middle");
    }
}
