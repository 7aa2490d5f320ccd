//! `start`, `configure`, `status`, `stop`, and the daemon's own process.

use std::{fs, io};

use anyhow::{Context as _, Result, bail, ensure};
use nix::sys::signal::SigSet;
use prorata_control::{DaemonOptions, EngineKind, KernelOptions, Queues, Scope, daemon_main};
use prorata_protocol::{Connection, DaemonPaths, Request, Response, StatusReport};

use crate::args::Format;
use crate::args::daemon::{ConfigureArgs, DaemonArgs, DaemonSettings, StartArgs, StatusArgs};
use crate::args::values::{CpuList, cpu_list};
use crate::caller::{self, Caller, answer, arguments, quantum_ns};
use crate::output;

/// `prorata start`.
pub fn start(caller: &Caller, args: &StartArgs) -> Result<()> {
    let engine = args.engine.kind()?;
    let mut connection = caller.open_with(args.cpus.as_ref(), engine)?;
    if let Some(wanted) = engine {
        let status = caller::status(&mut connection)?;
        let (wanted, runs) = (name_of(wanted), name_in(&status));
        ensure!(
            wanted == runs,
            "a daemon runs already, with engine {runs} and not {wanted}: end it with `prorata stop` first"
        );
    }
    let status = configured(&mut connection, &args.settings)?;
    match &args.cpus {
        Some(cpus) if cpus.0 != status.cpus => bail!(
            "a daemon runs already and shares out CPUs {}, not {cpus}: end it with `prorata stop` first",
            CpuList(status.cpus)
        ),
        _ => print(&status, args.format),
    }
}

/// An engine in the words of the command line.
fn name_of(engine: EngineKind) -> String {
    match engine {
        EngineKind::User => "user".to_owned(),
        EngineKind::Kernel(options) => format!("kernel{}", words(options)),
    }
}

/// Options of the kernel engine in the words of the command line, each after a
/// space, without those at their defaults.
fn words(options: KernelOptions) -> String {
    arguments(options)
        .into_iter()
        .map(|argument| format!(" {argument}"))
        .collect()
}

/// The engine of a running daemon, in the same words. The status of an unloaded
/// kernel engine has lost its scope.
fn name_in(status: &StatusReport) -> String {
    let all_kinds = every_kind().into_iter();
    let runs = |engine: &EngineKind| match engine {
        EngineKind::User => status.engine == "user",
        EngineKind::Kernel(options) => {
            let scope = match status.mechanism.as_str() {
                "all" => Scope::All,
                _ => Scope::Given,
            };
            status.engine == "kernel"
                && scope == options.scope
                && status.queues == Some(options.queues.to_string())
                && status.abbreviated == options.abbreviated
                && status.traced == options.traced
        }
    };
    let kind = all_kinds.into_iter().find(runs);
    kind.map_or_else(|| status.engine.clone(), name_of)
}

/// Every engine with every combination of options.
fn every_kind() -> Vec<EngineKind> {
    const EITHER: [(bool, bool); 4] = [(false, false), (false, true), (true, false), (true, true)];
    let mut kinds = vec![EngineKind::User];
    for scope in [Scope::Given, Scope::All] {
        for queues in [Queues::Cpu, Queues::Cache, Queues::One] {
            for (abbreviated, traced) in EITHER {
                kinds.push(EngineKind::Kernel(KernelOptions {
                    scope,
                    queues,
                    abbreviated,
                    traced,
                }));
            }
        }
    }
    kinds
}

/// `prorata configure`.
pub fn configure(caller: &Caller, args: &ConfigureArgs) -> Result<()> {
    let status = configured(&mut caller.open()?, &args.settings)?;
    print(&status, args.format)
}

fn configured(connection: &mut Connection, settings: &DaemonSettings) -> Result<StatusReport> {
    let quantum_ns = settings.quantum.map(quantum_ns).transpose()?;
    let policy = settings.policy;
    if quantum_ns.is_none() && policy.is_none() {
        return caller::status(connection);
    }
    let request = Request::Configure { quantum_ns, policy };
    answer!(connection, &request, Response::Status)
}

/// `prorata status`.
pub fn status(caller: &Caller, args: &StatusArgs) -> Result<()> {
    match caller.open_running()? {
        Some(mut connection) => print(&caller::status(&mut connection)?, args.format),
        None => bail!(
            "no daemon runs on {}: the first `prorata run` starts one",
            caller.paths().socket
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
        ("quantum", output::milliseconds(status.quantum_ns)),
        ("cpus", CpuList(status.cpus.clone()).to_string()),
        ("uptime", output::seconds(status.uptime_ns)),
        ("own cpu time", output::seconds(status.own_cpu_ns)),
        ("decisions", status.decisions.to_string()),
        ("clients", status.clients.to_string()),
    ];
    let queues = status.queues.clone().map(|queues| ("queues", queues));
    let abbreviated = status
        .abbreviated
        .then(|| ("abbreviated", "yes".to_owned()));
    let traced = status.traced.then(|| ("traced", "yes".to_owned()));
    let trouble = status.trouble.clone().map(|told| ("trouble", told));
    let more = [queues, abbreviated, traced, trouble];
    rows.iter()
        .chain(more.iter().flatten())
        .try_for_each(|(name, value)| {
            output::line(&format!(
                "{name:<14}{}",
                prorata_report::text::printable(value)
            ))
        })
}

/// `prorata stop`. Succeeds if no daemon runs.
pub fn stop(caller: &Caller) -> Result<()> {
    match caller.open_running()? {
        Some(mut connection) => caller::tell(&mut connection, &Request::Stop),
        None => {
            eprintln!("prorata: no daemon runs on {}", caller.paths().socket);
            Ok(())
        }
    }
}

/// `prorata daemon`.
pub fn daemon(caller: &Caller, args: &DaemonArgs) -> Result<()> {
    // The caller may have blocked the signals that end a daemon.
    SigSet::all()
        .thread_unblock()
        .context("cannot unblock signals")?;
    let paths = caller.paths();
    let cpus = match &args.cpus {
        Some(cpus) => Some(cpus.clone()),
        None => of_the_dead(paths, CPUS).and_then(|text| cpu_list(&text).ok()),
    };
    let engine = match args.engine.kind()? {
        Some(engine) => Some(engine),
        None => of_the_dead(paths, ENGINE).and_then(|text| engine_named(&text)),
    };
    remember(paths, CPUS, cpus.as_ref().map(ToString::to_string))?;
    remember(paths, ENGINE, engine.map(name_of))?;
    let options = DaemonOptions {
        engine: engine.unwrap_or_default(),
        cpus: cpus.map(|cpus| cpus.0),
        ..DaemonOptions::default()
    };
    Ok(daemon_main(paths.clone(), options)?)
}

/// Notes of how a daemon was started.
const CPUS: &str = "cpus";
const ENGINE: &str = "engine-kind";

/// The note of a daemon that crashed, and so left its socket. Its clients are
/// bound to its CPUs and belong to its engine, so the next daemon needs both.
fn of_the_dead(paths: &DaemonPaths, note: &str) -> Option<String> {
    let text = fs::read_to_string(paths.runtime.join(note)).ok()?;
    paths.socket.path().exists().then_some(text)
}

fn engine_named(text: &str) -> Option<EngineKind> {
    every_kind()
        .into_iter()
        .find(|engine| name_of(*engine) == text)
}

fn remember(paths: &DaemonPaths, note: &str, choice: Option<String>) -> Result<()> {
    let note = paths.runtime.join(note);
    let done = match choice {
        Some(choice) => fs::write(&note, choice),
        None => fs::remove_file(&note).or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        }),
    };
    done.with_context(|| format!("cannot change {}", note.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_is_found_by_its_name() {
        for engine in every_kind() {
            assert_eq!(engine_named(&name_of(engine)), Some(engine));
        }
        let at_first = EngineKind::Kernel(KernelOptions::default());
        assert_eq!(engine_named("kernel"), Some(at_first));
        assert_eq!(engine_named("kernel --queues=none"), None);
        let all = engine_named("kernel --all --queues=one --abbreviated --trace");
        let expected = KernelOptions {
            scope: Scope::All,
            queues: Queues::One,
            abbreviated: true,
            traced: true,
        };
        assert_eq!(all, Some(EngineKind::Kernel(expected)));
    }
}
