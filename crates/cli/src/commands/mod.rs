//! One module per command or group of commands.

mod clients;
mod currencies;
mod daemon;
mod demo;
mod events;
mod floor;
mod graph;
mod kill;
mod load;
mod manual;
mod observe;
mod players;
mod reproduce;
mod run;
mod sim;
mod slots;
mod tickets;
mod top;
mod trace;
mod transfer;
mod tree;
mod users;
mod vm;

use std::process::ExitCode;

use anyhow::Result;

use crate::args::{Cli, Command};
use crate::caller::Caller;

/// Executes a command. Returns the exit code of the program that the command
/// ran, or the verdict of the command.
pub fn execute(arguments: &Cli) -> Result<ExitCode> {
    let caller = || Caller::new(arguments.socket.as_deref());
    let own = || Caller::own(arguments.socket.as_deref());
    let done = match &arguments.command {
        Command::Run(args) => return run::run(&caller()?, args),
        Command::Fundx(args) => return run::fundx(&caller()?, args),
        Command::RunTickets(args) => return run::run_tickets(&caller()?, args),
        Command::Transfer(args) => return transfer::transfer(&caller()?, args),
        Command::Observe(args) => return observe::observe(args),
        Command::Trace(args) => return trace::trace(&caller()?, args),
        Command::Demo(args) => return demo::demo(args),
        Command::Vm(args) => return vm::vm(args),
        Command::Floor(args) => return floor::floor(args),
        Command::Slots(args) => return slots::slots(&caller, args),
        Command::Sim(args) => return sim::sim(args),
        Command::Reproduce(args) => return reproduce::reproduce(args),
        Command::Load(args) => return load::load(args),
        Command::Man(args) => manual::man(args),
        Command::Completions(args) => manual::completions(args),
        Command::Ps(args) => clients::ps(&caller()?, args),
        Command::Events(args) => events::events(&caller()?, args),
        Command::Top(args) => top::top(&caller()?, args),
        Command::Set(args) => clients::set(&caller()?, args),
        Command::Quantum(args) => clients::quantum(&caller()?, args),
        Command::Release(args) => clients::release(&caller()?, args),
        Command::Kill(args) => kill::kill(&caller()?, args),
        Command::Graph(args) => graph::graph(&caller()?, args),
        Command::Mkcur(args) => currencies::mkcur(&caller()?, args),
        Command::Rmcur(args) => currencies::rmcur(&caller()?, args),
        Command::Lscur(args) => currencies::lscur(&caller()?, args),
        Command::Mktkt(args) => tickets::mktkt(&caller()?, args),
        Command::Rmtkt(args) => tickets::rmtkt(&caller()?, args),
        Command::Fund(args) => tickets::fund(&caller()?, args),
        Command::Unfund(args) => tickets::unfund(&caller()?, args),
        Command::Lstkt(args) => tickets::lstkt(&caller()?, args),
        Command::ShowTickets(args) => users::show_tickets(&caller()?, args),
        Command::SetFunding(args) => users::set_funding(&caller()?, args),
        Command::ShowFunding(args) => users::show_funding(&caller()?, args),
        Command::Chuser(args) => users::chuser(&caller()?, args),
        Command::Start(args) => daemon::start(&own()?, args),
        Command::Configure(args) => daemon::configure(&caller()?, args),
        Command::Status(args) => daemon::status(&caller()?, args),
        Command::Stop(_) => daemon::stop(&own()?),
        Command::Daemon(args) => daemon::daemon(&own()?, args),
    };
    done.map(|()| ExitCode::SUCCESS)
}
