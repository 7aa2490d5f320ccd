//! Requests to the daemon.

use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail};
use prorata_protocol::{
    ClientReport, ConnectError, Connection, DaemonPaths, EngineChoice, Request, Response,
    StatusReport, open_if_started, open_or_start, start_daemon,
};

use prorata_user::CLIENT_MARKER;

use crate::args::values::CpuList;
use crate::output;

/// Finds the daemon, and starts one if none runs.
#[derive(Clone, Debug)]
pub struct Caller {
    paths: DaemonPaths,
    /// Whether an option names the socket, rather than the environment or a rule.
    is_named: bool,
}

impl Caller {
    /// The daemon on `socket`, or the one to ask without it.
    pub fn new(socket: Option<&Path>) -> anyhow::Result<Self> {
        Ok(Self {
            paths: DaemonPaths::to_ask(socket)?,
            is_named: socket.is_some(),
        })
    }

    /// The daemon on `socket`, or this user's own.
    pub fn own(socket: Option<&Path>) -> anyhow::Result<Self> {
        Ok(Self {
            paths: DaemonPaths::of_user(socket)?,
            is_named: socket.is_some(),
        })
    }

    /// The daemon's socket and directories.
    pub fn paths(&self) -> &DaemonPaths {
        &self.paths
    }

    /// Connects to the daemon, starting it if none runs.
    pub fn open(&self) -> Result<Connection, ConnectError> {
        self.open_with(None, None)
    }

    /// The same for a command that changes nothing: on a socket that an option names, it starts no
    /// daemon, which could show nothing.
    pub fn open_to_read(&self) -> anyhow::Result<Connection> {
        if !self.is_named {
            return Ok(self.open()?);
        }
        match self.open_started()? {
            Some(connection) => Ok(connection),
            None => bail!(self.no_daemon()),
        }
    }

    /// What is said where no daemon runs.
    pub fn no_daemon(&self) -> String {
        format!(
            "no daemon runs on {}: the first `prorata run` starts one",
            self.paths.socket
        )
    }

    /// Connects as [`Caller::open`] does; a newly started daemon manages `cpus` with `engine`.
    pub fn open_with(
        &self,
        cpus: Option<&CpuList>,
        engine: Option<EngineChoice>,
    ) -> Result<Connection, ConnectError> {
        open_or_start(&self.paths, &|| self.start(cpus, engine), &tell_of_start)
    }

    /// Connects to the daemon that runs or is starting; `None` without either.
    pub fn open_started(&self) -> Result<Option<Connection>, ConnectError> {
        open_if_started(&self.paths, &tell_of_start)
    }

    /// Connects to a running daemon; `None` if none runs.
    pub fn open_running(&self) -> Result<Option<Connection>, ConnectError> {
        Connection::open_if_running(&self.paths.socket)
    }

    fn start(&self, cpus: Option<&CpuList>, engine: Option<EngineChoice>) -> io::Result<()> {
        let mut daemon = Command::new(std::env::current_exe()?);
        daemon
            .arg("daemon")
            .arg("--socket")
            .arg(self.paths.socket.path());
        // A daemon that a client's process starts must not join that client.
        daemon.env_remove(CLIENT_MARKER);
        if let Some(cpus) = cpus {
            daemon.arg("--cpus").arg(cpus.to_string());
        }
        if let Some(engine) = engine {
            daemon.arg("--engine").args(engine.words());
        }
        start_daemon(&self.paths, daemon, &tell_of_start)
    }
}

/// Tells the waiting user how far the daemon is.
fn tell_of_start(text: &str) {
    output::say(format_args!("waiting: {text}"));
}

/// Sends a request. A refusal becomes an error with the daemon's message.
pub fn ask(connection: &mut Connection, request: &Request) -> anyhow::Result<Response> {
    match connection.call(request)? {
        Response::Refused { message } | Response::NotKept { message } => bail!(message),
        response => Ok(response),
    }
}

/// Sends a request whose answer is `Done`.
pub fn tell(connection: &mut Connection, request: &Request) -> anyhow::Result<()> {
    match ask(connection, request)? {
        Response::Done => Ok(()),
        other => Err(unexpected(&other)),
    }
}

/// Sends a request and takes the content of an answer of the given kind.
macro_rules! answer {
    ($connection:expr, $request:expr, $kind:path) => {
        match $crate::caller::ask($connection, $request)? {
            $kind(content) => Ok(content),
            other => Err($crate::caller::unexpected(&other)),
        }
    };
}
pub(crate) use answer;

/// Sends a request whose answer is a new identifier.
pub fn create(connection: &mut Connection, request: &Request) -> anyhow::Result<String> {
    answer!(connection, request, Response::Created)
}

/// All clients that the caller may see.
pub fn clients(connection: &mut Connection) -> anyhow::Result<Vec<ClientReport>> {
    answer!(connection, &Request::Clients, Response::Clients)
}

/// The state of the daemon and its engine.
pub fn status(connection: &mut Connection) -> anyhow::Result<StatusReport> {
    answer!(connection, &Request::Status, Response::Status)
}

/// The error for an answer of the wrong kind.
pub fn unexpected(response: &Response) -> anyhow::Error {
    anyhow::anyhow!(
        "the daemon's answer does not fit the request ({response:?}): `prorata stop` and start again if it is of another version"
    )
}

/// The user id for a login name or a number.
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

/// The login name of a user, or the number if there is no name.
pub fn user_name(number: u32) -> String {
    match nix::unistd::User::from_uid(number.into()) {
        Ok(Some(user)) => user.name,
        _ => number.to_string(),
    }
}

/// A quantum in nanoseconds. The daemon checks its limits.
pub fn quantum_ns(quantum: Duration) -> anyhow::Result<u64> {
    u64::try_from(quantum.as_nanos()).context("the quantum is too long: use 1ms to 1s")
}
