//! `run`, `fundx` and `run-tickets`: run a command as a client.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail, ensure};
use nix::sys::wait::waitpid;
use prorata_control::name_of_program;
use prorata_protocol::{Connection, CpuLimit, Funding, Request, Response};
use prorata_user::SOCKET_MARKER;
use rustix::process::{Pid, set_child_subreaper};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::args::run::{FundxArgs, RunArgs, RunTicketsArgs};
use crate::args::slots_run::SlotsRunArgs;
use crate::args::values::CpuList;
use crate::belonging;
use crate::caller::{Caller, quantum_ns, unexpected};
use crate::commands::currencies::is_funded;
use crate::output;
use crate::wrapper::gate::Gated;
use crate::wrapper::keeper::Keeper;
use crate::wrapper::mechanism;
use crate::wrapper::supervise::{block_signals, supervise};

/// Bytes of a program's name that its client is named after.
const MAX_MADE_UP_NAME_BYTES: usize = 32;

/// What a command is to run with.
struct Wish<'a> {
    command: &'a [OsString],
    name: Option<&'a str>,
    funding: Funding,
    quantum_ns: Option<u64>,
    max: Option<CpuLimit>,
    cpus: Option<&'a CpuList>,
}

pub fn run(caller: &Caller, args: &RunArgs) -> Result<ExitCode> {
    let wish = Wish {
        command: &args.command,
        name: args.name.as_deref(),
        funding: Funding {
            amount: args.tickets,
            currency: args.currency.clone(),
        },
        quantum_ns: args.quantum.map(quantum_ns).transpose()?,
        max: args.max,
        cpus: args.cpus.as_ref(),
    };
    run_as_client(caller, &wish, &|_| Ok(()))
}

/// Runs a command whose client has slots: `claim` claims them before its first instruction.
pub fn run_with_slots(
    caller: &Caller,
    args: &SlotsRunArgs,
    claim: &dyn Fn(&str) -> Result<()>,
) -> Result<ExitCode> {
    let wish = Wish {
        command: &args.command,
        name: args.name.as_deref(),
        funding: Funding {
            amount: args.tickets,
            currency: None,
        },
        quantum_ns: None,
        max: None,
        cpus: None,
    };
    run_as_client(caller, &wish, claim)
}

pub fn fundx(caller: &Caller, args: &FundxArgs) -> Result<ExitCode> {
    let command = [
        OsString::from("sh"),
        OsString::from("-c"),
        args.command.clone(),
    ];
    let wish = Wish {
        command: &command,
        name: args.name.as_deref(),
        funding: Funding {
            amount: args.amount,
            currency: args.currency.clone(),
        },
        quantum_ns: None,
        max: None,
        cpus: None,
    };
    run_as_client(caller, &wish, &|_| Ok(()))
}

pub fn run_tickets(caller: &Caller, args: &RunTicketsArgs) -> Result<ExitCode> {
    let wish = Wish {
        command: &args.command,
        name: None,
        funding: Funding {
            amount: args.tickets,
            currency: None,
        },
        quantum_ns: None,
        max: None,
        cpus: None,
    };
    run_as_client(caller, &wish, &|_| Ok(()))
}

/// Runs the command as a client. Where no daemon can manage it, the command runs all the same, and
/// one sentence says so. Where the daemon refuses the wish, nothing runs. A client is `entered` before
/// the command's first instruction; if that fails, nothing runs, either.
fn run_as_client(
    caller: &Caller,
    wish: &Wish<'_>,
    entered: &dyn Fn(&str) -> Result<()>,
) -> Result<ExitCode> {
    let mut connection = open(caller)?;
    if connection.is_some() {
        belonging::check_ancestors(caller)?;
    }
    let signals = block_signals().context("cannot handle signals")?;
    let gated = Gated::fork(program(caller, wish.command), signals.mask_before())
        .context("cannot start a process")?;
    let pid = gated.pid();
    let registered = enter(connection.as_mut(), pid, wish);
    let registered = registered.and_then(|client| {
        client.as_deref().map_or(Ok(()), entered)?;
        Ok(client)
    });
    let client = match registered {
        Ok(client) => client,
        Err(error) => {
            // The gated child exits without executing the command.
            drop(gated);
            let _ = waitpid(pid, None);
            return Err(error);
        }
    };
    let mut keeper = None;
    if let (Some(client), Some(connection)) = (&client, &mut connection) {
        // The daemon finds the command's orphans among our children.
        set_child_subreaper(Some(rustix::process::getpid()))
            .context("cannot inherit the command's orphans")?;
        if let Some(currency) = &wish.funding.currency {
            warn_if_worthless(connection, currency);
        }
        mechanism::tell_once(caller, connection);
        keeper = Some(Keeper::new(caller, client.clone(), connection));
    }
    // The daemon has room for other programs while the command runs.
    drop(connection);
    gated.let_go(client.as_deref());
    Ok(supervise(pid, &signals, keeper)?.pass_on())
}

/// Connects to the daemon. `None` where there is none and none can be started.
fn open(caller: &Caller) -> Result<Option<Connection>> {
    match caller.open() {
        Ok(connection) => {
            // The engine may not be the chosen one, or may not enforce shares.
            if let Some(trouble) = &connection.status().trouble {
                output::say(trouble);
            }
            Ok(Some(connection))
        }
        Err(error) if error.is_daemons_trouble() => {
            tell_unmanaged(&error);
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Binds the waiting command, and registers it as a client. `None` where it runs without its share.
fn enter(
    connection: Option<&mut Connection>,
    pid: nix::unistd::Pid,
    wish: &Wish<'_>,
) -> Result<Option<String>> {
    let Some(connection) = connection else {
        return match wish.cpus {
            Some(cpus) => bind(pid, Some(cpus), Vec::new()).map(|()| None),
            None => Ok(None),
        };
    };
    bind(pid, wish.cpus, connection.status().cpus.clone())?;
    let name = wish.name.map(str::to_owned);
    let request = Request::Register {
        pid: pid.as_raw().unsigned_abs(),
        name: Some(name.unwrap_or_else(|| made_up_name(&wish.command[0]))),
        funding: wish.funding.clone(),
        quantum_ns: wish.quantum_ns,
        max: wish.max,
        adopts: true,
    };
    match connection.call(&request) {
        Ok(Response::Client(client)) => Ok(Some(client.id)),
        Ok(Response::NotKept { message }) => {
            tell_unmanaged(&message);
            Ok(None)
        }
        Ok(Response::Refused { message }) => bail!(message),
        Ok(other) => Err(unexpected(&other)),
        Err(error) if error.is_daemons_trouble() => {
            tell_unmanaged(&error);
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

fn tell_unmanaged(reason: &dyn std::fmt::Display) {
    output::say(format_args!("the command runs without its share: {reason}"));
}

/// Warns that tickets in a currency are worth nothing. A daemon that does not tell is no reason to
/// disturb the command.
fn warn_if_worthless(connection: &mut Connection, currency: &str) {
    if matches!(is_funded(connection, currency), Ok(false)) {
        output::say(format_args!(
            "nothing funds currency {currency}, so the command runs only on CPUs that would idle: `prorata mktkt 100 --fund {currency}` funds it"
        ));
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

/// The default name of a client: the program's file name, cut to the limit and made valid.
fn made_up_name(program: &OsString) -> String {
    let name = Path::new(program)
        .file_name()
        .unwrap_or(program)
        .to_string_lossy();
    let mut end = name.len().min(MAX_MADE_UP_NAME_BYTES);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name_of_program(&name[..end])
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
