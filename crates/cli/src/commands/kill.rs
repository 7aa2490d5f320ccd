//! `kill`: ends a client with all its processes.
//!
//! The daemon lists the processes, and this command signals them with the rights of its own user.
//! So no daemon signals a process on behalf of a user that may not do so itself.

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use prorata_protocol::{ClientState, Connection, ProcessesReport, Request, Response};
use prorata_user::ProcessId;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, geteuid, pidfd_open, pidfd_send_signal};
use serde::Serialize;

use crate::args::ledger::KillArgs;
use crate::caller::{Caller, answer, clients};
use crate::output;

/// Longest wait for the client's end.
const PATIENCE: Duration = Duration::from_secs(5);

/// Pause between two looks for processes. Engines find newborn processes once a quantum.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Most processes that a message names.
const MOST_NAMED: usize = 5;

/// What `--json` prints.
#[derive(Serialize)]
struct Killed<'a> {
    client: &'a str,
    signalled: usize,
    left: &'a [u32],
}

/// `prorata kill`. Each process gets the signal once, also those that are born meanwhile.
pub fn kill(caller: &Caller, args: &KillArgs) -> Result<()> {
    let mut connection = caller.open()?;
    // Another user's program could name any process as the client's.
    let (daemon, own) = (connection.user(), geteuid().as_raw());
    ensure!(
        daemon == 0 || daemon == own,
        "the daemon on {} is user {daemon}'s, so its list of processes cannot be trusted: \
         use the socket of your own daemon or of root's",
        caller.paths().socket
    );
    let first = processes(&mut connection, &args.client)?;
    let mut hunt = Hunt {
        is_suspended: state(&mut connection, &first.client)? == Some(ClientState::Suspended),
        client: first.client,
        signal: args.signal.into(),
        reached: BTreeSet::new(),
        refused: None,
    };
    let left = hunt.pursue(&mut connection)?;
    if args.format.json {
        output::json(&Killed {
            client: &hunt.client,
            signalled: hunt.reached.len(),
            left: &left,
        })?;
    }
    if let (Some(pid), false) = (hunt.refused, left.is_empty()) {
        bail!(
            "process {pid} of client {} belongs to another user, so you may not signal it: ask root to end it",
            hunt.client
        );
    }
    ensure!(
        left.is_empty(),
        "client {} goes on {} s after the signal, with {}: wait for it, or use --signal KILL",
        hunt.client,
        PATIENCE.as_secs(),
        named(&left)
    );
    Ok(())
}

/// A client that is being ended.
struct Hunt {
    /// Its identifier.
    client: String,
    signal: Signal,
    /// Job control stopped the client: its processes take the signal once they are continued.
    is_suspended: bool,
    /// Processes that have got the signal.
    reached: BTreeSet<ProcessId>,
    /// A process that the kernel did not let this user signal.
    refused: Option<u32>,
}

impl Hunt {
    /// Signals processes until the client is gone, but not for longer than [`PATIENCE`]. Returns
    /// the pids of those that are left.
    fn pursue(&mut self, connection: &mut Connection) -> Result<Vec<u32>> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let Some(others) = self.others(connection)? else {
                return Ok(Vec::new());
            };
            for process in &others {
                self.reach(*process)?;
            }
            let is_settled = |process: &ProcessId| {
                self.reached.contains(process) || self.refused == Some(process.pid)
            };
            let waits_in_vain = self.refused.is_some() && others.iter().all(is_settled);
            if waits_in_vain || Instant::now() >= deadline {
                return Ok(others.iter().map(|process| process.pid).collect());
            }
            sleep(LOOK_AGAIN);
        }
    }

    /// The client's processes; `None` once it is gone. This process may be the last one: it ends
    /// by itself.
    fn others(&self, connection: &mut Connection) -> Result<Option<Vec<ProcessId>>> {
        let report = match processes(connection, &self.client) {
            Ok(report) => report,
            Err(error) => match state(connection, &self.client)? {
                None => return Ok(None),
                Some(_) => return Err(error),
            },
        };
        let own = std::process::id();
        let (us, others): (Vec<_>, Vec<_>) = report
            .processes
            .into_iter()
            .partition(|process| process.pid == own);
        let others = others.into_iter().map(|process| ProcessId {
            pid: process.pid,
            start_time_ticks: process.start_time_ticks,
        });
        let alive: Vec<ProcessId> = others.filter(|process| process.is_alive()).collect();
        Ok((us.is_empty() || !alive.is_empty()).then_some(alive))
    }

    /// Signals a process, unless it has got the signal already.
    fn reach(&mut self, process: ProcessId) -> Result<()> {
        if self.reached.contains(&process) {
            return Ok(());
        }
        match send(process, self.signal) {
            Ok(()) => {
                self.reached.insert(process);
                if self.is_suspended {
                    // The process may have taken the signal by now.
                    let _ = send(process, Signal::CONT);
                }
                Ok(())
            }
            Err(Errno::SRCH) => Ok(()),
            Err(Errno::PERM) => {
                self.refused = Some(process.pid);
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Signals this process and no later one with its pid.
fn send(process: ProcessId, signal: Signal) -> rustix::io::Result<()> {
    let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw);
    let handle = pidfd_open(pid.ok_or(Errno::SRCH)?, PidfdFlags::empty())?;
    // The process lives after the handle was opened, so its pid was its own at that moment.
    if !process.is_alive() {
        return Err(Errno::SRCH);
    }
    pidfd_send_signal(handle, signal)
}

fn processes(connection: &mut Connection, client: &str) -> Result<ProcessesReport> {
    let request = Request::Processes {
        client: client.to_owned(),
    };
    answer!(connection, &request, Response::Processes)
}

/// The state of a client; `None` once it is gone.
fn state(connection: &mut Connection, client: &str) -> Result<Option<ClientState>> {
    let clients = clients(connection)?;
    let client = clients.iter().find(|listed| listed.id == client);
    Ok(client.map(|client| client.state))
}

/// `process 12`, `processes 12, 13`.
fn named(pids: &[u32]) -> String {
    let first = pids.iter().take(MOST_NAMED).map(u32::to_string);
    let first = first.collect::<Vec<_>>().join(", ");
    match pids.len() {
        1 => format!("process {first}"),
        2..=MOST_NAMED => format!("processes {first}"),
        count => format!("{count} processes, such as {first}"),
    }
}
