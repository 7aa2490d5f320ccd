//! `prorata slots`: the public timetable (2005).

mod admit;
mod check;
mod claims;
mod file;
mod open;
mod plan;
mod report;
mod run;
pub mod show;
mod watch;

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use prorata_core::cpu_list;
use prorata_protocol::slots::{SlotsAnswer, SlotsReport, SlotsRequest};
use prorata_protocol::{Connection, Request, Response};

use crate::args::slots::{SlotsArgs, SlotsCommand};
use crate::caller::{self, Caller};

/// `prorata slots`. Checking and planning ask no daemon.
pub fn slots(caller: &dyn Fn() -> Result<Caller>, args: &SlotsArgs) -> Result<ExitCode> {
    let done = match &args.command {
        SlotsCommand::Check(args) => return check::check(args),
        SlotsCommand::Plan(args) => return plan::plan(args),
        SlotsCommand::Claim(args) => return claims::claim(&caller()?, args),
        SlotsCommand::Free(args) => return claims::free(&caller()?, args),
        SlotsCommand::Tokens(args) => return claims::tokens(&caller()?, args),
        SlotsCommand::Donate(args) => return claims::donate(&caller()?, args),
        SlotsCommand::Reserve(args) => return claims::reserve(&caller()?, args),
        SlotsCommand::Run(args) => return run::run(&caller()?, args),
        SlotsCommand::Open(args) => open::open(&caller()?, args),
        SlotsCommand::Close(args) => open::close(&caller()?, args),
        SlotsCommand::Admit(args) => admit::admit(&caller()?, args),
        SlotsCommand::Show(args) => show::show(&caller()?, args),
        SlotsCommand::Watch(args) => watch::watch(&caller()?, args),
    };
    done.map(|()| ExitCode::SUCCESS)
}

/// Sends a request about the timetable.
pub fn ask(connection: &mut Connection, request: SlotsRequest) -> Result<SlotsAnswer> {
    caller::answer!(connection, &Request::Slots(request), Response::Slots)
}

/// The open table.
pub fn table(connection: &mut Connection) -> Result<SlotsReport> {
    match ask(connection, SlotsRequest::Status)? {
        SlotsAnswer::Open(report) => Ok(report),
        other => Err(unexpected(other)),
    }
}

fn unexpected(answer: SlotsAnswer) -> anyhow::Error {
    caller::unexpected(&Response::Slots(answer))
}

/// The row of a CPU.
fn row_of(cpus: &[u32], cpu: u32) -> Result<u32> {
    let row = cpus.iter().position(|&other| other == cpu);
    let row = row.with_context(|| {
        format!(
            "CPU {cpu} has no slots: the table is for {}",
            cpu_list::text(cpus)
        )
    })?;
    Ok(row as u32)
}
