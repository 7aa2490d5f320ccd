//! Commands about the daemon and about this program itself.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};

use prorata_control::{EngineKind, KernelOptions, Queues, Scope};

use prorata_protocol::PolicyName;

use super::values::{CpuList, Engine, cpu_list, duration, policy};
use super::{Format, WrongUsage};

/// How decisions are made.
#[derive(Clone, Args, Debug)]
pub struct Settings {
    /// Length of a quantum, 1ms to 1s; at first 20ms
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub quantum: Option<Duration>,
    /// What picks the winners; at first stride
    #[arg(long, value_parser = policy())]
    pub policy: Option<PolicyName>,
}

/// Who decides.
#[derive(Clone, Copy, Args, Debug)]
pub struct EngineChoice {
    /// What decides who runs; at first user
    #[arg(long)]
    pub engine: Option<Engine>,
    /// With the kernel engine: schedule all of the machine, where control groups are currencies,
    /// and not the clients alone
    #[arg(long, requires = "engine")]
    pub all: bool,
    /// With the kernel engine: where tasks wait; at first cpu
    #[arg(long, requires = "engine")]
    pub queues: Option<QueueLayout>,
    /// With the kernel engine: who wakes and deserves to run more ends the quantum of who runs
    #[arg(long, requires = "engine")]
    pub abbreviated: bool,
    /// With the kernel engine: let `prorata trace` see its decisions, for some 0.2 us each
    #[arg(long, requires = "engine")]
    pub trace: bool,
}

/// Where tasks wait.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub enum QueueLayout {
    /// In a queue for each CPU; a CPU takes the least pass of all queues
    Cpu,
    /// The same, with a queue for all CPUs that share a last-level cache
    Cache,
    /// In one queue
    One,
}

impl From<QueueLayout> for Queues {
    fn from(layout: QueueLayout) -> Self {
        match layout {
            QueueLayout::Cpu => Queues::Cpu,
            QueueLayout::Cache => Queues::Cache,
            QueueLayout::One => Queues::One,
        }
    }
}

impl EngineChoice {
    /// The engine that was chosen, if one was.
    pub fn kind(self) -> Result<Option<EngineKind>, WrongUsage> {
        let EngineChoice {
            engine,
            all,
            queues,
            abbreviated,
            trace,
        } = self;
        match engine {
            None => Ok(None),
            Some(Engine::User) if all || queues.is_some() || abbreviated || trace => Err(WrongUsage(
                "--all, --queues, --abbreviated and --trace are for --engine kernel: the user engine \
                 manages clients only, and decides itself"
                    .to_owned(),
            )),
            Some(Engine::User) => Ok(Some(EngineKind::User)),
            Some(Engine::Kernel) => {
                let at_first = KernelOptions::default();
                Ok(Some(EngineKind::Kernel(KernelOptions {
                    scope: if all { Scope::All } else { at_first.scope },
                    queues: queues.map_or(at_first.queues, Queues::from),
                    abbreviated,
                    traced: trace,
                })))
            }
        }
    }
}

/// `prorata start`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
The daemon starts by itself when it is needed; this starts it with settings of its own. On one that \
runs already, --quantum and --policy take effect at once; other --cpus or another --engine are refused.

With --engine kernel a scheduler inside the kernel decides, at every switch between tasks. It needs \
root, a kernel with sched_ext, and a prorata built with it. If the kernel unloads it, it is loaded \
again once; if the daemon ends in any way, programs go on under the kernel's own scheduler. With \
--abbreviated it answers sooner, for more switches: who wakes need not wait for a quantum's end, and \
shares stay what they are.

`prorata run` binds its command to the CPUs that are shared out. A running process that `prorata \
set` takes over is not bound: it may run on others too, unless you bind it yourself (taskset -p).

Examples:
  prorata start --quantum 10ms
  prorata start --cpus 0-3 --policy lottery
  prorata start --engine kernel
  prorata start --engine kernel --abbreviated
  prorata start --engine kernel --queues one --trace")]
pub struct Start {
    #[command(flatten)]
    pub engine: EngineChoice,
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
  prorata demo --svg shares.svg
  prorata demo --engine kernel")]
pub struct Demo {
    /// What decides who runs
    #[arg(long, default_value = "user")]
    pub engine: Engine,
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
    #[command(flatten)]
    pub engine: EngineChoice,
}
