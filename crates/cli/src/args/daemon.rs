//! Commands about the daemon and about this program itself.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};

use super::Format;
use super::values::{CpuList, Policy, cpu_list, duration};

/// How decisions are made.
#[derive(Clone, Args, Debug)]
pub struct Settings {
    /// Length of a quantum, 1ms to 1s; at first 20ms
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub quantum: Option<Duration>,
    /// What picks the winners; at first stride
    #[arg(long)]
    pub policy: Option<Policy>,
}

/// `prorata start`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
The daemon starts by itself when it is needed; this starts it with settings of its own. On one that \
runs already, --quantum and --policy take effect at once; other --cpus are refused.

`prorata run` binds its command to the CPUs that are shared out. A running process that `prorata \
set` takes over is not bound: it may run on others too, unless you bind it yourself (taskset -p).

Examples:
  prorata start --quantum 10ms
  prorata start --cpus 0-3 --policy lottery")]
pub struct Start {
    #[command(flatten)]
    pub settings: Settings,
    /// CPUs to share out, such as 0,2-3, instead of all
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub cpus: Option<CpuList>,
    #[command(flatten)]
    pub format: Format,
}

/// `prorata configure`.
#[derive(Clone, Args, Debug)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Example:
  prorata configure --quantum 5ms --policy lottery"
)]
pub struct Configure {
    #[command(flatten)]
    pub settings: Settings,
    #[command(flatten)]
    pub format: Format,
}

/// `prorata status`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Example:
  prorata status --json")]
pub struct Status {
    #[command(flatten)]
    pub format: Format,
}

/// `prorata stop`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Everything that is managed goes on as if it had never been; each `prorata run` says so and waits \
for its command. Currencies, tickets and settings are kept for the next daemon.

Example:
  prorata stop")]
pub struct Stop {}

/// `prorata demo`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Examples:
  prorata demo
  prorata demo --seconds 4 --json
  prorata demo --svg shares.svg")]
pub struct Demo {
    /// How long it takes
    #[arg(long, default_value = "10", value_name = "N", value_parser = clap::value_parser!(u32).range(2..=3600))]
    pub seconds: u32,
    /// Also draw received shares over time into FILE
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub svg: Option<PathBuf>,
    #[command(flatten)]
    pub format: Format,
}

/// `prorata man`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Examples:
  prorata man | man -l -
  prorata man /usr/local/share/man/man1")]
pub struct Man {
    /// Directory for one page for each command
    #[arg(value_hint = ValueHint::DirPath)]
    pub directory: Option<PathBuf>,
}

/// `prorata completions`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Example:
  prorata completions bash > ~/.local/share/bash-completion/completions/prorata")]
pub struct Completions {
    /// Shell
    pub shell: Shell,
}

/// Shells for which there are completions.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub enum Shell {
    /// bash
    Bash,
    /// fish
    Fish,
    /// zsh
    Zsh,
}

/// `prorata daemon`: what `prorata start` and all that need a daemon execute.
#[derive(Clone, Args, Debug)]
pub struct Daemon {
    /// CPUs to share out
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub cpus: Option<CpuList>,
}
