//! The timetable of a run: what a daemon does about its table, as far as an engine sees it.
//!
//! Slots are of real time, as an engine enforces them. Where other programs use the shared CPUs, the
//! time of the scenario goes on more slowly than slots do.

use std::collections::BTreeSet;

use prorata_bulletin::{FILE_NAME, Reader, Writer, now_ns};
use prorata_control::EngineError;
use prorata_core::slots::geometry::Tick;
use prorata_core::slots::notice::Notice;
use prorata_core::slots::timetable::Timetable;
use prorata_scenario::event::Event;
use prorata_scenario::measure::RunMeasures;
use prorata_scenario::plan::{Deed, SlotDeed, SlotPlan, client_id};
use prorata_scenario::world::slots::{client_of, revocations};

use super::Result;
use crate::error::StageError;
use crate::stage::Stage;

/// The open timetable. Its file ends with it.
pub(super) struct Slots {
    timetable: Timetable,
    writer: Writer,
    /// All clients that have claims at some time of the run.
    claimed: BTreeSet<u32>,
}

impl Slots {
    /// Opens the planned timetable now, with its first claims in force, and has the engine enforce it.
    pub(super) fn open(plan: &SlotPlan, timeline: &[(u64, Deed)], stage: &Stage) -> Result<Slots> {
        let mut timetable = plan.open_at(now_ns())?;
        let path = stage.directory().join(FILE_NAME);
        let writer = Writer::create(&path, &mut timetable, stage.cpus());
        let writer = writer.map_err(StageError::failed("make the timetable's file"))?;
        let reader = Reader::open(&path).map_err(EngineError::from)?;
        stage.enforce_slots(Some(reader))?;
        let later = timeline.iter().filter_map(|(_, deed)| match deed {
            Deed::Slots(deed) => deed.claim(),
            _ => None,
        });
        let claims = plan.claims().chain(later);
        Ok(Slots {
            timetable,
            writer,
            claimed: claims
                .filter_map(|claim| client_of(claim.schedulee))
                .collect(),
        })
    }

    fn tick(&self) -> Tick {
        self.timetable.geometry().tick_at(now_ns())
    }

    /// Lets time pass.
    pub(super) fn advance(&mut self, measures: &mut RunMeasures) {
        let notices = self.timetable.advance(self.tick()).notices;
        self.show(&notices, measures);
    }

    /// Does something from outside.
    pub(super) fn apply(&mut self, deed: &SlotDeed, measures: &mut RunMeasures) {
        let now = self.tick();
        let done = deed.apply(&mut self.timetable, now);
        for why in &done.refused {
            measures.told.note(Event::SlotsRefused { why });
        }
        self.show(&done.notices, measures);
    }

    /// A client has ended: its claims and tokens are gone.
    pub(super) fn end_client(&mut self, client: u32, measures: &mut RunMeasures) {
        let now = self.tick();
        let notices = self.timetable.end_client(client_id(client), now).notices;
        self.show(&notices, measures);
    }

    fn show(&mut self, notices: &[Notice], measures: &mut RunMeasures) {
        self.writer.publish(&mut self.timetable);
        if let Some(slots) = &mut measures.slots {
            revocations(notices).for_each(|event| slots.note(event));
        }
    }

    /// The run is over: the engine enforces no timetable any more, and its counts are measures. An
    /// engine counts by CPU, so missed slots are known where all claims are of one client.
    pub(super) fn close(self, stage: &Stage, measures: &mut RunMeasures) -> Result<()> {
        let rows = stage.slot_rows();
        stage.enforce_slots(None)?;
        let Some(slots) = &mut measures.slots else {
            return Ok(());
        };
        slots.tokens_conserved = self.timetable.audit();
        slots.sees_slots = false;
        slots.counts_missed = self.claimed.len() == 1;
        if let (Some(&client), true) = (self.claimed.first(), slots.counts_missed) {
            let missed = rows.iter().map(|row| row.missed + row.idle + row.lost);
            slots.clients[client as usize].missed = missed.sum();
        }
        Ok(())
    }
}
