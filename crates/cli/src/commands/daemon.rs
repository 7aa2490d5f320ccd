//! `start`, `configure`, `status`, `stop`, and the daemon's own process.

use anyhow::{Context as _, Result, bail, ensure};
use nix::sys::signal::SigSet;
use nix::unistd::geteuid;
use prorata_control::{DaemonOptions, USERS_NEED_ROOT, daemon_main};
use prorata_protocol::{
    Connection, EngineChoice, HybridChoice, Request, Response, StatusReport, UsersReport,
    is_starting,
};

use crate::args::Format;
use crate::args::daemon::{ConfigureArgs, DaemonArgs, DaemonSettings, StartArgs, StatusArgs};
use crate::args::values::CpuList;
use crate::caller::{self, Caller, answer, quantum_ns};
use crate::output;

pub fn start(caller: &Caller, args: &StartArgs) -> Result<()> {
    let engine = args.engine.choice()?;
    // A daemon of this user would start, refuse, and hide root's for a while.
    if args.users && !geteuid().is_root() {
        ensure!(caller.open_running()?.is_some(), USERS_NEED_ROOT);
    }
    let mut connection = caller.open_with(args.cpus.as_ref(), engine)?;
    check_choices(
        &caller::status(&mut connection)?,
        engine,
        args.cpus.as_ref(),
    )?;
    // A kernel engine gets them when it is loaded.
    let hybrid = match engine {
        Some(EngineChoice::Kernel(_)) => None,
        Some(EngineChoice::User) | None => args.engine.hybrid.hybrid,
    };
    let status = configured(&mut connection, &args.settings, hybrid, true, args.users)?;
    print(&status, args.format)
}

/// Refuses another engine, or other CPUs, than those of the running daemon.
fn check_choices(
    status: &StatusReport,
    engine: Option<EngineChoice>,
    cpus: Option<&CpuList>,
) -> Result<()> {
    if let Some(wanted) = engine {
        ensure!(
            wanted == status.engine_choice,
            "a daemon runs already, with engine {} and not {wanted}: end it with `prorata stop` first",
            status.engine_choice
        );
        ensure!(
            status.mechanism != UNLOADED,
            "{}",
            status
                .trouble
                .as_deref()
                .unwrap_or("the scheduler in the kernel is not loaded")
        );
    }
    match cpus {
        Some(cpus) if cpus.0 != status.cpus => bail!(
            "a daemon runs already and shares out CPUs {}, not {cpus}: end it with `prorata stop` first",
            CpuList(status.cpus.clone())
        ),
        _ => Ok(()),
    }
}

/// The mechanism of a kernel engine whose scheduler the kernel has unloaded.
const UNLOADED: &str = "none";

pub fn configure(caller: &Caller, args: &ConfigureArgs) -> Result<()> {
    let hybrid = args.hybrid.hybrid;
    let status = configured(&mut caller.open()?, &args.settings, hybrid, false, false)?;
    print(&status, args.format)
}

/// What is told of the clients of what users run.
fn told_of(users: UsersReport) -> String {
    match users.left_out {
        0 => "a client each".to_owned(),
        count => format!("a client each, {count} processes left out"),
    }
}

fn configured(
    connection: &mut Connection,
    settings: &DaemonSettings,
    hybrid: Option<HybridChoice>,
    stay: bool,
    users: bool,
) -> Result<StatusReport> {
    let quantum_ns = settings.quantum.map(quantum_ns).transpose()?;
    let policy = settings.policy;
    let request = Request::Configure {
        quantum_ns,
        policy,
        hybrid,
        stay,
        users,
    };
    answer!(connection, &request, Response::Status)
}

pub fn status(caller: &Caller, args: &StatusArgs) -> Result<()> {
    match caller.open_running()? {
        Some(mut connection) => print(&caller::status(&mut connection)?, args.format),
        None if is_starting(caller.paths()) => bail!(
            "the daemon on {} is just starting or ending: ask again in a moment",
            caller.paths().socket
        ),
        None => bail!(caller.no_daemon()),
    }
}

fn print(status: &StatusReport, format: Format) -> Result<()> {
    if format.json {
        return output::json(status);
    }
    let policy = serde_json::to_value(status.policy)?;
    let rows = [
        ("version", status.version.clone()),
        ("pid", status.pid.to_string()),
        ("engine", status.engine.clone()),
        ("mechanism", status.mechanism.clone()),
        ("policy", policy.as_str().unwrap_or_default().to_owned()),
        ("quantum", output::milliseconds(status.quantum_ns)),
        ("cpus", CpuList(status.cpus.clone()).to_string()),
        ("uptime", output::seconds(status.uptime_ns)),
        ("own cpu time", output::seconds(status.own_cpu_ns)),
        ("decisions", status.decisions.to_string()),
        ("clients", status.clients.to_string()),
    ];
    let queues = status.queues.clone().map(|queues| ("queues", queues));
    let hybrid = status.hybrid.map(|hybrid| ("hybrid", hybrid.to_string()));
    let stays = status.stays.then(|| ("stays", "until stopped".to_owned()));
    let users = status.users.map(|users| ("users", told_of(users)));
    let traced = status.traced.then(|| ("traced", "yes".to_owned()));
    let outside = output::outside(&status.outside).map(|loads| ("load outside", loads));
    let trouble = status.trouble.clone().map(|told| ("trouble", told));
    let advice = status.advice.clone().map(|advice| ("advice", advice));
    let more = [
        queues, hybrid, traced, stays, users, outside, advice, trouble,
    ];
    rows.iter()
        .chain(more.iter().flatten())
        .try_for_each(|(name, value)| {
            output::line(&format!(
                "{name:<14}{}",
                prorata_report::text::printable(value)
            ))
        })
}

/// `prorata stop`. Succeeds if no daemon runs. A daemon that is just starting is
/// stopped once it listens.
pub fn stop(caller: &Caller) -> Result<()> {
    match caller.open_started()? {
        Some(mut connection) => caller::tell(&mut connection, &Request::Stop),
        None => {
            output::say(format_args!("no daemon runs on {}", caller.paths().socket));
            Ok(())
        }
    }
}

pub fn daemon(caller: &Caller, args: &DaemonArgs) -> Result<()> {
    // The caller may have blocked the signals that end a daemon.
    SigSet::all()
        .thread_unblock()
        .context("cannot unblock signals")?;
    let options = DaemonOptions {
        engine: args.engine.choice()?,
        cpus: args.cpus.clone().map(|cpus| cpus.0),
        ..DaemonOptions::default()
    };
    Ok(daemon_main(caller.paths().clone(), options)?)
}
