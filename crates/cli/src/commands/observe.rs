//! `observe`: how soon tasks run after a wake, and where they sleep, under any scheduler (1999,
//! 5.2).

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use nix::sys::signal::Signal;
use prorata_kernel::observe::{Observer, Seen, Sleeps, What};
use prorata_report::table::{Side, Table};
use prorata_user::procfs;
use serde_json::{Value, json};

use crate::args::observe::ObserveArgs;
use crate::output;
use crate::wrapper::signals::{CLEARING, Interruption};

/// Between two looks for a signal.
const INTERVAL: Duration = Duration::from_millis(50);
/// Name of the scheduler that is loaded, if one is (sched_ext).
const LOADED: &str = "/sys/kernel/sched_ext/root/ops";
/// The waits that are printed: name, and how many per mille are no longer.
const QUANTILES: [(&str, u64); 4] = [("p50", 500), ("p90", 900), ("p99", 990), ("p99.9", 999)];

pub fn observe(args: &ObserveArgs) -> Result<ExitCode> {
    if let Some(pid) = args.pid {
        ensure!(
            procfs::stat(pid).is_ok(),
            "there is no process {pid}: see `ps -e`"
        );
    }
    let mut interruption = Interruption::block(&CLEARING)?;
    let (seen, elapsed) = watch(args, &mut interruption)?;
    match args.format.json {
        true => output::json(&as_json(&seen, elapsed))?,
        false => print(args, &seen, elapsed)?,
    }
    // The interrupt key ends an observation that was long enough.
    match interruption.signal() {
        None | Some(Signal::SIGINT) => Ok(ExitCode::SUCCESS),
        Some(_) => Ok(interruption.pass_on()),
    }
}

/// Observes until the time is over or a signal comes.
fn watch(args: &ObserveArgs, interruption: &mut Interruption) -> Result<(Seen, Duration)> {
    let observer = Observer::load(What {
        process: args.pid,
        sleeps: args.sleeps,
    })?;
    let begin = Instant::now();
    let end = begin + Duration::from_secs(args.seconds.into());
    while Instant::now() < end && interruption.signal().is_none() {
        std::thread::sleep(INTERVAL.min(end.saturating_duration_since(Instant::now())));
    }
    let elapsed = begin.elapsed();
    Ok((observer.seen()?, elapsed))
}

fn scheduler() -> String {
    let name = std::fs::read_to_string(LOADED).unwrap_or_default();
    match name.trim_end() {
        "" => "linux".to_owned(),
        name => name.to_owned(),
    }
}

fn as_json(seen: &Seen, elapsed: Duration) -> Value {
    let quantile = |per_mille| seen.waits.quantile_ns(per_mille);
    let sleeps = by_time(seen);
    let sleeps = sleeps.iter().map(|(function, sleeps)| {
        json!({
            "function": function,
            "count": sleeps.count,
            "median_ns": sleeps.median_ns(),
            "total_ns": sleeps.total_ns,
            "longest_ns": sleeps.longest_ns,
        })
    });
    json!({
        "scheduler": scheduler(),
        "elapsed_ns": elapsed.as_nanos() as u64,
        "switches": seen.switches,
        "wakes": seen.waits.count(),
        "p50_ns": quantile(500),
        "p90_ns": quantile(900),
        "p99_ns": quantile(990),
        "p999_ns": quantile(999),
        "longest_ns": seen.waits.longest_ns,
        "sleeps": sleeps.collect::<Vec<_>>(),
        "sleeps_lost": seen.lost,
    })
}

/// The functions in which tasks slept longest, all together, first.
fn by_time(seen: &Seen) -> Vec<(&str, &Sleeps)> {
    let mut sleeps: Vec<_> = seen
        .sleeps
        .iter()
        .map(|(function, sleeps)| (function.as_str(), sleeps))
        .collect();
    sleeps.sort_by_key(|(_, sleeps)| std::cmp::Reverse(sleeps.total_ns));
    sleeps
}

fn print(args: &ObserveArgs, seen: &Seen, elapsed: Duration) -> Result<()> {
    output::line(&format!(
        "{} under {}: {} switches, {} wakes",
        output::seconds(elapsed.as_nanos() as u64),
        scheduler(),
        seen.switches,
        seen.waits.count()
    ))?;
    let waits = QUANTILES.iter().filter_map(|(name, per_mille)| {
        let wait_ns = seen.waits.quantile_ns(*per_mille)?;
        Some(format!("{name} {}", us(wait_ns)))
    });
    let waits: Vec<String> = waits.collect();
    if waits.is_empty() {
        return output::line("no task woke");
    }
    output::line(&format!(
        "wait from a wake to the turn: {}, longest {}",
        waits.join(", "),
        us(seen.waits.longest_ns)
    ))?;
    if !args.sleeps {
        return Ok(());
    }
    let mut table = Table::new(&[
        ("SLEEPS IN", Side::Left),
        ("COUNT", Side::Right),
        ("MEDIAN", Side::Right),
        ("LONGEST", Side::Right),
        ("TOTAL", Side::Right),
    ]);
    for (function, sleeps) in by_time(seen) {
        table.row(vec![
            function.to_owned(),
            sleeps.count.to_string(),
            us(sleeps.median_ns()),
            us(sleeps.longest_ns),
            output::seconds(sleeps.total_ns),
        ]);
    }
    output::table(&table, "no sleep ended")?;
    if seen.lost > 0 {
        output::line(&format!(
            "{} sleeps found no room and are not listed",
            seen.lost
        ))?;
    }
    Ok(())
}

fn us(time_ns: u64) -> String {
    format!("{:.1} us", time_ns as f64 / 1e3)
}
