//! Arguments of `prorata vm` and `prorata floor`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::Format;
use prorata_vm::machine::{CPUS, INSTRUCTION_NS, MEMORY_MIB};

/// `prorata vm`.
#[derive(Clone, Args, Debug)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  prorata vm fetch
  prorata vm run -- uname -r
  prorata vm run --kernel 6.18 --cpus 4 -- make check"
)]
pub struct VmArgs {
    #[command(subcommand)]
    pub command: VmCommand,
}

/// The commands of `prorata vm`.
#[derive(Clone, Subcommand, Debug)]
pub enum VmCommand {
    /// Run a command in a micro-VM
    ///
    /// The command runs as root and sees the host's files; its writes stay in memory and end with
    /// the machine. prorata passes on the command's output and exit code. The command's input is
    /// empty. The machine uses KVM where it works.
    Run(VmRunArgs),
    /// Fetch kernels from this host's Debian mirror
    ///
    /// Each kernel is kept if a scheduler loads under it in a micro-VM. The host's apt is not
    /// changed. Afterwards `prorata vm run` needs no network.
    Fetch(VmFetchArgs),
    /// List the fetched kernels
    List(VmListArgs),
}

/// `prorata vm run`.
#[derive(Clone, Args, Debug)]
#[command(
    override_usage = "prorata vm run [OPTIONS] [--] COMMAND [ARGUMENT]...",
    after_help = "\
Examples:
  prorata vm run -- uname -r
  prorata vm run --kernel 6.18 --cpus 4 -- ./check
  prorata vm run --cpus 4 --sockets 2 -- lscpu --caches
  prorata vm run --icount --limit 600 -- ./bench"
)]
pub struct VmRunArgs {
    /// Number of CPUs
    #[arg(long, default_value = "1", value_name = "N", value_parser = clap::value_parser!(u32).range(i64::from(*CPUS.start())..=i64::from(*CPUS.end())))]
    pub cpus: u32,
    /// Number of sockets, each with an equal number of CPUs and a last-level cache of its own
    #[arg(long, default_value = "1", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(*CPUS.end())))]
    pub sockets: u32,
    /// Memory in MiB
    #[arg(long, default_value = "1024", value_name = "MIB", value_parser = clap::value_parser!(u32).range(i64::from(*MEMORY_MIB.start())..=i64::from(*MEMORY_MIB.end())))]
    pub memory: u32,
    /// Make the machine's clock count instructions; each lasts NS nanoseconds (1 without a value)
    #[arg(long, value_name = "NS", num_args = 0..=1, require_equals = true, default_missing_value = "1", value_parser = instruction_ns)]
    pub icount: Option<u32>,
    /// Newest fetched kernel of a series such as 6.18, or path of an image such as ./vmlinuz
    /// [default: the newest fetched]
    #[arg(long, value_name = "SERIES|FILE", value_hint = ValueHint::FilePath)]
    pub kernel: Option<PathBuf>,
    /// How long the command may take; then the machine ends, and the end of its kernel's log is
    /// printed [default: any time]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: Option<u32>,
    /// Command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

fn instruction_ns(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(ns) if INSTRUCTION_NS.contains(&ns) => Ok(ns),
        _ => Err(format!("an instruction lasts one of {INSTRUCTION_NS:?} ns")),
    }
}

/// `prorata vm fetch`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Examples:
  prorata vm fetch
  prorata vm fetch 7.1")]
pub struct VmFetchArgs {
    /// Kernel series [default: 6.18 7]
    pub series: Vec<String>,
}

/// `prorata vm list`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Example:
  prorata vm list")]
pub struct VmListArgs {
    #[command(flatten)]
    pub format: Format,
}

/// `prorata floor`: a command under the minimal scheduler of the benches.
#[derive(Clone, Args, Debug)]
pub struct FloorArgs {
    /// Command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<OsString>,
}
