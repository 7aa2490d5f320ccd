//! Arguments of the commands that change the ledger.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;

use super::Format;
use super::values::{EndSignal, Max, Receiver, amount, duration, max, mode, receiver};

/// `prorata set`, and `set-tickets` (1999, 4.2).
#[derive(Clone, Args, Debug)]
#[command(
    override_usage = "prorata set [OPTIONS] CLIENT TICKETS\n       prorata set CLIENT --max PERCENT",
    after_help = "\
Examples:
  prorata set simulation 300
  prorata set c3 50 -c batch
  prorata set 4711 200          the client of process 4711, or the process as a new client
  prorata set --ticket t9 500   a single ticket
  prorata set backup --max 50%  at most half of a CPU, even if others idle
  prorata set backup --max none no limit any more

A process that becomes a client this way keeps its CPU affinity; see `prorata start`."
)]
pub struct SetArgs {
    /// Name, identifier (c3) or pid of a client
    pub client: String,
    /// New amount
    #[arg(allow_negative_numbers = true, value_parser = amount, required_unless_present = "max", conflicts_with = "max")]
    pub tickets: Option<u32>,
    /// Most CPU time that the client may get, even of CPUs that would idle: 100% is one CPU, none
    /// ends the limit
    #[arg(long, value_name = "PERCENT", value_parser = max, conflicts_with_all = ["currency", "ticket"])]
    pub max: Option<Max>,
    /// Currency to change, if the client holds several
    #[arg(short, long, conflicts_with = "ticket")]
    pub currency: Option<String>,
    /// Take CLIENT as the identifier of a ticket (t9)
    #[arg(long)]
    pub ticket: bool,
    #[command(flatten)]
    pub format: Format,
}

/// `prorata quantum`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Examples:
  prorata quantum player 4ms
  prorata quantum simulation 100ms   above the daemon's quantum, only its owner may do this
  prorata quantum player --reset     back to the daemon's quantum")]
pub struct QuantumArgs {
    /// Name, identifier (c3) or pid of a client
    pub client: String,
    /// Length of the quantum, 1ms to 1s
    #[arg(value_parser = duration, required_unless_present = "reset", conflicts_with = "reset")]
    pub time: Option<Duration>,
    /// Return to the daemon's quantum, see `prorata configure`
    #[arg(long)]
    pub reset: bool,
}

/// `prorata transfer`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Examples:
  prorata transfer build viewer=50            50 of build's tickets
  prorata transfer build viewer=50 batch=20   to several receivers
  prorata transfer build viewer --all -- ./render   all tickets, while ./render runs
  prorata transfer --list
  prorata transfer --end x3")]
pub struct TransferArgs {
    /// Lender: name, identifier or pid of a client
    #[arg(required_unless_present_any = ["list", "end"], conflicts_with_all = ["list", "end"])]
    pub from: Option<String>,
    /// Receivers: clients or currencies, each with an amount unless --all is given
    #[arg(value_name = "TO[=AMOUNT]", value_parser = receiver, required_unless_present_any = ["list", "end"])]
    pub to: Vec<Receiver>,
    /// Lend all tickets, in equal parts
    #[arg(long, conflicts_with_all = ["list", "end", "currency"])]
    pub all: bool,
    /// Currency to lend, if the lender holds several
    #[arg(short, long, conflicts_with_all = ["list", "end"])]
    pub currency: Option<String>,
    /// List active transfers
    #[arg(long, conflicts_with = "end")]
    pub list: bool,
    /// Undo a transfer
    #[arg(long, value_name = "TRANSFER")]
    pub end: Option<String>,
    #[command(flatten)]
    pub format: Format,
    /// Undo the transfer when this command ends
    #[arg(last = true, conflicts_with_all = ["list", "end", "json"])]
    pub command: Vec<OsString>,
}

/// `prorata release`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Example:
  prorata release simulation")]
pub struct ReleaseArgs {
    /// Name, identifier (c3) or pid of a client
    pub client: String,
}

/// `prorata kill`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Examples:
  prorata kill simulation
  prorata kill c3 --signal KILL
  prorata kill 4711 --json      the client of process 4711")]
pub struct KillArgs {
    /// Name, identifier (c3) or pid of a client
    pub client: String,
    /// Signal to send
    #[arg(
        short,
        long,
        value_name = "NAME",
        default_value = "TERM",
        ignore_case = true
    )]
    pub signal: EndSignal,
    #[command(flatten)]
    pub format: Format,
}

/// `prorata mkcur` (1994, 4.7).
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Examples:
  prorata mkcur batch
  prorata mkcur team --owner alice --mode 764")]
pub struct MkcurArgs {
    /// Name of the currency
    pub name: String,
    /// Owner, by login name or number, instead of you
    #[arg(long, value_name = "USER")]
    pub owner: Option<String>,
    /// Permissions to read (4), fund (2) and issue (1), a digit each for owner, group and others
    /// [default: 744]
    #[arg(long, value_parser = mode)]
    pub mode: Option<u16>,
    #[command(flatten)]
    pub format: Format,
}

/// `prorata rmcur` (1994, 4.7).
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Example:
  prorata rmcur batch")]
pub struct RmcurArgs {
    /// Name of the currency
    pub name: String,
}

/// `prorata mktkt` (1994, 4.7).
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Examples:
  prorata mktkt 200 --fund batch          200 of your own currency back batch
  prorata mktkt 50 -c batch --fund build  50.batch fund the client build
  prorata mktkt 50 -c batch               unused until `prorata fund`")]
pub struct MktktArgs {
    /// Face value
    #[arg(allow_negative_numbers = true, value_parser = amount)]
    pub amount: u32,
    /// Currency of the ticket, instead of your own
    #[arg(short, long)]
    pub currency: Option<String>,
    /// Client or currency to fund at once
    #[arg(short, long, value_name = "TARGET")]
    pub fund: Option<String>,
    #[command(flatten)]
    pub format: Format,
}

/// `prorata rmtkt` (1994, 4.7).
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Example:
  prorata rmtkt t3 t4")]
pub struct RmtktArgs {
    /// Identifiers of the tickets, such as t3
    #[arg(required = true, value_name = "TICKET")]
    pub tickets: Vec<String>,
}

/// `prorata fund` (1994, 4.7).
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Examples:
  prorata fund t3 build
  prorata fund t3 currency:build   if a client has the same name")]
pub struct FundArgs {
    /// Identifier of the ticket, such as t3
    pub ticket: String,
    /// Client or currency to fund
    pub target: String,
}

/// `prorata unfund` (1994, 4.7).
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Example:
  prorata unfund t3")]
pub struct UnfundArgs {
    /// Identifier of the ticket, such as t3
    pub ticket: String,
}

/// `prorata set-funding` (1999, 4.2).
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Example:
  prorata set-funding alice 2000")]
pub struct SetFundingArgs {
    /// User, by login name or number
    pub user: String,
    /// Number of base tickets
    #[arg(allow_negative_numbers = true, value_parser = amount)]
    pub amount: u32,
}

/// `prorata chuser` (1999, 4.2).
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Examples:
  prorata chuser Xorg alice
  prorata chuser $(pidof Xorg) alice   a process that is no client")]
pub struct ChuserArgs {
    /// Name, identifier (c3) or pid of a client, or pid of any process
    pub client: String,
    /// User, by login name or number
    pub user: String,
    #[command(flatten)]
    pub format: Format,
}
