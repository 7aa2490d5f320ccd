//! Arguments of the commands that control the daemon, and of `demo`, `man` and
//! `completions`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};

use prorata_protocol::{EngineChoice, HybridChoice, KernelChoice, PolicyName};

use super::values::{CpuList, DaemonEngine, cpu_list, duration, policy};
use super::{Format, WrongUsage};

/// DaemonSettings of the daemon that can change while it runs.
#[derive(Clone, Args, Debug)]
pub struct DaemonSettings {
    /// Length of a quantum, 1ms to 1s; initially 20ms
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub quantum: Option<Duration>,
    /// Policy that picks the next client; initially stride
    #[arg(long, value_parser = policy())]
    pub policy: Option<PolicyName>,
}

/// The mechanisms of hybrid lottery scheduling.
#[derive(Clone, Copy, Args, Debug)]
pub struct HybridOption {
    /// Mechanisms of hybrid lottery scheduling, separated by commas, or none; initially all four
    ///
    /// kernel-priorities: a task that wakes from a sleep in the kernel runs first. ticket-boost: a
    /// waking task that received less than it deserved in the last ten seconds runs first.
    /// abbreviated-quanta: a waking task preempts a running task that deserves less (under the user
    /// engine, Linux decides that by itself). nice: a client's base tickets are multiplied by the
    /// factor that Linux has for its nice value, and then at most 1,000 times that factor above nice
    /// 0, at least as many below. Without a LIST, all four. Only nice changes shares. The kernel
    /// engine's mechanisms are fixed while it runs.
    #[arg(long, value_name = "LIST", num_args = 0..=1, require_equals = true,
          default_missing_value = "kernel-priorities,abbreviated-quanta,ticket-boost,nice")]
    pub hybrid: Option<HybridChoice>,
}

/// The engine, and the options of the kernel engine.
#[derive(Clone, Copy, Args, Debug)]
pub struct EngineOptions {
    /// Engine that schedules; initially user
    #[arg(long)]
    pub engine: Option<DaemonEngine>,
    /// Kernel engine: schedule the clients alone, below all other tasks, those of SCHED_IDLE included.
    /// Without this, the whole machine is scheduled, with control groups as currencies. While
    /// ordinary programs take all CPUs clients wait, even one that holds a lock of the kernel
    #[arg(long, requires = "engine")]
    pub clients_only: bool,
    /// The former name of what is the default now
    #[arg(
        long,
        requires = "engine",
        conflicts_with = "clients_only",
        hide = true
    )]
    pub all: bool,
    /// Kernel engine: layout of the run queues; initially cpu
    #[arg(long, requires = "engine")]
    pub queues: Option<QueueLayout>,
    #[command(flatten)]
    pub hybrid: HybridOption,
    /// The former name of --hybrid=abbreviated-quanta
    #[arg(long, requires = "engine", conflicts_with = "hybrid", hide = true)]
    pub abbreviated: bool,
    /// Kernel engine: allow `prorata trace`, at a cost of some 0.2 us a decision
    #[arg(long, requires = "engine")]
    pub trace: bool,
}

/// Layout of the kernel engine's run queues.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub enum QueueLayout {
    /// One queue per CPU; a CPU takes the smallest pass of all queues
    Cpu,
    /// One queue per last-level cache; a CPU takes the smallest pass of all queues
    Cache,
    /// One queue for all CPUs
    One,
}

impl From<QueueLayout> for prorata_protocol::QueueChoice {
    fn from(layout: QueueLayout) -> Self {
        match layout {
            QueueLayout::Cpu => Self::Cpu,
            QueueLayout::Cache => Self::Cache,
            QueueLayout::One => Self::One,
        }
    }
}

const ABBREVIATED: HybridChoice = HybridChoice {
    abbreviated_quanta: true,
    ..HybridChoice::NONE
};

impl EngineOptions {
    /// The chosen engine; `None` without `--engine`.
    pub fn choice(self) -> Result<Option<EngineChoice>, WrongUsage> {
        let EngineOptions {
            engine,
            clients_only,
            all,
            queues,
            hybrid: HybridOption { hybrid },
            abbreviated,
            trace,
        } = self;
        match engine {
            None => Ok(None),
            Some(DaemonEngine::User)
                if clients_only || all || queues.is_some() || abbreviated || trace =>
            {
                Err(WrongUsage(
                    "--clients-only, --queues and --trace need --engine kernel: leave them out with \
                     --engine user"
                        .to_owned(),
                ))
            }
            Some(DaemonEngine::User) => Ok(Some(EngineChoice::User)),
            Some(DaemonEngine::Kernel) => {
                Ok(Some(EngineChoice::Kernel(KernelChoice {
                    all: !clients_only,
                    queues: queues.map(Into::into).unwrap_or_default(),
                    hybrid: match abbreviated {
                        true => ABBREVIATED,
                        false => hybrid.unwrap_or_default(),
                    },
                    traced: trace,
                })))
            }
        }
    }
}

/// `prorata start`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
The first command that needs a daemon starts one, which ends when idle. A daemon started by this \
command stays until `prorata stop`. The next daemon has the same engine, CPUs, quantum and policy. If \
a daemon runs already, --quantum, --policy and (user engine) --hybrid take effect at once, and another \
--engine or other --cpus are refused.

With --engine kernel, a scheduler inside the kernel decides at every context switch, for all tasks of \
the machine: each task without a client belongs to its control group. It needs root, a kernel with sched_ext, and a prorata built with the kernel engine. If the kernel unloads the \
scheduler, the daemon loads it again once. If the daemon ends, all tasks continue under the kernel's \
own scheduler.

`--hybrid=none` leaves the policies of 1994 and 1995 alone: then a waking program waits for the end of a \
turn.

With --users, all that a user runs outside of other clients is one client, rest-of-NAME, in the \
user's currency. So users share the machine as their currencies are funded (set-funding), however many \
processes each has. A process leaves that client for any other that it is named for (run, set, chuser), \
and joins it again when that one is released. Nobody can release, suspend or limit it. \
Root, the users of services, and processes that logins need are left alone, and so are processes that \
only stop signals would hold down. It needs root's daemon, and lasts until `prorata stop`. Stop users' \
own daemons before.

`prorata run` binds its command to the daemon's CPUs. `prorata set` does not bind a process that it \
takes over: such a process may also run on other CPUs, unless you bind it (taskset -p).

Examples:
  prorata start --quantum 10ms
  prorata start --cpus 0-3 --policy lottery
  prorata start --users
  prorata start --engine kernel
  prorata start --engine kernel --hybrid=none
  prorata start --engine kernel --queues one --trace")]
pub struct StartArgs {
    #[command(flatten)]
    pub engine: EngineOptions,
    #[command(flatten)]
    pub settings: DaemonSettings,
    /// CPUs to manage, such as 0,2-3, instead of all
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub cpus: Option<CpuList>,
    /// Make all that each user runs unasked one client of that user (root)
    #[arg(long)]
    pub users: bool,
    #[command(flatten)]
    pub format: Format,
}

/// `prorata configure`.
#[derive(Clone, Args, Debug)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  prorata configure --quantum 5ms --policy lottery
  prorata configure --hybrid=none"
)]
pub struct ConfigureArgs {
    #[command(flatten)]
    pub settings: DaemonSettings,
    #[command(flatten)]
    pub hybrid: HybridOption,
    #[command(flatten)]
    pub format: Format,
}

/// `prorata status`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Example:
  prorata status --json")]
pub struct StatusArgs {
    #[command(flatten)]
    pub format: Format,
}

/// `prorata stop`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
All clients are released, and their processes continue with the scheduling policies that they had \
before. Each `prorata run` prints a notice and waits for its command. The next daemon finds the \
currencies, tickets and settings.

Example:
  prorata stop")]
pub struct StopArgs {}

/// `prorata demo`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Examples:
  prorata demo
  prorata demo --seconds 4 --json
  prorata demo --svg shares.svg
  prorata demo --engine kernel
  prorata demo --slots
  prorata demo --slots --json | jq '.parts[].missed'")]
pub struct DemoArgs {
    /// Show slots of a timetable beside plain Linux, nice values and SCHED_DEADLINE
    #[arg(long, conflicts_with_all = ["engine", "svg"])]
    pub slots: bool,
    /// Engine that schedules
    #[arg(long, default_value = "user")]
    pub engine: DaemonEngine,
    /// Length of the demo in seconds, 2 to 3600; with --slots, of each of its parts
    #[arg(long, default_value = "10", value_name = "N", value_parser = clap::value_parser!(u32).range(2..=3600))]
    pub seconds: u32,
    /// Also draw the received shares over time as SVG into FILE
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
pub struct ManArgs {
    /// Directory for the pages, one per command
    #[arg(value_hint = ValueHint::DirPath)]
    pub directory: Option<PathBuf>,
}

/// `prorata completions`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Example:
  prorata completions bash > ~/.local/share/bash-completion/completions/prorata")]
pub struct CompletionsArgs {
    /// Shell
    pub shell: Shell,
}

/// Shells with completions.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub enum Shell {
    /// bash
    Bash,
    /// fish
    Fish,
    /// zsh
    Zsh,
}

/// `prorata daemon`: the process behind `prorata start`, and behind every
/// command that needs a daemon.
#[derive(Clone, Args, Debug)]
pub struct DaemonArgs {
    /// CPUs to manage
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub cpus: Option<CpuList>,
    #[command(flatten)]
    pub engine: EngineOptions,
}
