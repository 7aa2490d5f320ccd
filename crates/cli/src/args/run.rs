//! Arguments of the commands that run a command as a client.

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, ValueHint};

use prorata_protocol::CpuLimit;

use super::values::{CpuList, amount, cpu_list, duration};

/// `prorata run`.
#[derive(Clone, Args, Debug)]
#[command(
    override_usage = "prorata run [OPTIONS] [--] COMMAND [ARGUMENT]...",
    after_help = "\
Examples:
  prorata run -t 300 -- make -j4
  prorata run -t 50 -c batch -n nightly -- ./simulate --all
  prorata run --cpus 0 -- sha256sum /dev/zero
  prorata run --quantum 4ms -- ./player       shorter turns, the same share
  prorata run --max 50% -- ./index            at most half of a CPU, even if others idle"
)]
pub struct RunArgs {
    /// Number of tickets
    #[arg(short, long, default_value = "100", value_parser = amount)]
    pub tickets: u32,
    /// Currency of the tickets, instead of your own
    #[arg(short, long)]
    pub currency: Option<String>,
    /// Name of the client, instead of the program's
    #[arg(short, long)]
    pub name: Option<String>,
    /// The client's own quantum, 1ms to 1s, instead of the daemon's
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub quantum: Option<Duration>,
    /// Most CPU time that the client may get, even of CPUs that would idle: 100% is one CPU
    #[arg(long, value_name = "PERCENT")]
    pub max: Option<CpuLimit>,
    /// Bind the command to these CPUs, such as 0,2-3
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub cpus: Option<CpuList>,
    /// Command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// `prorata fundx` (1994, 4.7).
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Examples:
  prorata fundx 300 'cd src && make'
  prorata fundx 10 -c batch 'find / -name core | wc -l'")]
pub struct FundxArgs {
    /// Number of tickets
    #[arg(allow_negative_numbers = true, value_parser = amount)]
    pub amount: u32,
    /// Shell command
    pub command: OsString,
    /// Currency of the tickets, instead of your own
    #[arg(short, long)]
    pub currency: Option<String>,
    /// Name of the client, instead of the shell's
    #[arg(short, long)]
    pub name: Option<String>,
}

/// `prorata run-tickets` (1999, 4.2).
#[derive(Clone, Args, Debug)]
#[command(
    override_usage = "prorata run-tickets TICKETS [--] COMMAND [ARGUMENT]...",
    after_help = "\
Example:
  prorata run-tickets 300 make -j4"
)]
pub struct RunTicketsArgs {
    /// Number of tickets, in your own currency
    #[arg(allow_negative_numbers = true, value_parser = amount)]
    pub tickets: u32,
    /// Command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}
