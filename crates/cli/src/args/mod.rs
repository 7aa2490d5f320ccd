//! The arguments of every command. Help, man pages, completions and parsing
//! come from these definitions; parsing has no effect of its own.

pub mod daemon;
pub mod events;
pub mod ledger;
pub mod load;
pub mod observe;
pub mod players;
pub mod reproduce;
pub mod run;
pub mod sim;
pub mod slots;
pub mod slots_run;
pub mod timetable;
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
/// as fast as one with 100. prorata enforces the shares on ordinary processes,
/// without root, and you may change tickets while the processes run. Your own
/// daemon starts with the first command that needs it, and ends when no client
/// is left.
#[derive(Clone, Parser, Debug)]
#[command(
    name = "prorata",
    version,
    arg_required_else_help = true,
    max_term_width = 100,
    subcommand_required = true,
    after_help = "\
Examples:
  prorata run -t 300 -- make -j4       a client with 300 tickets ...
  prorata run -t 100 -- ./simulation   ... gets three times the CPU time of this one
  prorata ps                           show each client's share
  prorata set simulation 300           give both clients the same share
  prorata demo                         watch three programs share a CPU

Which daemon: the one on --socket, else on PRORATA_SOCKET; else your own, if it runs; else root's, if \
it runs; else your own, which the command starts. A process belongs to one daemon.

Environment: PRORATA_SOCKET names the socket of the daemon to use. `prorata run` sets \
PRORATA_CLIENT to the client's identifier for its command.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage. Commands that run another command pass on \
its exit code or signal."
)]
pub struct Cli {
    /// Socket of the daemon to use (also PRORATA_SOCKET)
    #[arg(long, global = true, value_name = "PATH", value_hint = ValueHint::FilePath, help_heading = "Global options")]
    pub socket: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Output format.
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
    /// The command and all its descendants share the client's tickets. prorata stays the command's
    /// parent: it forwards TERM, HUP, INT, QUIT, USR1, USR2 and ALRM to the command, follows the
    /// terminal's job control, and passes on the command's exit code or fatal signal. If the daemon
    /// crashes, prorata starts a new one or joins one that another process started. After `prorata
    /// stop` prorata prints a notice, and the command continues without its share.
    ///
    /// If the daemon serves too many programs at the moment, prorata waits for its turn, up to 10
    /// minutes. If no daemon can start or keep the client, the command runs without its share, and
    /// prorata says why.
    ///
    /// Exit codes: the command's; 126 if the command cannot be executed, 127 if it is not found; 1
    /// if the daemon refuses the tickets (then nothing runs); 2 for wrong usage.
    Run(run::RunArgs),
    /// List clients: specified and received CPU time, error, value, state
    ///
    /// SHARE is the client's present entitlement, as a part of all CPUs that the daemon manages. CPU
    /// is its present use of CPUs; 100 % is one CPU. SPECIFIED is the CPU time that the client was
    /// entitled to since its registration, and RECEIVED is the CPU time that it used. ERROR is the
    /// difference in quanta. VALUE is the worth of its tickets in base units. BOOST is how urgent hybrid
    /// lottery scheduling takes a client that wakes: (1/f)^4, at most 10000, where f is the part of its
    /// due that it received in ten seconds. LEAD is by how much its use is ahead of its due. NICE is
    /// the nice value of its processes. On a narrow terminal some columns are missing.
    Ps(view::PsArgs),
    /// Watch clients live; inflate and deflate them
    Top(view::TopArgs),
    /// Show the last sleeps, wakes and ends of turns, with their reasons
    ///
    /// The user engine keeps the last 1000 events. It looks at clients now and then: an event has the
    /// time of the look that showed it, and a sleep between two looks is not seen. The function of the
    /// kernel in which a client sleeps is shown where the daemon's user may know it. Under the kernel
    /// engine, which must be started with --trace, the command needs root, and shows the events of the
    /// second for which it listens, by thread. TIME counts from the boot.
    Events(events::EventsArgs),
    /// Inflate or deflate a client's tickets
    #[command(visible_alias = "set-tickets", alias = "set_tickets")]
    Set(ledger::SetArgs),
    /// Give a client a quantum of its own
    ///
    /// The new quantum applies from the client's next turn. Shares do not change, because a turn is
    /// charged for the time that it used: a shorter quantum makes waits and turns shorter, a longer
    /// one causes fewer context switches. The kernel ends turns at its tick, every 1 to 10 ms.
    Quantum(ledger::QuantumArgs),
    /// Lend a client's tickets to other clients or currencies
    ///
    /// With a command, the transfer lasts as long as the command runs. Without one, it lasts until
    /// `prorata transfer --end` undoes it, or until the lender or the receiver is gone. Undoing
    /// returns every ticket. The command itself does not become a client. If the daemon ends, the
    /// transfer of a running command ends too.
    ///
    /// A loan to another user's client needs no permission of that user: its client only gains, and
    /// no other client gets less than beside a lender that competes.
    Transfer(ledger::TransferArgs),
    /// Stop managing a client; its processes continue
    Release(ledger::ReleaseArgs),
    /// End a client with all its processes
    ///
    /// Each process of the client gets the signal once, also those that are born meanwhile. A
    /// client with few tickets takes the signal as soon as any other. You may end your own
    /// clients, and root all.
    ///
    /// Exit codes: 0 the client has ended; 1 refused, or a process goes on 5 seconds later; 2 wrong
    /// usage.
    Kill(ledger::KillArgs),
    /// Draw the currency graph
    Graph(view::GraphArgs),
    /// Create a currency
    Mkcur(ledger::MkcurArgs),
    /// Destroy a currency
    Rmcur(ledger::RmcurArgs),
    /// Issue a ticket
    Mktkt(ledger::MktktArgs),
    /// Destroy tickets
    Rmtkt(ledger::RmtktArgs),
    /// Fund a client or back a currency with a ticket
    Fund(ledger::FundArgs),
    /// Withdraw a ticket from the client or currency that it funds
    Unfund(ledger::UnfundArgs),
    /// List currencies
    Lscur(view::LscurArgs),
    /// List tickets
    Lstkt(view::LstktArgs),
    /// Run a shell command as a client with tickets
    Fundx(run::FundxArgs),
    /// Run a command as a client with tickets in your own currency
    #[command(alias = "run_tickets")]
    RunTickets(run::RunTicketsArgs),
    /// List clients and their tickets
    #[command(alias = "show_tickets")]
    ShowTickets(view::ShowTicketsArgs),
    /// Set the number of base tickets that fund a user's currency
    #[command(alias = "set_funding")]
    SetFunding(ledger::SetFundingArgs),
    /// Show the number of base tickets that fund each user's currency
    #[command(alias = "show_funding")]
    ShowFunding(view::ShowFundingArgs),
    /// Move a client or a process under another user's currency
    ///
    /// A process that is no client becomes one, with 100 tickets of that currency.
    #[command(alias = "lott_chuser")]
    Chuser(ledger::ChuserArgs),
    /// Start the daemon with chosen settings
    Start(daemon::StartArgs),
    /// Change the daemon's quantum, policy or mechanisms
    Configure(daemon::ConfigureArgs),
    /// Show the state of the daemon and its engine
    Status(daemon::StatusArgs),
    /// Release all clients and end the daemon
    Stop(daemon::StopArgs),
    /// Watch three programs share one CPU 3:2:1, or programs with slots of a timetable
    ///
    /// Runs three copies of a common program on one CPU, and shows the specified and received
    /// share of each. Half-way the third copy is inflated from 1 ticket to 4. The demo leaves
    /// nothing behind.
    ///
    /// With --slots, a controller, a gang and compile jobs share two CPUs or more: under plain Linux,
    /// with nice values, under SCHED_DEADLINE, and with slots of prorata's timetable. The controller
    /// works 4 ms of every 20 ms, until a deadline. The threads of the gang spin at a barrier until
    /// all of them have worked 0.5 ms. Two clients of compile jobs have tickets 3:1. All four are
    /// measured at the same time. Parts that this user may not run are named and left out.
    ///
    /// Exit codes: 0 done, and with --slots everything promised held; 1 refused or failed, or a
    /// promise of slots did not hold; 2 wrong usage.
    Demo(daemon::DemoArgs),
    /// Claim slots of a public timetable of the CPUs
    ///
    /// A table of CPUs by time slots that repeats (2005). What is claimed runs in its slots, before
    /// all other clients; where nothing is claimed, tickets decide.
    Slots(slots::SlotsArgs),
    /// Run commands in a micro-VM whose kernel has sched_ext
    Vm(vm::VmArgs),
    /// Run a scenario on a simulated machine or on real processes
    ///
    /// A scenario file describes the machine, the competing programs, their tickets, and timed
    /// events. The simulator uses the scheduling code of the engine for real processes. One
    /// seed gives one simulated run, byte for byte, on every host.
    Sim(sim::SimArgs),
    /// Repeat the papers' experiments and compare the numbers
    ///
    /// Runs the figures of the papers on lottery (1994), stride (1995), hybrid lottery (1999),
    /// multi-queue (2001) and slot scheduling (2005), by simulation or on real processes. Prints the
    /// paper's numbers beside ours, with tolerances and verdicts. Further columns show the same
    /// experiment under other policies, without a verdict; EEVDF is the baseline among them. All
    /// figures take about twenty minutes by simulation on two CPUs.
    ///
    /// Exit codes: 0 every number reproduced; 3 some differ, each with its reason, and none failed; 1 a
    /// number failed, or a figure could not run; 2 wrong usage.
    Reproduce(reproduce::ReproduceArgs),
    /// Record the decisions of the scheduler in the kernel
    ///
    /// Records every task that joins, is picked, is charged, changes value or leaves. Without a
    /// daemon on the kernel engine, the command loads a scheduler for the whole machine and unloads
    /// it afterwards; control groups are currencies with their cpu.weight then, and nice values are
    /// tickets. Needs root, a kernel with sched_ext and without another such scheduler, and a
    /// prorata built with the kernel engine.
    ///
    /// Exit codes: 0 done; 1 refused or failed, or --check found a decision that tickets do not
    /// allow or a lost one; 2 wrong usage.
    Trace(trace::TraceArgs),
    /// Observe how soon tasks run after they wake, under any scheduler
    ///
    /// Counts context switches, and the time from each wake to the turn that follows, under Linux's
    /// own scheduler or any other, and draws no conclusion from tasks that were preempted. With
    /// --sleeps also how often and how long tasks slept, by the function of the kernel that put them
    /// to sleep (a lock, a disk, a pipe). Counters stay in the kernel until the end, so a long
    /// observation needs no more memory. Needs root, a kernel that programs in BPF may observe
    /// (CONFIG_BPF_EVENTS and CONFIG_DEBUG_INFO_BTF, as distributions build it; no sched_ext), and a
    /// prorata built with the kernel engine.
    ///
    /// Exit codes: 0 done, also if the interrupt key ended it early; 1 refused or failed; 2 wrong
    /// usage.
    Observe(observe::ObserveArgs),
    /// Run a load that stresses a scheduler, and measure its throughput
    ///
    /// Ordinary programs, which run under any scheduler: plain Linux, or an engine of prorata. Chat
    /// and reflex are the microbenchmarks of the paper on multi-queue scheduling (2001). Wake
    /// measures how late a thread wakes, keys how soon a program answers to keys.
    Load(load::LoadArgs),
    /// Print the man page, or write all man pages to a directory
    Man(daemon::ManArgs),
    /// Print completions for a shell
    Completions(daemon::CompletionsArgs),
    /// Run a command under the minimal scheduler of the benches
    #[command(hide = true)]
    Floor(vm::FloorArgs),
    /// Become the daemon
    #[command(hide = true)]
    Daemon(daemon::DaemonArgs),
}

/// Arguments that contradict one another in a way that the definitions above
/// cannot express.
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
    fn every_command_has_an_example_and_explains_its_arguments() {
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
            assert!(command.get_about().is_some(), "{name} has no description");
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
