//! Arguments of `prorata observe`.

use clap::Args;

use super::Format;

/// `prorata observe`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Examples:
  prorata observe                              all tasks, under the present scheduler
  prorata observe --pid $(pidof -s emacs) --seconds 30
  prorata observe --sleeps                     where in the kernel tasks sleep")]
pub struct ObserveArgs {
    /// Length of the observation in seconds; the interrupt key ends it early
    #[arg(long, default_value = "10", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub seconds: u32,
    /// Observe one process with all its threads
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: Option<u32>,
    /// List the functions of the kernel in which tasks sleep
    #[arg(long)]
    pub sleeps: bool,
    #[command(flatten)]
    pub format: Format,
}
