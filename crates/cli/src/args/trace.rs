//! The command that records what the scheduler in the kernel decides.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};

use super::Format;
use super::values::duration;

/// `prorata trace`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Where a daemon with the kernel engine runs, its scheduler is traced: it must have been started with \
--trace. Else a scheduler for the whole machine is loaded for the time, with these settings.

Examples:
  prorata start --engine kernel --trace && prorata trace --seconds 20
  prorata trace --seconds 2 --perfetto trace.json   open it on ui.perfetto.dev
  prorata trace --check                             is each decision one that tickets allow, from
                                                    now on, the daemon's or its own?
  prorata vm run -- prorata trace --check --json    in a machine of its own")]
pub struct Trace {
    /// How long it records
    #[arg(long, default_value = "5", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub seconds: u32,
    /// What picks the winners; stride unless told otherwise
    #[arg(long, value_enum)]
    pub policy: Option<KernelPolicy>,
    /// Length of a quantum, 100us to 1s; 20ms unless told otherwise
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub quantum: Option<Duration>,
    /// Write the decisions for ui.perfetto.dev to FILE
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub perfetto: Option<PathBuf>,
    /// Replay the decisions against stride scheduling, and tell the first that it does not allow:
    /// on one CPU all against prorata-core, on several each pick against the queue that it was
    /// taken from
    #[arg(long)]
    pub check: bool,
    #[command(flatten)]
    pub format: Format,
}

/// The policies that the kernel knows.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub enum KernelPolicy {
    /// Stride scheduling
    Stride,
    /// Lottery scheduling
    Lottery,
}
