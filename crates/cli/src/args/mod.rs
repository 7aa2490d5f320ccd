//! What can be said on the command line. Parsing never does anything: help,
//! man pages, completions and the commands all come from these definitions.

pub mod daemon;
pub mod ledger;
pub mod load;
pub mod reproduce;
pub mod run;
pub mod sim;
pub mod trace;
pub mod values;
pub mod view;
pub mod vm;

use std::fmt;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueHint};

/// Give programs the share of a machine that they were promised.
///
/// Tickets are rights to CPU time: a program with 300 tickets runs three times
/// as fast as one with 100. prorata enforces that on ordinary processes,
/// without root, and lets you change it while they run. A daemon of your own
/// starts by itself when it is first needed, and goes when nothing is left to
/// manage.
#[derive(Clone, Parser, Debug)]
#[command(
    name = "prorata",
    version,
    arg_required_else_help = true,
    max_term_width = 100,
    subcommand_required = true,
    after_help = "\
Examples:
  prorata run -t 300 -- make -j4       three times the CPU time of ...
  prorata run -t 100 -- ./simulation   ... this one
  prorata ps                           who gets what
  prorata set simulation 300           now both get the same
  prorata demo                         see it work

Environment: PRORATA_SOCKET names the socket of the daemon to talk to; PRORATA_CLIENT tells a \
command under `prorata run` which client it is.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage. Commands that run a command pass its exit \
code or signal on."
)]
pub struct Cli {
    /// Socket of the daemon to talk to, instead of your own (also PRORATA_SOCKET)
    #[arg(long, global = true, value_name = "PATH", value_hint = ValueHint::FilePath, help_heading = "Global options")]
    pub socket: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Print JSON or text.
#[derive(Clone, Copy, Args, Debug)]
pub struct Format {
    /// Print JSON with stable field names
    #[arg(long)]
    pub json: bool,
}

/// All commands.
#[derive(Clone, Subcommand, Debug)]
pub enum Command {
    /// Run a command as a client with tickets
    ///
    /// The command and everything that it starts share its tickets. prorata stays beside it as its
    /// parent: it passes on the exit code or the signal that ends it, sends TERM, HUP, INT, QUIT,
    /// USR1, USR2 and ALRM on to it, and follows the terminal's job control. If the daemon ends in
    /// any way but by `prorata stop`, prorata starts it again or joins one that others start; after
    /// `prorata stop` it says so, and the command runs on without its share.
    ///
    /// Exit codes: those of the command; 126 if it cannot be executed, 127 if it is not found; 1 if
    /// it was refused its tickets (then nothing was run); 2 for wrong usage.
    Run(run::Run),
    /// List clients: specified and received CPU time, error, value, state
    ///
    /// SHARE is the part of the machine that a client should get at this moment; SPECIFIED and
    /// RECEIVED are the CPU time that it should have received since it was registered, and that it
    /// did receive; ERROR is the difference in quanta; VALUE is what its tickets are worth in base
    /// units. The machine is all CPUs that the daemon shares out.
    Ps(view::Ps),
    /// Watch clients live; inflate and deflate them
    Top(view::Top),
    /// Inflate or deflate a client's tickets
    #[command(visible_alias = "set-tickets")]
    Set(ledger::Set),
    /// Give a client a quantum of its own
    ///
    /// Turns of its programs last so long from the next one on. They are charged for what they use,
    /// so shares stay what they are: with a shorter quantum a client waits for less and runs for
    /// less at a time, with a longer one it changes over less often. The kernel ends turns with its
    /// tick, every 1 to 10 ms.
    Quantum(ledger::Quantum),
    /// Lend a client's tickets to other clients or currencies
    ///
    /// With a command the transfer lasts as long as the command runs, else until
    /// `prorata transfer --end` undoes it or one of the two is gone. Undone, every ticket is back
    /// where it was. The command itself does not become a client; if the daemon ends while it runs,
    /// so does the transfer.
    Transfer(ledger::Transfer),
    /// Stop managing a client; its processes go on
    Release(ledger::Release),
    /// Draw the currency graph
    Graph(view::Graph),
    /// Create a currency
    Mkcur(ledger::Mkcur),
    /// Destroy a currency
    Rmcur(ledger::Rmcur),
    /// Issue a ticket
    Mktkt(ledger::Mktkt),
    /// Destroy tickets
    Rmtkt(ledger::Rmtkt),
    /// Let a ticket fund a client or back a currency
    Fund(ledger::Fund),
    /// Take a ticket away from what it funds
    Unfund(ledger::Unfund),
    /// List currencies
    Lscur(view::Lscur),
    /// List tickets
    Lstkt(view::Lstkt),
    /// Run a shell command with specified funding
    Fundx(run::Fundx),
    /// Run a command with so many tickets
    RunTickets(run::RunTickets),
    /// List clients and the tickets that they hold
    ShowTickets(view::ShowTickets),
    /// Set how many base tickets fund a user's currency
    SetFunding(ledger::SetFunding),
    /// Show how many base tickets fund users' currencies
    ShowFunding(view::ShowFunding),
    /// Move a client under another user's currency
    Chuser(ledger::Chuser),
    /// Start the daemon, with settings of its own
    Start(daemon::Start),
    /// Change the daemon's quantum or policy
    Configure(daemon::Configure),
    /// Show how the daemon and its engine fare
    Status(daemon::Status),
    /// Release everything and end the daemon
    Stop(daemon::Stop),
    /// See three programs share one CPU 3:2:1
    ///
    /// Runs three copies of a program that every machine has on one CPU, under a daemon of their
    /// own, and shows what each should get and does get. Half-way the third is inflated from 1
    /// ticket to 4. Nothing stays behind.
    Demo(daemon::Demo),
    /// Run commands in a machine of their own, with a kernel that has sched_ext
    Vm(vm::Vm),
    /// Run a scenario, on a simulated machine or on real processes
    ///
    /// A scenario file says what the machine is, which programs compete on it with which tickets,
    /// and what happens when. One seed gives one run, the same on every machine. What decides is
    /// the very code that decides for real processes.
    Sim(sim::Sim),
    /// Repeat the papers' experiments and compare the numbers
    ///
    /// Runs each figure of the lottery and stride papers, by simulation or on real processes, and
    /// prints the paper's numbers beside ours, with the tolerance and a verdict. Further columns
    /// show the same experiment under other policies, EEVDF as a baseline among them; they carry
    /// no verdict.
    ///
    /// Exit codes: 0 everything came out; 1 something did not, or could not be run; 2 wrong usage.
    Reproduce(reproduce::Reproduce),
    /// Record what the scheduler in the kernel decides about everybody
    ///
    /// Loads the scheduler for all of the machine, records each of its decisions for a while, and
    /// unloads it: who joins, is picked, is charged, is worth something else and leaves. Control
    /// groups are currencies then, with their cpu.weight, and nice values tickets. Needs root and a
    /// kernel with sched_ext on which no other scheduler is loaded, and a prorata built with it.
    ///
    /// Exit codes: 0 done; 1 with --check, if a decision is not allowed or was lost, or refused or
    /// failed; 2 wrong usage.
    Trace(trace::Trace),
    /// Run a load that makes a scheduler work, and see how fast it goes
    ///
    /// The two microbenchmarks of the paper on multi-queue scheduling (2001) as ordinary programs:
    /// they run under whatever schedules them, plain Linux or an engine of prorata.
    Load(load::Load),
    /// Print the man page, or write all of them to a directory
    Man(daemon::Man),
    /// Print completions for a shell
    Completions(daemon::Completions),
    /// Run a command under the minimal scheduler that benches compare with
    #[command(hide = true)]
    Floor(vm::Floor),
    /// Be the daemon
    #[command(hide = true)]
    Daemon(daemon::Daemon),
}

/// Arguments that contradict one another in a way that the definitions above
/// cannot say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WrongUsage(pub String);

impl fmt::Display for WrongUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongUsage {}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_explains_itself_by_an_example() {
        for command in Cli::command()
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
        {
            let name = command.get_name();
            let after = command
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            assert!(
                after.contains(&format!("prorata {name}")),
                "{name} has no example"
            );
            assert!(
                command.get_about().is_some(),
                "{name} says not what it does"
            );
            for argument in command.get_arguments() {
                assert!(
                    argument.get_help().is_some(),
                    "{name} does not explain {}",
                    argument.get_id()
                );
            }
        }
    }
}
