//! The users that claims belong to: what the words of the timetable do not say.

use prorata_core::slots::claim::Schedulee;
use prorata_core::slots::geometry::Geometry;

use crate::reader::{Reader, Snapshot};

/// A schedulee, and the user of the claim.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Part {
    /// What runs.
    pub schedulee: Schedulee,
    /// The user that pays.
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

    /// The parts of a table of so many cells, to be looked up.
    pub fn playbill(&self, cells: usize) -> Playbill {
        let all = self.present.iter().chain(&self.previous);
        let mut parts: Vec<Part> = all.map(|&(_, part)| part).collect();
        parts.sort_unstable();
        parts.dedup();
        let numbers = |claims: &[Claimed]| {
            let mut numbers = vec![0; cells];
            for (index, part) in claims {
                let place = parts.binary_search(part).expect("all parts are listed");
                numbers[*index] = place as u32 + 1;
            }
            numbers
        };
        Playbill {
            cells: [numbers(&self.present), numbers(&self.previous)],
            parts,
        }
    }
}

/// All parts, and which part has which cell.
#[derive(Default, Debug)]
pub struct Playbill {
    /// In order.
    pub parts: Vec<Part>,
    /// The place of each cell's part, plus 1, as of the last claims and as of those before.
    cells: [Vec<u32>; 2],
}

impl Playbill {
    /// The place of the part that a schedulee plays in a cell. Cost: two look-ups, whatever the
    /// number of claims.
    pub fn place(&self, index: usize, schedulee: Schedulee) -> Option<usize> {
        let places = self.cells.iter().filter_map(|numbers| {
            let place = numbers.get(index)?.checked_sub(1)? as usize;
            (self.parts[place].schedulee == schedulee).then_some(place)
        });
        places.into_iter().next()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_has_the_part_of_its_present_claim_or_of_the_one_before() {
        let schedulee = |pid| Schedulee::Process { pid, started: 1 };
        let part = |pid, user| Part {
            schedulee: schedulee(pid),
            user,
        };
        let owners = Owners {
            present: vec![(0, part(7, 1)), (2, part(8, 0))],
            previous: vec![(0, part(9, 0)), (2, part(8, 3))],
        };
        let playbill = owners.playbill(3);
        let found = |index, pid| {
            let place = playbill.place(index, schedulee(pid))?;
            Some(playbill.parts[place])
        };
        assert_eq!(found(0, 7), Some(part(7, 1)));
        assert_eq!(found(0, 9), Some(part(9, 0)));
        assert_eq!(found(2, 8), Some(part(8, 0)));
        assert_eq!(found(0, 8), None);
        assert_eq!(found(1, 7), None);
        assert_eq!(found(3, 7), None);
    }
}
