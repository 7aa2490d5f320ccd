//! One module per command or group of commands.

mod clients;
mod currencies;
mod daemon;
mod demo;
mod floor;
mod graph;
mod load;
mod manual;
mod reproduce;
mod run;
mod sim;
mod tickets;
mod top;
mod trace;
mod transfer;
mod users;
mod vm;

use std::process::ExitCode;

use anyhow::Result;

use crate::args::{Cli, Command};
use crate::caller::Caller;

/// Executes a command. Returns the exit code of the program that the command
/// ran, or the verdict of the command.
pub fn execute(arguments: &Cli) -> Result<ExitCode> {
    // These need no daemon.
    match &arguments.command {
        Command::Demo(args) => return demo::demo(args),
        Command::Vm(args) => return vm::vm(args),
        Command::Floor(args) => return floor::floor(args),
        Command::Sim(args) => return sim::sim(args),
        Command::Reproduce(args) => return reproduce::reproduce(args),
        Command::Load(args) => return load::load(args),
        Command::Man(args) => return manual::man(args).map(done),
        Command::Completions(args) => return manual::completions(args).map(done),
        _ => {}
    }
    let caller = Caller::new(arguments.socket.as_deref())?;
    match &arguments.command {
        Command::Run(args) => run::run(&caller, args),
        Command::Fundx(args) => run::fundx(&caller, args),
        Command::RunTickets(args) => run::run_tickets(&caller, args),
        Command::Transfer(args) => transfer::transfer(&caller, args),
        Command::Trace(args) => trace::trace(&caller, args),
        other => query(&caller, other).map(done),
    }
}

fn query(caller: &Caller, command: &Command) -> Result<()> {
    match command {
        Command::Ps(args) => clients::ps(caller, args),
        Command::Top(args) => top::top(caller, args),
        Command::Set(args) => clients::set(caller, args),
        Command::Quantum(args) => clients::quantum(caller, args),
        Command::Release(args) => clients::release(caller, args),
        Command::Graph(args) => graph::graph(caller, args),
        Command::Mkcur(args) => currencies::mkcur(caller, args),
        Command::Rmcur(args) => currencies::rmcur(caller, args),
        Command::Lscur(args) => currencies::lscur(caller, args),
        Command::Mktkt(args) => tickets::mktkt(caller, args),
        Command::Rmtkt(args) => tickets::rmtkt(caller, args),
        Command::Fund(args) => tickets::fund(caller, args),
        Command::Unfund(args) => tickets::unfund(caller, args),
        Command::Lstkt(args) => tickets::lstkt(caller, args),
        Command::ShowTickets(args) => users::show_tickets(caller, args),
        Command::SetFunding(args) => users::set_funding(caller, args),
        Command::ShowFunding(args) => users::show_funding(caller, args),
        Command::Chuser(args) => users::chuser(caller, args),
        Command::Start(args) => daemon::start(caller, args),
        Command::Configure(args) => daemon::configure(caller, args),
        Command::Status(args) => daemon::status(caller, args),
        Command::Stop(_) => daemon::stop(caller),
        Command::Daemon(args) => daemon::daemon(caller, args),
        Command::Run(_)
        | Command::Fundx(_)
        | Command::RunTickets(_)
        | Command::Transfer(_)
        | Command::Demo(_)
        | Command::Vm(_)
        | Command::Floor(_)
        | Command::Sim(_)
        | Command::Reproduce(_)
        | Command::Trace(_)
        | Command::Load(_)
        | Command::Man(_)
        | Command::Completions(_) => unreachable!("done by `execute`"),
    }
}

fn done((): ()) -> ExitCode {
    ExitCode::SUCCESS
}
