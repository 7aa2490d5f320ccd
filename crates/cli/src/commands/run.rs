//! `run`, `fundx` and `run-tickets`: run a command as a client.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, ensure};
use nix::sys::wait::waitpid;
use prorata_protocol::{Connection, Funding, Request, Response, StatusReport};
use prorata_user::SOCKET_MARKER;
use rustix::process::{Pid, set_child_subreaper};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::args::run::{FundxArgs, RunArgs, RunTicketsArgs};
use crate::args::values::CpuList;
use crate::caller::{Caller, answer, quantum_ns, status};
use crate::commands::currencies::is_funded;
use crate::wrapper::gate::Gated;
use crate::wrapper::keeper::Keeper;
use crate::wrapper::supervise::{block_signals, supervise};

/// Longest default name of a client, in bytes.
const MAX_MADE_UP_NAME_BYTES: usize = 32;

pub fn run(caller: &Caller, args: &RunArgs) -> Result<ExitCode> {
    let funding = Funding {
        amount: args.tickets,
        currency: args.currency.clone(),
    };
    run_as_client(
        caller,
        &args.command,
        args.name.as_deref(),
        funding,
        args.quantum.map(quantum_ns).transpose()?,
        args.cpus.as_ref(),
    )
}

pub fn fundx(caller: &Caller, args: &FundxArgs) -> Result<ExitCode> {
    let funding = Funding {
        amount: args.amount,
        currency: args.currency.clone(),
    };
    let command = [
        OsString::from("sh"),
        OsString::from("-c"),
        args.command.clone(),
    ];
    run_as_client(caller, &command, args.name.as_deref(), funding, None, None)
}

pub fn run_tickets(caller: &Caller, args: &RunTicketsArgs) -> Result<ExitCode> {
    run_as_client(
        caller,
        &args.command,
        None,
        Funding {
            amount: args.tickets,
            currency: None,
        },
        None,
        None,
    )
}

fn run_as_client(
    caller: &Caller,
    command: &[OsString],
    name: Option<&str>,
    funding: Funding,
    quantum_ns: Option<u64>,
    cpus: Option<&CpuList>,
) -> Result<ExitCode> {
    let mut connection = caller.open()?;
    let shared = say_of_trouble(status(&mut connection)?).cpus;
    let signals = block_signals().context("cannot handle signals")?;
    let gated = Gated::fork(program(caller, command), signals.mask_before())
        .context("cannot start a process")?;
    let pid = gated.pid();
    let name = name.map_or_else(|| made_up_name(&command[0]), str::to_owned);
    let currency = funding.currency.clone();
    let prepared = bind(pid, cpus, shared)
        .and_then(|()| register(&mut connection, pid, name, funding, quantum_ns));
    let client = match prepared {
        Ok(client) => client,
        Err(error) => {
            // The gated child exits without executing the command.
            drop(gated);
            let _ = waitpid(pid, None);
            return Err(error);
        }
    };
    // The daemon finds the command's orphans among our children.
    set_child_subreaper(Some(rustix::process::getpid()))
        .context("cannot inherit the command's orphans")?;
    if let Some(currency) = currency {
        warn_if_worthless(&mut connection, &currency);
    }
    let keeper = Keeper::new(caller, client.clone(), &mut connection);
    drop(connection);
    gated.let_go(Some(&client));
    Ok(supervise(pid, &signals, Some(keeper))?.pass_on())
}

/// Prints trouble of the engine: it may not be the chosen one, or may not enforce
/// shares.
fn say_of_trouble(status: StatusReport) -> StatusReport {
    if let Some(trouble) = &status.trouble {
        eprintln!("prorata: {trouble}");
    }
    status
}

/// Warns that tickets in a currency are worth nothing. A daemon that does not tell is no reason to
/// disturb the command.
fn warn_if_worthless(connection: &mut Connection, currency: &str) {
    if matches!(is_funded(connection, currency), Ok(false)) {
        eprintln!(
            "prorata: nothing funds currency {currency}, so the command runs only on CPUs that would idle: `prorata mktkt 100 --fund {currency}` funds it"
        );
    }
}

/// The program, with the daemon's socket in its environment: prorata commands
/// inside the client reach the same daemon.
fn program(caller: &Caller, command: &[OsString]) -> Command {
    let mut program = Command::new(&command[0]);
    program
        .args(&command[1..])
        .env(SOCKET_MARKER, caller.paths().socket.path());
    program
}

/// The default name of a client: the program's file name, cut to the limit.
fn made_up_name(program: &OsString) -> String {
    let name = Path::new(program)
        .file_name()
        .unwrap_or(program)
        .to_string_lossy();
    let mut end = name.len().min(MAX_MADE_UP_NAME_BYTES);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name[..end].to_owned()
}

fn register(
    connection: &mut Connection,
    pid: nix::unistd::Pid,
    name: String,
    funding: Funding,
    quantum_ns: Option<u64>,
) -> Result<String> {
    let request = Request::Register {
        pid: pid.as_raw().unsigned_abs(),
        name: Some(name),
        funding,
        quantum_ns,
        adopts: true,
    };
    answer!(connection, &request, Response::Client).map(|client| client.id)
}

/// Binds the process to `cpus`. Without them, binds it to the daemon's CPUs
/// within our own affinity. The engine does not set the affinity of commands.
fn bind(pid: nix::unistd::Pid, cpus: Option<&CpuList>, shared: Vec<u32>) -> Result<()> {
    let allowed = sched_getaffinity(None).context("cannot find out which CPUs may be used")?;
    let may_use = |cpu: u32| (cpu as usize) < CpuSet::MAX_CPU && allowed.is_set(cpu as usize);
    let (wanted, chosen) = match cpus {
        Some(cpus) => (cpus.clone(), cpus.0.clone()),
        None => {
            let shared = CpuList(shared);
            let usable = shared.0.iter().copied().filter(|&cpu| may_use(cpu));
            let usable = usable.collect();
            (shared, usable)
        }
    };
    ensure!(
        !chosen.is_empty() && chosen.iter().all(|&cpu| may_use(cpu)),
        "the command may not use CPUs {wanted}: choose from {} with --cpus",
        CpuList(
            (0..CpuSet::MAX_CPU as u32)
                .filter(|&cpu| may_use(cpu))
                .collect()
        )
    );
    let mut set = CpuSet::new();
    chosen.iter().for_each(|&cpu| set.set(cpu as usize));
    sched_setaffinity(Pid::from_raw(pid.as_raw()), &set).context("cannot bind the command to CPUs")
}
