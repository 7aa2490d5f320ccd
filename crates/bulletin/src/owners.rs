//! The users that claims belong to: what the words of the timetable do not say.

use prorata_core::slots::claim::Schedulee;
use prorata_core::slots::geometry::Geometry;

use crate::reader::{Reader, Snapshot};

/// A schedulee, and the user of the claim.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Part {
    /// What runs.
    pub schedulee: Schedulee,
    /// Whose tokens pay.
    pub user: u32,
}

/// A claimed cell, by its dense number.
type Claimed = (usize, Part);

/// The claims of the last two looks at the table. A claim as decided comes into force up to two
/// slots later, and until then the one before it is.
#[derive(Default, Debug)]
pub struct Owners {
    present: Vec<Claimed>,
    previous: Vec<Claimed>,
}

impl Owners {
    /// Looks at the table anew. Returns false if it changes too fast.
    pub fn look(&mut self, reader: &Reader) -> bool {
        let Some(snapshot) = reader.snapshot() else {
            return false;
        };
        let present = claimed(&snapshot, reader.geometry());
        if present != self.present {
            self.previous = std::mem::replace(&mut self.present, present);
        }
        true
    }

    /// All schedulees and the users of their claims.
    pub fn parts(&self) -> Vec<Part> {
        let all = self.present.iter().chain(&self.previous);
        let mut parts: Vec<Part> = all.map(|&(_, part)| part).collect();
        parts.sort_unstable();
        parts.dedup();
        parts
    }

    /// The part that a schedulee plays in a cell: as of the present claim, or of the one before.
    pub fn part(&self, index: usize, schedulee: Schedulee) -> Option<Part> {
        let find = |claims: &[Claimed]| {
            let place = claims.binary_search_by_key(&index, |&(index, _)| index);
            let part = claims[place.ok()?].1;
            (part.schedulee == schedulee).then_some(part)
        };
        find(&self.present).or_else(|| find(&self.previous))
    }
}

fn claimed(snapshot: &Snapshot, geometry: &Geometry) -> Vec<Claimed> {
    let claims = snapshot.claims.iter();
    let claimed = claims.filter_map(|claim| {
        let part = Part {
            schedulee: claim.schedulee,
            user: claim.owner.user,
        };
        Some((geometry.index(claim.cell).ok()?, part))
    });
    claimed.collect()
}
