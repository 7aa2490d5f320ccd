//! Keepers: threads that do what the timetable says at each boundary.
//!
//! Where schedulees are raised, each row has a keeper of its own, bound to the row's CPU and above all
//! slots there. So the change of schedulees takes no interrupt between CPUs, and rows do not wait for
//! each other. Elsewhere one keeper has all rows, because a rival gives way to all of them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use prorata_bulletin::Reader;

use super::cast::Casting;
use super::rows::Row;
use super::tally::{SlotReport, Tally};
use super::watch::Watch;
use super::{SlotMechanism, herald};
use crate::events::CommandSender;
use crate::priority::Raise;
use crate::table::Table;

/// What keepers and engine share.
#[derive(Debug)]
pub(crate) struct Play {
    pub(crate) mechanism: SlotMechanism,
    pub(crate) casting: Casting,
    /// Of the table.
    pub(crate) period_ns: u64,
    cpus: Vec<u32>,
    /// Row by row.
    pub(super) tallies: Vec<Tally>,
    ended: AtomicBool,
}

impl Play {
    pub(crate) fn new(mechanism: SlotMechanism, reader: &Reader) -> Self {
        let cpus = reader.cpus().to_vec();
        let geometry = reader.geometry();
        Self {
            mechanism,
            casting: Casting::default(),
            period_ns: geometry.period_ns(),
            tallies: cpus.iter().map(|_| Tally::new()).collect(),
            cpus,
            ended: AtomicBool::new(false),
        }
    }

    /// Has the keepers lower everything and end at their next boundaries.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    fn report(&self) -> SlotReport {
        let rows = self.tallies.iter().zip(&self.cpus);
        SlotReport {
            mechanism: self.mechanism,
            rows: rows.map(|(tally, &cpu)| tally.report(cpu)).collect(),
        }
    }
}

/// The keepers as their engine has them. Dropping them lowers everything.
#[derive(Debug)]
pub(crate) struct Keepers {
    play: Arc<Play>,
    reader: Arc<Reader>,
    threads: Vec<JoinHandle<()>>,
}

impl Keepers {
    pub(crate) fn start(
        play: Arc<Play>,
        reader: Reader,
        raise: Option<Raise>,
        table: &Arc<Table>,
        commands: CommandSender,
    ) -> io::Result<Keepers> {
        let rows = (0..).zip(&play.cpus);
        let rows: Vec<Row> = rows.map(|(index, &cpu)| Row::new(index, cpu)).collect();
        let mut keepers = Keepers {
            play: play.clone(),
            reader: Arc::new(reader),
            threads: Vec::new(),
        };
        let groups: Vec<Vec<Row>> = match play.mechanism {
            SlotMechanism::Raise => rows.into_iter().map(|row| vec![row]).collect(),
            SlotMechanism::Lower | SlotMechanism::Stop => vec![rows],
        };
        for rows in groups {
            let reader = keepers.reader.clone();
            let watch = Watch::new(play.clone(), reader, rows, raise, table.clone());
            keepers.spawn("keeper", move || watch.keep())?;
        }
        let reader = keepers.reader.clone();
        keepers.spawn("herald", move || herald::run(&play, &reader, &commands))?;
        Ok(keepers)
    }

    fn spawn(&mut self, name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let thread = std::thread::Builder::new().name(name.into()).spawn(body)?;
        self.threads.push(thread);
        Ok(())
    }

    pub(crate) fn report(&self) -> SlotReport {
        self.play.report()
    }
}

impl Drop for Keepers {
    fn drop(&mut self) {
        self.play.end();
        for thread in self.threads.drain(..) {
            self.reader.join(thread);
        }
    }
}
