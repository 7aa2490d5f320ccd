//! `start`, `configure`, `status`, `stop`, and the daemon itself.

use std::path::PathBuf;
use std::{fs, io};

use anyhow::{Context as _, Result, bail};
use nix::sys::signal::SigSet;
use prorata_control::protocol::{PolicyKind, Request, Response, StatusReport};
use prorata_control::{Connection, DaemonOptions, Place, daemon_main};

use crate::args::Format;
use crate::args::daemon::{Configure, Daemon, Settings, Start, Status};
use crate::args::values::{CpuList, cpu_list};
use crate::caller::{self, Caller, ask, unexpected};
use crate::output;

/// `prorata start`.
pub fn start(caller: &Caller, args: &Start) -> Result<()> {
    let mut connection = caller.open_on(args.cpus.as_ref())?;
    let status = configured(&mut connection, &args.settings)?;
    match &args.cpus {
        Some(cpus) if cpus.0 != status.cpus => bail!(
            "a daemon runs already and shares out CPUs {}, not {cpus}: end it with `prorata stop` first",
            CpuList(status.cpus)
        ),
        _ => print(&status, args.format),
    }
}

/// `prorata configure`.
pub fn configure(caller: &Caller, args: &Configure) -> Result<()> {
    let status = configured(&mut caller.open()?, &args.settings)?;
    print(&status, args.format)
}

fn configured(connection: &mut Connection, settings: &Settings) -> Result<StatusReport> {
    let quantum = settings
        .quantum
        .map(|quantum| u64::try_from(quantum.as_nanos()));
    let quantum_ns = quantum
        .transpose()
        .context("the quantum is too long: use 1ms to 1s")?;
    let policy = settings.policy.map(PolicyKind::from);
    if quantum_ns.is_none() && policy.is_none() {
        return caller::status(connection);
    }
    match ask(connection, &Request::Configure { quantum_ns, policy })? {
        Response::Status(status) => Ok(status),
        other => Err(unexpected(&other)),
    }
}

/// `prorata status`.
pub fn status(caller: &Caller, args: &Status) -> Result<()> {
    match caller.open_running()? {
        Some(mut connection) => print(&caller::status(&mut connection)?, args.format),
        None => bail!(
            "no daemon runs on {}: one starts with the first `prorata run`",
            caller.place().socket
        ),
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
        ("quantum", format!("{} ms", status.quantum_ns as f64 / 1e6)),
        ("cpus", CpuList(status.cpus.clone()).to_string()),
        ("uptime", output::seconds(status.uptime_ns)),
        ("own cpu time", output::seconds(status.own_cpu_ns)),
        ("decisions", status.decisions.to_string()),
        ("clients", status.clients.to_string()),
    ];
    rows.iter().try_for_each(|(name, value)| {
        output::line(&format!(
            "{name:<14}{}",
            prorata_report::text::printable(value)
        ))
    })
}

/// `prorata stop`. Where none runs, that is what was wanted.
pub fn stop(caller: &Caller) -> Result<()> {
    match caller.open_running()? {
        Some(mut connection) => caller::tell(&mut connection, &Request::Stop),
        None => {
            eprintln!("prorata: no daemon runs on {}", caller.place().socket);
            Ok(())
        }
    }
}

/// `prorata daemon`.
pub fn daemon(caller: &Caller, args: &Daemon) -> Result<()> {
    // Whoever started us may have blocked signals that are to end us.
    SigSet::all()
        .thread_unblock()
        .context("cannot unblock signals")?;
    let cpus = match &args.cpus {
        Some(cpus) => Some(cpus.clone()),
        None => cpus_of_the_dead(caller.place()),
    };
    remember(caller.place(), cpus.as_ref())?;
    let options = DaemonOptions {
        cpus: cpus.map(|cpus| cpus.0),
        ..DaemonOptions::default()
    };
    Ok(daemon_main(caller.place().clone(), options)?)
}

/// The CPUs that a daemon shared out which has crashed, and so left its
/// socket: its clients are bound to them, and whoever starts the next daemon
/// does not know them.
fn cpus_of_the_dead(place: &Place) -> Option<CpuList> {
    let text = fs::read_to_string(note_of_cpus(place)).ok()?;
    if place.socket.path().exists() {
        cpu_list(&text).ok()
    } else {
        None
    }
}

fn remember(place: &Place, cpus: Option<&CpuList>) -> Result<()> {
    let note = note_of_cpus(place);
    let done = match cpus {
        Some(cpus) => fs::write(&note, cpus.to_string()),
        None => fs::remove_file(&note).or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        }),
    };
    done.with_context(|| format!("cannot change {}", note.display()))
}

fn note_of_cpus(place: &Place) -> PathBuf {
    place.runtime.join("cpus")
}
