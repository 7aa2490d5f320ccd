//! The trace of a scheduler that another process has loaded, found by the names of its maps.

use std::sync::atomic::{AtomicBool, Ordering};

use libbpf_rs::MapHandle;
use libbpf_rs::query::MapInfoIter;

use super::ring::Ring;
use super::trace::{self, Decision, DecisionKind, Trace};
use crate::{KernelError, attach};

/// The ring, the count of lost decisions, and the count of requests for the state
/// (`bpf/trace.bpf.h`).
const MAPS: [&str; 3] = ["prorata_trace", "prorata_lost", "prorata_asked"];

/// The trace of a scheduler that another process has loaded.
pub struct Tap {
    decisions: Ring<Decision>,
    /// Keeps the ring while it is read.
    _ring: MapHandle,
    lost: MapHandle,
    /// Decisions that were lost before this was opened.
    lost_before: u64,
    /// Whether the requested state has arrived. Earlier decisions are dropped.
    has_begun: AtomicBool,
}

impl Tap {
    /// Reads decisions from the next one on, after the state ([`DecisionKind::Begin`]).
    /// Several readers at a time divide the decisions among them. The next decision takes a
    /// millisecond longer.
    ///
    /// # Errors
    ///
    /// If no scheduler of prorata's is loaded with a trace, or the trace cannot be read.
    pub fn open() -> Result<Self, KernelError> {
        let [ring, lost, asked] = MAPS.map(newest);
        let (ring, lost, asked) = (ring?, lost?, asked?);
        let decisions = Ring::new(&ring, trace::decode).map_err(unreadable)?;
        // Decisions without a reader: the ones after them may be lost.
        drop(decisions.take());
        let lost_before = trace::count_in(&lost)?;
        trace::set_count_in(&asked, trace::count_in(&asked)?.wrapping_add(1))?;
        Ok(Self {
            decisions,
            _ring: ring,
            lost,
            lost_before,
            has_begun: AtomicBool::new(false),
        })
    }

    /// As [`take_decisions`](super::Scheduler::take_decisions) of a scheduler. Counts the decisions lost since this was opened.
    pub fn take_decisions(&self) -> Result<Trace, KernelError> {
        if !attach::is_loaded() {
            return Err(KernelError::Trace("it was unloaded".to_owned()));
        }
        let mut decisions = self.decisions.take();
        if !self.has_begun.load(Ordering::Relaxed) {
            let begin = decisions.iter().position(is_begin);
            self.has_begun.store(begin.is_some(), Ordering::Relaxed);
            drop(decisions.drain(..begin.unwrap_or(decisions.len())));
        }
        let lost = trace::count_in(&self.lost)?.saturating_sub(self.lost_before);
        Ok(Trace { decisions, lost })
    }
}

fn is_begin(decision: &Decision) -> bool {
    decision.kind == DecisionKind::Begin
}

/// The newest map of this name: maps of an unloaded scheduler may remain.
fn newest(name: &str) -> Result<MapHandle, KernelError> {
    let named = MapInfoIter::default().filter(|map| map.name.to_str() == Some(name));
    let id = named
        .map(|map| map.id)
        .max()
        .ok_or(KernelError::NotTraced)?;
    MapHandle::from_map_id(id).map_err(unreadable)
}

fn unreadable(error: libbpf_rs::Error) -> KernelError {
    KernelError::Trace(format!("{error:#}"))
}
