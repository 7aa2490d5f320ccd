//! `trace`: records the decisions of the scheduler in the kernel.

mod recording;
mod source;

use std::fs::File;
use std::io::{self, BufWriter};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use prorata_kernel::replay::Replay;
use prorata_kernel::scheduler::possible_cpus;
use prorata_report::table::{Column, Side, Table};
use prorata_user::procfs;
use rustix::time::{ClockId, clock_getres};
use serde_json::{Value, json};

use self::recording::{Recording, TracedTask, TracedThread};
use self::source::{DecisionSource, TraceSettings};
use crate::args::trace::TraceArgs;
use crate::caller::Caller;
use crate::output::{self, cannot_write, create};
use crate::wrapper::signals::{CLEARING, Interruption};

/// Interval between two reads of the ring, which holds the decisions of several
/// seconds.
const INTERVAL: Duration = Duration::from_millis(20);

pub fn trace(caller: &Caller, args: &TraceArgs) -> Result<ExitCode> {
    let daemon = source::daemon(caller)?;
    let settings = TraceSettings::new(daemon.as_ref(), args)?;
    let mut interruption = Interruption::block(&CLEARING)?;
    let replay = args.check.then(|| Replay::new(tick_ns(), possible_cpus()));
    let (mut recording, lost) = {
        let source = DecisionSource::open(&settings)?;
        let file = args.perfetto.as_deref().map(create).transpose()?;
        let mut recording = Recording::new(file, replay, thread);
        let lost = record(&source, args.seconds, &mut interruption, &mut recording)?;
        // Leaving this block unloads our own scheduler before any output.
        (recording, lost)
    };
    recording.end();
    if let (Some(path), Some(file)) = (&args.perfetto, recording.events.take()) {
        file.finish().with_context(|| cannot_write(path))?;
    }
    if interruption.signal().is_some() {
        return Ok(interruption.pass_on());
    }
    print(args, &recording, lost)?;
    let is_whole = lost == 0 && recording.disallowed.is_none();
    let is_right = !args.check || is_whole;
    Ok(ExitCode::from(u8::from(!is_right)))
}

/// Records decisions until the time is over or a signal comes. Returns the
/// number of lost decisions.
fn record(
    source: &DecisionSource,
    seconds: u32,
    interruption: &mut Interruption,
    recording: &mut Recording<BufWriter<File>>,
) -> Result<u64> {
    let end = Instant::now() + Duration::from_secs(seconds.into());
    loop {
        sleep(INTERVAL);
        // Asked before: what happens while decisions are recorded is to be taken, too.
        let is_over = interruption.signal().is_some() || Instant::now() >= end;
        let trace = source.take()?;
        recording.take(&trace);
        if is_over {
            return Ok(trace.lost);
        }
    }
}

/// Name and process of a thread. For an ended thread, its number stands for both.
fn thread(tid: u32) -> TracedThread {
    let name = std::fs::read_to_string(format!("/proc/{tid}/comm"));
    TracedThread {
        name: name.map_or_else(|_| tid.to_string(), |name| name.trim_end().to_owned()),
        process: procfs::process_of_thread(tid).unwrap_or(tid),
    }
}

/// The kernel's tick, which ends turns: the resolution of the clock that only
/// ticks advance.
pub fn tick_ns() -> u64 {
    clock_getres(ClockId::MonotonicCoarse).tv_nsec as u64
}

fn print(args: &TraceArgs, recording: &Recording<impl io::Write>, lost: u64) -> Result<()> {
    if args.format.json {
        return output::json(&summary(args, recording, lost));
    }
    output::table(&table(recording), "no decisions were recorded")?;
    let lost_in_words = match lost {
        0 => "none lost".to_owned(),
        lost => format!("{lost} lost: the trace is incomplete"),
    };
    output::line(&format!(
        "{} decisions, {} of them picks; {lost_in_words}",
        recording.decisions, recording.picks
    ))?;
    match &recording.disallowed {
        _ if !args.check => Ok(()),
        Some(disallowed) => output::line(&format!("NOT ALLOWED: {disallowed}")),
        None => output::line("stride scheduling allows every decision"),
    }
}

fn table(recording: &Recording<impl io::Write>) -> Table {
    let columns: [Column<(u32, &TracedTask)>; 5] = [
        ("THREAD", Side::Right, |(tid, _)| tid.to_string()),
        ("NAME", Side::Left, |(_, task)| task.thread.name.clone()),
        ("TICKETS", Side::Right, |(_, task)| {
            output::value(task.tickets)
        }),
        ("TURNS", Side::Right, |(_, task)| task.turns.to_string()),
        ("CPU TIME", Side::Right, |(_, task)| {
            output::seconds(task.used_ns)
        }),
    ];
    Table::of(&by_use(recording), &columns)
}

/// Tasks in descending order of used time.
fn by_use<W: io::Write>(recording: &Recording<W>) -> Vec<(u32, &TracedTask)> {
    let mut tasks: Vec<(u32, &TracedTask)> =
        recording.tasks.iter().map(|(t, task)| (*t, task)).collect();
    tasks.sort_by_key(|(tid, task)| (std::cmp::Reverse(task.used_ns), *tid));
    tasks
}

fn summary(args: &TraceArgs, recording: &Recording<impl io::Write>, lost: u64) -> Value {
    let tasks = by_use(recording).into_iter().map(|(tid, task)| {
        json!({
            "thread": tid, "process": task.thread.process, "name": task.thread.name,
            "tickets": task.tickets, "turns": task.turns, "used_ns": task.used_ns,
        })
    });
    json!({
        "seconds": args.seconds,
        "decisions": recording.decisions,
        "picks": recording.picks,
        "lost": lost,
        "checked": args.check,
        "not_allowed": recording.disallowed.as_ref().map(ToString::to_string),
        "tasks": tasks.collect::<Vec<_>>(),
    })
}
