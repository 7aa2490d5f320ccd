//! Talking to the daemon, wherever it lives.

use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail};
use prorata_control::{EngineKind, KernelOptions, Scope};
use prorata_protocol::{
    ClientReport, ConnectError, Connection, DaemonPaths, Request, Response, StatusReport,
    start_daemon,
};

use prorata_user::CLIENT_MARKER;

use crate::args::values::CpuList;

/// Where our daemon lives, and how it is started.
#[derive(Clone, Debug)]
pub struct Caller {
    paths: DaemonPaths,
}

impl Caller {
    /// The daemon on `socket`, or this user's own.
    pub fn new(socket: Option<&Path>) -> anyhow::Result<Self> {
        Ok(Self {
            paths: DaemonPaths::of_user(socket)?,
        })
    }

    /// Where the daemon lives.
    pub fn paths(&self) -> &DaemonPaths {
        &self.paths
    }

    /// Connects to the daemon, starting it if none runs.
    pub fn open(&self) -> Result<Connection, ConnectError> {
        self.open_with(None, None)
    }

    /// The same; a daemon that is started shares out these CPUs, with this
    /// engine.
    pub fn open_with(
        &self,
        cpus: Option<&CpuList>,
        engine: Option<EngineKind>,
    ) -> Result<Connection, ConnectError> {
        Connection::open_or_start(&self.paths, &|| self.start(cpus, engine))
    }

    /// Connects to a daemon that runs; `None` if none does.
    pub fn open_running(&self) -> Result<Option<Connection>, ConnectError> {
        match Connection::open(&self.paths.socket) {
            Ok(connection) => Ok(Some(connection)),
            Err(ConnectError::NotRunning { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn start(&self, cpus: Option<&CpuList>, engine: Option<EngineKind>) -> io::Result<()> {
        let mut daemon = Command::new(std::env::current_exe()?);
        daemon
            .arg("daemon")
            .arg("--socket")
            .arg(self.paths.socket.path());
        // Started from within a client, it is no part of it.
        daemon.env_remove(CLIENT_MARKER);
        if let Some(cpus) = cpus {
            daemon.arg("--cpus").arg(cpus.to_string());
        }
        match engine {
            None => {}
            Some(EngineKind::User) => drop(daemon.args(["--engine", "user"])),
            Some(EngineKind::Kernel(options)) => {
                daemon.args(["--engine", "kernel"]).args(arguments(options));
            }
        }
        start_daemon(&self.paths, daemon)
    }
}

/// Options of the kernel engine as arguments. What is so without being said is not.
pub fn arguments(options: KernelOptions) -> Vec<String> {
    let at_first = KernelOptions::default();
    let mut arguments = Vec::new();
    if options.scope == Scope::All {
        arguments.push("--all".to_owned());
    }
    if options.queues != at_first.queues {
        arguments.push(format!("--queues={}", options.queues));
    }
    if options.abbreviated {
        arguments.push("--abbreviated".to_owned());
    }
    if options.traced {
        arguments.push("--trace".to_owned());
    }
    arguments
}

/// Asks; a refusal becomes the error, in the daemon's words.
pub fn ask(connection: &mut Connection, request: &Request) -> anyhow::Result<Response> {
    match connection.call(request)? {
        Response::Refused { message } => bail!(message),
        response => Ok(response),
    }
}

/// Asks for something that is answered by `Done`.
pub fn tell(connection: &mut Connection, request: &Request) -> anyhow::Result<()> {
    match ask(connection, request)? {
        Response::Done => Ok(()),
        other => Err(unexpected(&other)),
    }
}

/// Asks for something that is answered by a new identifier.
pub fn create(connection: &mut Connection, request: &Request) -> anyhow::Result<String> {
    match ask(connection, request)? {
        Response::Created(id) => Ok(id),
        other => Err(unexpected(&other)),
    }
}

/// All clients that we may see.
pub fn clients(connection: &mut Connection) -> anyhow::Result<Vec<ClientReport>> {
    match ask(connection, &Request::Clients)? {
        Response::Clients(clients) => Ok(clients),
        other => Err(unexpected(&other)),
    }
}

/// How the daemon and its engine fare.
pub fn status(connection: &mut Connection) -> anyhow::Result<StatusReport> {
    match ask(connection, &Request::Status)? {
        Response::Status(status) => Ok(status),
        other => Err(unexpected(&other)),
    }
}

/// An answer to another question.
pub fn unexpected(response: &Response) -> anyhow::Error {
    anyhow::anyhow!(
        "the daemon answered another question than was asked ({response:?}): is it of another version?"
    )
}

/// The number of a user, given by login name or number.
pub fn user_number(user: &str) -> anyhow::Result<u32> {
    if let Ok(number) = user.parse() {
        return Ok(number);
    }
    let found = nix::unistd::User::from_name(user)
        .with_context(|| format!("cannot look up user {user:?}"))?;
    match found {
        Some(found) => Ok(found.uid.as_raw()),
        None => bail!("there is no user {user:?}: give a login name or a number"),
    }
}

/// The login name of a user, or the number where there is none.
pub fn user_name(number: u32) -> String {
    match nix::unistd::User::from_uid(number.into()) {
        Ok(Some(user)) => user.name,
        _ => number.to_string(),
    }
}

/// A quantum as the daemon is asked for it. Whether it is within the limits the daemon
/// says.
pub fn quantum_ns(quantum: Duration) -> anyhow::Result<u64> {
    u64::try_from(quantum.as_nanos()).context("the quantum is too long: use 1ms to 1s")
}
