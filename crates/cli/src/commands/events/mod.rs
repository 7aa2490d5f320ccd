//! `events`: the last sleeps, wakes and ends of turns (1999, 4.1).

mod interpreter;
mod kernel;

use anyhow::Result;
use prorata_protocol::{EventKind, EventReport, Request, Response, SleepKind, TurnEndKind};
use prorata_report::table::{Column, Side};

use crate::args::events::EventsArgs;
use crate::caller::{Caller, answer, status};
use crate::output;

pub fn events(caller: &Caller, args: &EventsArgs) -> Result<()> {
    let mut connection = caller.open_to_read()?;
    let status = status(&mut connection)?;
    let events = match status.engine.as_str() {
        "kernel" => kernel::events(&mut connection, &status, args.number as usize)?,
        _ => {
            let count = args.number;
            answer!(
                &mut connection,
                &Request::Events { count },
                Response::Events
            )?
        }
    };
    output::list(args.format, &events, &COLUMNS, NO_EVENTS)
}

/// Printed for an empty list.
const NO_EVENTS: &str = "prorata: there are no events: no client has slept or had a turn";

const COLUMNS: [Column<EventReport>; 4] = [
    ("TIME", Side::Right, |event| {
        format!("{:.6} s", event.time_ns as f64 / 1e9)
    }),
    ("CLIENT", Side::Left, |event| {
        output::or_dash(event.client.as_ref())
    }),
    ("NAME", Side::Left, |event| match event.thread {
        Some(thread) => format!("{} ({thread})", event.name),
        None => event.name.clone(),
    }),
    ("EVENT", Side::Left, |event| sentence(&event.what)),
];

fn sentence(what: &EventKind) -> String {
    match what {
        EventKind::Woke { early, from } => {
            let early = if *early { ", early" } else { "" };
            format!("woke{}{early}", sleep("from", *from))
        }
        EventKind::Slept { on, place } => {
            let place = place.iter().map(|place| format!(" in {place}"));
            format!("slept{}{}", sleep("on", *on), place.collect::<String>())
        }
        EventKind::EarlyEnded => "is early no longer".to_owned(),
        EventKind::TurnEnded { reason, lasted_ns } => {
            let reason = match reason {
                TurnEndKind::Quantum => "quantum over",
                TurnEndKind::Sleep => "slept",
                TurnEndKind::Change => "tickets or clients changed",
                TurnEndKind::Limit => "limit reached",
                TurnEndKind::Suspended => "suspended",
                TurnEndKind::GaveWay => "gave way",
            };
            format!(
                "turn ended after {:.2} ms: {reason}",
                *lasted_ns as f64 / 1e6
            )
        }
    }
}

fn sleep(preposition: &str, kind: SleepKind) -> String {
    let what = match kind {
        SleepKind::Lock => "a lock of the kernel",
        SleepKind::Disk => "a disk",
        SleepKind::Kernel => "a resource of the kernel",
        SleepKind::User | SleepKind::Unknown => return String::new(),
    };
    format!(" {preposition} {what}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_told_in_words() {
        let slept = |on, place: Option<&str>| {
            let place = place.map(str::to_owned);
            sentence(&EventKind::Slept { on, place })
        };
        assert_eq!(
            slept(SleepKind::User, Some("pipe_read")),
            "slept in pipe_read"
        );
        assert_eq!(slept(SleepKind::Disk, None), "slept on a disk");
        let woke = |early, from| sentence(&EventKind::Woke { early, from });
        assert_eq!(woke(true, SleepKind::User), "woke, early");
        assert_eq!(
            woke(true, SleepKind::Lock),
            "woke from a lock of the kernel, early"
        );
        assert_eq!(woke(false, SleepKind::Unknown), "woke");
        let ended = EventKind::TurnEnded {
            reason: TurnEndKind::Quantum,
            lasted_ns: 20_004_000,
        };
        assert_eq!(sentence(&ended), "turn ended after 20.00 ms: quantum over");
    }
}
