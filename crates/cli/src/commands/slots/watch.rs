//! News of the timetable, as they happen (2005, 2.4.2 and 6).

use anyhow::Result;
use prorata_protocol::slots::{Ended, SlotsNews};

use crate::args::timetable::WatchArgs;
use crate::caller::Caller;
use crate::output;

/// `prorata slots watch`: until the table is closed or the daemon ends.
pub fn watch(caller: &Caller, args: &WatchArgs) -> Result<()> {
    let mut watch = caller.open_to_read()?.watch_slots(args.freed)?;
    loop {
        let news = watch.next_news()?;
        match args.format.json {
            // One line each, to be read as they come.
            true => output::line(&serde_json::to_string(&news)?)?,
            false => output::line(&sentence(&news))?,
        }
        if news == SlotsNews::Closed {
            return Ok(());
        }
    }
}

fn sentence(news: &SlotsNews) -> String {
    match news {
        SlotsNews::Ended {
            cell,
            runs,
            level,
            why,
            by,
        } => {
            let why = match why {
                Ended::Preempted => "a higher level took it",
                Ended::Shared => "an equal account had less than its fair share",
                Ended::Reserved => "slots were reserved",
                Ended::Freed => "it was freed",
                Ended::Expired => "its time was over",
                Ended::ScheduleeEnded => "what ran in it has ended",
            };
            let by = by.as_ref().map(|by| format!(" ({by})")).unwrap_or_default();
            format!("slot {cell} of {runs} ({level}) has ended: {why}{by}")
        }
        SlotsNews::Freed(cells) => {
            let cells: Vec<String> = cells.iter().map(ToString::to_string).collect();
            format!("free: {}", cells.join(" "))
        }
        SlotsNews::Missed(count) => format!("{count} news were missed: look at the table"),
        SlotsNews::Closed => "the timetable was closed".into(),
    }
}
