//! Arguments of `prorata slots`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::Format;
use super::slots_run::SlotsRunArgs;
use super::timetable::{
    AdmitArgs, ClaimArgs, CloseArgs, DonateArgs, FreeArgs, OpenArgs, ReserveArgs, ShowArgs,
    TokensArgs, WatchArgs,
};

/// `prorata slots`.
#[derive(Clone, Args, Debug)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  prorata slots open
  prorata slots run --periodic 4ms/20ms -- ./controller
  prorata slots claim 0:0,12,24 --client player
  prorata slots show
  prorata slots check robot.toml
  prorata slots plan robot.toml"
)]
pub struct SlotsArgs {
    #[command(subcommand)]
    pub command: SlotsCommand,
}

/// The commands of `prorata slots`.
#[derive(Clone, Subcommand, Debug)]
pub enum SlotsCommand {
    /// Open a timetable, or give the open one another shape while nothing is claimed
    ///
    /// For the daemon's owner and root. The table stays open until it is closed, the daemon is
    /// stopped or the machine boots.
    Open(OpenArgs),
    /// Close the timetable: all claims end
    Close(CloseArgs),
    /// Draw the timetable and list its claims
    Show(ShowArgs),
    /// Tell which of your claims end, and why, as it happens
    Watch(WatchArgs),
    /// Claim slots, or change your claims
    ///
    /// Each slot costs a token of its level. The caller pays, whatever runs in the slot: the client
    /// that the caller belongs to, if that has such tokens, else the caller's user. A higher level
    /// preempts a lower one; equal ones share by weight. What is claimed runs from the second slot
    /// boundary on.
    ///
    /// Exit codes: 0 all slots are claimed; 1 refused, or some are not; 2 wrong usage.
    Claim(ClaimArgs),
    /// Free slots
    Free(FreeArgs),
    /// Show or set an account's tokens
    ///
    /// Setting is for the daemon's owner and root. Each user has tokens of the levels background and
    /// best-effort; all others are given. A client's tokens pay for claims that its own processes make.
    Tokens(TokensArgs),
    /// Give tokens away, until the recipient ends
    Donate(DonateArgs),
    /// Run a command as a client with slots
    ///
    /// The command need not know of slots: prorata stays beside it, and claims another slot when one
    /// is lost. Outside its slots the command competes with its tickets, as under `prorata run`.
    ///
    /// Exit codes: the command's; 1 if there is no room for the wish (then nothing runs); 2 for wrong
    /// usage.
    Run(SlotsRunArgs),
    /// Give tokens by a policy file, whenever a program first asks for something
    ///
    /// For the daemon's owner and root. Each member of a class gets its tokens once. The policy holds
    /// until another one replaces it or the table is closed.
    Admit(AdmitArgs),
    /// Keep slots unclaimed for programs that wait for events
    ///
    /// For the daemon's owner and root.
    Reserve(ReserveArgs),
    /// Check whether claims fit a table together, without a daemon
    ///
    /// Makes the claims of a file in an empty table: higher levels first; within a level named slots
    /// first, then the others in the file's order. For each claim that finds no place, prints a
    /// counterexample: the slot or the window, its CPU, and the claim that has it. Prints the slots, the longest
    /// blackout and the CPU of each claim, the use of each CPU, and whether less than one slot in ten
    /// is reserved. docs/SLOTS.md describes the file.
    ///
    /// Exit codes: 0 all claims fit; 1 conflicts; 2 wrong usage, or a file that is refused.
    Check(CheckArgs),
    /// Find a table in which all periodic claims of a file fit, without a daemon
    ///
    /// Chooses CPUs by bin packing and slots by earliest deadline first. Named slots stay where they
    /// are; gangs and the other claims get what the periodic ones leave. Prints the table, a row for
    /// each CPU, and says if no table has room.
    ///
    /// Exit codes: 0 all claims fit; 1 conflicts; 2 wrong usage, or a file that is refused.
    Plan(PlanArgs),
}

/// `prorata slots check`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Example of a file:
  [slots]
  cpus = 2
  columns = 40
  length = \"5ms\"
  reserve = { slots = 1, of = 10 }

  [[claim]]
  by = \"controller\"
  periodic = \"4ms/20ms\"
  jitter = \"5ms\"
  level = \"hard\"

  [[claim]]
  by = \"simulation\"
  gang = { threads = 2, columns = 10 }
  level = \"gang\"

Example:
  prorata slots check robot.toml")]
pub struct CheckArgs {
    /// File with a table and claims
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    #[command(flatten)]
    pub format: Format,
}

/// `prorata slots plan`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Examples:
  prorata slots plan robot.toml
  prorata slots plan robot.toml --json")]
pub struct PlanArgs {
    /// File with a table and claims, as `prorata slots check --help` shows
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    #[command(flatten)]
    pub format: Format,
}
