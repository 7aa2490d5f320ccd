//! A daemon of the demo's own, and three programs under it.

use std::os::fd::OwnedFd;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use prorata_protocol::{
    ClientReport, Connection, EngineChoice, Funding, Request, Response, StatusReport,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::thread::{CpuSet, sched_getaffinity};
use tempfile::TempDir;

use super::PROGRAMS;
use super::programs::{Program, Running};
use crate::args::values::CpuList;
use crate::caller::{self, Caller, ask, tell, unexpected};
use crate::wrapper::keeper::process_of;
use crate::wrapper::signals::Signals;

/// So long the daemon may take to end; then it is left to end by itself, as it
/// does when nothing is left to manage.
const TIME_TO_END: Duration = Duration::from_secs(5);

/// All that must be gone when the demo ends.
///
/// Fields are dropped in this order: programs, daemon, directory.
#[derive(Debug)]
pub struct Stage {
    programs: Vec<(String, Running)>,
    daemon: Daemon,
    _directory: TempDir,
    program: Program,
    cpu: u32,
    status: StatusReport,
}

impl Stage {
    /// Starts the daemon in a directory of its own, and prepares the programs
    /// on the last CPU that we may use.
    pub fn set_up(signals: &Signals, engine: EngineChoice) -> Result<Self> {
        let program = Program::find()?;
        let allowed = sched_getaffinity(None).context("cannot find out our CPUs")?;
        let cpu = (0..CpuSet::MAX_CPU)
            .rev()
            .find(|&cpu| allowed.is_set(cpu))
            .context("there is no CPU to share")?;
        let directory = tempfile::Builder::new()
            .prefix("prorata-demo-")
            .tempdir()
            .context("cannot make a directory")?;
        let caller = Caller::new(Some(&directory.path().join("socket")))?;
        let cpu_number = u32::try_from(cpu)?;
        let mut connection = caller.open_with(Some(&CpuList(vec![cpu_number])), Some(engine))?;
        let status = caller::status(&mut connection)?;
        let process = process_of(&mut connection)?;
        let mut daemon = Daemon {
            connection,
            process,
        };
        let mut programs = Vec::new();
        for (name, tickets) in PROGRAMS {
            let running = Running::prepare(program, cpu, caller.paths().socket.path(), signals)?;
            let client = daemon.register(name, running.pid(), tickets)?;
            programs.push((client, running));
        }
        Ok(Self {
            programs,
            daemon,
            _directory: directory,
            program,
            cpu: cpu_number,
            status,
        })
    }

    /// Lets all programs begin.
    pub fn let_go(&mut self) -> Result<()> {
        for (client, running) in &mut self.programs {
            running
                .let_go(client)
                .context("a program ended before it began")?;
        }
        Ok(())
    }

    /// Gives the last program so many tickets.
    pub fn inflate(&mut self, tickets: u32) -> Result<()> {
        let (client, _) = self.programs.last().context("there are programs")?;
        let funding = Funding {
            amount: tickets,
            currency: None,
        };
        tell(
            &mut self.daemon.connection,
            &Request::SetTickets {
                client: client.clone(),
                funding,
            },
        )
    }

    /// What the programs should have received and did, in their order.
    pub fn clients(&mut self) -> Result<Vec<ClientReport>> {
        let mut clients = caller::clients(&mut self.daemon.connection)?;
        let mut sorted = Vec::new();
        for (id, _) in &self.programs {
            match clients.iter().position(|client| client.id == *id) {
                Some(place) => sorted.push(clients.swap_remove(place)),
                None => bail!(
                    "one of the programs ended by itself: is somebody else ending processes here?"
                ),
            }
        }
        Ok(sorted)
    }

    /// How the daemon fared when it had just started.
    pub fn status_at_first(&self) -> &StatusReport {
        &self.status
    }

    /// How the daemon fares.
    pub fn status(&mut self) -> Result<StatusReport> {
        caller::status(&mut self.daemon.connection)
    }

    /// What runs, as it would be typed.
    pub fn program(&self) -> String {
        self.program.line()
    }

    /// The CPU that is shared.
    pub fn cpu(&self) -> u32 {
        self.cpu
    }

    /// Length of a quantum.
    pub fn quantum_ns(&self) -> u64 {
        self.status.quantum_ns
    }
}

/// A daemon that ends with this.
#[derive(Debug)]
struct Daemon {
    connection: Connection,
    /// Readable when it has ended.
    process: OwnedFd,
}

impl Daemon {
    fn register(&mut self, name: &str, pid: u32, tickets: u32) -> Result<String> {
        let funding = Funding {
            amount: tickets,
            currency: None,
        };
        match ask(
            &mut self.connection,
            &Request::Register {
                pid,
                name: Some(name.to_owned()),
                funding,
                quantum_ns: None,
                adopts: false,
            },
        )? {
            Response::Client(client) => Ok(client.id),
            other => Err(unexpected(&other)),
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // A daemon that cannot be told goes when it notices that nothing is
        // left to manage.
        let _ = tell(&mut self.connection, &Request::Stop);
        let timeout = Timespec {
            tv_sec: TIME_TO_END.as_secs() as i64,
            tv_nsec: 0,
        };
        let _ = poll(
            &mut [PollFd::new(&self.process, PollFlags::IN)],
            Some(&timeout),
        );
    }
}
