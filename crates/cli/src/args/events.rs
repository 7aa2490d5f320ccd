//! Arguments of `prorata events`.

use clap::Args;
use prorata_protocol::MOST_EVENTS;

use super::Format;

/// `prorata events` (1999, 4.1).
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Examples:
  prorata events
  prorata events -n 200 --json | jq '.[] | select(.what.event == \"turn-ended\").what.reason'")]
pub struct EventsArgs {
    /// Number of events, up to 1000
    #[arg(short, long, default_value = "20", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_EVENTS)))]
    pub number: u32,
    #[command(flatten)]
    pub format: Format,
}
