//! The trace of a scheduler that another process has loaded, by the names of its maps.

use libbpf_rs::MapHandle;
use libbpf_rs::query::MapInfoIter;

use super::loaded::lost_in;
use super::ring::Ring;
use super::trace::{self, Decision, Trace};
use crate::{KernelError, attach};

/// The ring and the number of decisions that it had no room for, as in
/// `bpf/trace.bpf.h`.
const MAPS: [&str; 2] = ["prorata_trace", "prorata_lost"];

pub struct Tap {
    decisions: Ring<Decision>,
    /// Keeps the ring as long as it is read.
    _ring: MapHandle,
    lost: MapHandle,
    /// Lost before anybody was here to take them.
    lost_before: u64,
}

impl Tap {
    pub fn open() -> Result<Self, KernelError> {
        let [ring, lost] = MAPS.map(newest);
        let (ring, lost) = (ring?, lost?);
        let decisions = Ring::new(&ring, trace::decode).map_err(unreadable)?;
        // Decided when nobody listened: what came next may be lost.
        drop(decisions.take());
        let lost_before = lost_in(&lost)?;
        Ok(Self {
            decisions,
            _ring: ring,
            lost,
            lost_before,
        })
    }

    pub fn take_decisions(&self) -> Result<Trace, KernelError> {
        if !attach::is_loaded() {
            return Err(KernelError::Trace("it was unloaded".to_owned()));
        }
        let decisions = self.decisions.take();
        let lost = lost_in(&self.lost)?.saturating_sub(self.lost_before);
        Ok(Trace { decisions, lost })
    }
}

/// The map of this name that was made last: that of a scheduler that is gone may
/// still be there.
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
