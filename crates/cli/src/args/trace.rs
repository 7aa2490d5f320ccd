//! Arguments of `prorata trace`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};

use super::Format;
use super::values::duration;

/// `prorata trace`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
If a daemon with the kernel engine runs, the command traces its scheduler; start that daemon with \
--trace. Otherwise the command loads a scheduler for the whole machine with these settings.

Examples:
  prorata start --engine kernel --trace && prorata trace --seconds 20
  prorata trace --seconds 2 --perfetto trace.json   open it on ui.perfetto.dev
  prorata trace --check                             check each decision against the tickets
  prorata vm run -- prorata trace --check --json    in a micro-VM")]
pub struct TraceArgs {
    /// Length of the recording in seconds
    #[arg(long, default_value = "5", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub seconds: u32,
    /// Policy of the loaded scheduler [default: stride]
    #[arg(long, value_enum)]
    pub policy: Option<KernelPolicy>,
    /// Quantum of the loaded scheduler, 100us to 1s [default: 20ms]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub quantum: Option<Duration>,
    /// Write a trace for ui.perfetto.dev to FILE
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub perfetto: Option<PathBuf>,
    /// Replay the decisions, and report the first that stride scheduling does not allow. On one
    /// CPU, prorata-core checks every decision; on several, each pick is checked against its queue
    #[arg(long)]
    pub check: bool,
    #[command(flatten)]
    pub format: Format,
}

/// The policies of the kernel engine.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub enum KernelPolicy {
    /// Stride scheduling
    Stride,
    /// Lottery scheduling
    Lottery,
}
