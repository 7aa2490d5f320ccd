//! `trace`: what the scheduler in the kernel decides about everybody.

mod recording;
mod source;

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use nix::sys::signal::Signal;
use prorata_kernel::replay::Replay;
use prorata_kernel::scheduler::possible_cpus;
use prorata_report::table::{Side, Table};
use prorata_user::procfs;
use rustix::time::{ClockId, clock_getres};
use serde_json::{Value, json};

use self::recording::{Recording, Task, Who};
use self::source::{Settings, Source};
use crate::args::trace::Trace;
use crate::caller::Caller;
use crate::output;
use crate::wrapper::ending::Ending;
use crate::wrapper::signals::{CLEARING, Signals};

/// Time between two looks at the ring: in it the kernel has room for what it
/// decides within seconds.
const LOOK: Duration = Duration::from_millis(20);

/// `prorata trace`.
pub fn trace(caller: &Caller, args: &Trace) -> Result<ExitCode> {
    let daemon = source::daemon(caller)?;
    let settings = Settings::new(daemon.as_ref(), args)?;
    let signals = Signals::block(&CLEARING).context("cannot handle signals")?;
    let replay = args.check.then(|| Replay::new(tick_ns(), possible_cpus()));
    let (mut recording, ended, lost) = {
        let source = Source::open(&settings)?;
        let file = args.perfetto.as_deref().map(create).transpose()?;
        let mut recording = Recording::new(file, replay, who);
        let (ended, lost) = record(&source, args.seconds, &signals, &mut recording)?;
        // A scheduler of our own is unloaded before anything is printed.
        (recording, ended, lost)
    };
    recording.end();
    if let (Some(path), Some(file)) = (&args.perfetto, recording.events.take()) {
        file.finish().with_context(|| cannot_write(path))?;
    }
    if let Some(signal) = ended {
        return Ok(Ending::Killed(signal).pass_on());
    }
    print(args, &recording, lost)?;
    let is_whole = lost == 0 && recording.disallowed.is_none();
    let is_right = !args.check || is_whole;
    Ok(ExitCode::from(u8::from(!is_right)))
}

/// Takes decisions until the time is over, or a signal comes. Gives back which
/// signal, and how many decisions were lost.
fn record(
    source: &Source,
    seconds: u32,
    signals: &Signals,
    recording: &mut Recording<BufWriter<File>>,
) -> Result<(Option<Signal>, u64)> {
    let end = Instant::now() + Duration::from_secs(seconds.into());
    loop {
        sleep(LOOK);
        let trace = source.take()?;
        recording.take(&trace);
        let signal = signals.next_to_end();
        if signal.is_some() || Instant::now() >= end {
            return Ok((signal, trace.lost));
        }
    }
}

/// Name and process of a thread. One that has ended is known by its number alone.
fn who(tid: u32) -> Who {
    let name = std::fs::read_to_string(format!("/proc/{tid}/comm"));
    Who {
        name: name.map_or_else(|_| tid.to_string(), |name| name.trim_end().to_owned()),
        process: procfs::process_of_thread(tid).unwrap_or(tid),
    }
}

/// Time between two looks of the kernel at whose turn ends: the resolution of the
/// clock that only these move on.
fn tick_ns() -> u64 {
    clock_getres(ClockId::MonotonicCoarse).tv_nsec as u64
}

fn print(args: &Trace, recording: &Recording<impl io::Write>, lost: u64) -> Result<()> {
    if args.format.json {
        return output::json(&summary(args, recording, lost));
    }
    output::table(&table(recording), "nothing was decided")?;
    let lost_in_words = match lost {
        0 => "none lost".to_owned(),
        lost => format!("{lost} lost: the trace is not whole"),
    };
    output::line(&format!(
        "{} decisions, {} of them picks; {lost_in_words}",
        recording.decisions, recording.picks
    ))?;
    match &recording.disallowed {
        _ if !args.check => Ok(()),
        Some(disallowed) => output::line(&format!("NOT ALLOWED: {disallowed}")),
        None => output::line("stride scheduling allows every one of them"),
    }
}

fn table(recording: &Recording<impl io::Write>) -> Table {
    let mut table = Table::new(&[
        ("THREAD", Side::Right),
        ("NAME", Side::Left),
        ("TICKETS", Side::Right),
        ("TURNS", Side::Right),
        ("CPU TIME", Side::Right),
    ]);
    for (tid, task) in by_use(recording) {
        table.row(vec![
            tid.to_string(),
            task.who.name.clone(),
            format!("{:.1}", task.tickets),
            task.turns.to_string(),
            output::seconds(task.used_ns),
        ]);
    }
    table
}

/// Who used most comes first.
fn by_use<W: io::Write>(recording: &Recording<W>) -> Vec<(u32, &Task)> {
    let mut tasks: Vec<(u32, &Task)> = recording.tasks.iter().map(|(t, task)| (*t, task)).collect();
    tasks.sort_by_key(|(tid, task)| (std::cmp::Reverse(task.used_ns), *tid));
    tasks
}

fn summary(args: &Trace, recording: &Recording<impl io::Write>, lost: u64) -> Value {
    let tasks = by_use(recording).into_iter().map(|(tid, task)| {
        json!({
            "thread": tid, "process": task.who.process, "name": task.who.name,
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

fn create(path: &Path) -> Result<BufWriter<File>> {
    let file = File::create(path).with_context(|| cannot_write(path))?;
    Ok(BufWriter::new(file))
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}
