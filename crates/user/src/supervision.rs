//! The engine under its guardian: promises to it, its releases, and its replacement.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::events::{CommandSender, Events};
use crate::guardian::Guardian;
use crate::table::Table;
use crate::time::SECOND_NS;

/// How long to wait before trying once more to start a guardian.
const PAUSE: Duration = Duration::from_nanos(SECOND_NS);

/// The guardian and what the engine shares with it.
pub(crate) struct Supervision {
    table: Arc<Table>,
    clients_socket: PathBuf,
    /// None while a new one is being started.
    guardian: Option<Guardian>,
    /// For the thread that starts a new guardian.
    to_self: CommandSender,
    /// Releases by the guardian that the engine knows of.
    releases_seen: u64,
}

impl Supervision {
    pub(crate) fn new(table: Arc<Table>, clients_socket: PathBuf, to_self: CommandSender) -> Self {
        Self {
            releases_seen: table.releases(),
            table,
            clients_socket,
            guardian: None,
            to_self,
        }
    }

    pub(crate) fn table(&self) -> Arc<Table> {
        self.table.clone()
    }

    pub(crate) fn guardian_pid(&self) -> Option<u32> {
        self.guardian.as_ref().map(Guardian::pid)
    }

    /// Relies on this guardian from now on.
    pub(crate) fn employ(&mut self, guardian: Guardian, events: &Events) -> rustix::io::Result<()> {
        events.watch_guardian(&guardian)?;
        self.guardian = Some(guardian);
        Ok(())
    }

    /// Relies on a guardian that was to be started, or tries again.
    pub(crate) fn employ_or_retry(&mut self, started: std::io::Result<Guardian>, events: &Events) {
        let employed = started.and_then(|guardian| Ok(self.employ(guardian, events)?));
        if let Err(error) = employed {
            tracing::error!("cannot start a guardian, trying again: {error}");
            self.start_guardian(PAUSE, None);
        }
    }

    /// Replaces a guardian that ended. A thread of its own starts the new one, because that takes
    /// a while.
    pub(crate) fn replace_guardian(&mut self, events: &Events) {
        let Some(guardian) = self.guardian.take() else {
            return;
        };
        tracing::warn!("guardian {} is gone; starting another", guardian.pid());
        events.unwatch_guardian(&guardian);
        self.start_guardian(Duration::ZERO, Some(guardian));
    }

    /// Replaces a guardian that is stopped, or that sleeps on.
    pub(crate) fn replace_hung_guardian(&mut self, events: &Events, now_ns: u64) {
        if let Some(guardian) = &mut self.guardian
            && guardian.has_hung(now_ns)
        {
            guardian.kill();
            self.replace_guardian(events);
        }
    }

    /// Waits for the end of the `former` one once the new one has started: the kernel may be late
    /// to end it.
    fn start_guardian(&self, delay: Duration, former: Option<Guardian>) {
        let (table, to_self) = (self.table.clone(), self.to_self.clone());
        let clients_socket = self.clients_socket.clone();
        let start = move || {
            std::thread::sleep(delay);
            // If the engine has ended meanwhile, the guardian goes with the closure.
            let started = Guardian::spawn(&table, &clients_socket);
            let _ = to_self.send(move |thread, _| thread.rely_on(started));
            drop(former);
        };
        let spawned = std::thread::Builder::new()
            .name("guardian-start".into())
            .spawn(start);
        if let Err(error) = spawned {
            tracing::error!("no guardian and no thread to start one: {error}");
        }
    }

    /// Promises the guardian to promise again before this time on the monotonic clock.
    pub(crate) fn promise(&self, alive_until_ns: u64) {
        self.table.promise(alive_until_ns);
    }

    /// Whether the guardian has released all since the last call.
    pub(crate) fn take_releases(&mut self) -> bool {
        let releases = self.table.releases();
        std::mem::replace(&mut self.releases_seen, releases) != releases
    }
}
