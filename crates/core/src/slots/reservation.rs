//! Slots that stay unclaimed for latency-sensitive tasks (2005, 2.5.1).

use alloc::vec;
use alloc::vec::Vec;

/// Any `denominator` successive slots of the row, round the end of the table, hold at least
/// `numerator` unclaimed ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Reservation {
    /// Slots to keep unclaimed.
    pub numerator: u32,
    /// Slots of a window.
    pub denominator: u32,
}

/// No reservation.
pub(crate) const NONE: Reservation = Reservation {
    numerator: 0,
    denominator: 1,
};

/// Whether claims in the way end at once, or when their owners free them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Onset {
    /// Claims in the way are revoked.
    Immediate,
    /// New claims are refused until the windows are free.
    Lazy,
}

impl Reservation {
    /// Whether a claim of the unclaimed `column` leaves enough in every window around it.
    pub fn permits(&self, column: u32, columns: u32, is_claimed: impl Fn(u32) -> bool) -> bool {
        if self.numerator == 0 {
            return true;
        }
        let width = self.denominator;
        let at = |offset: u32| (column + columns - (width - 1) + offset) % columns;
        let mut free = (0..width).filter(|&offset| !is_claimed(at(offset))).count() as u32;
        for offset in width..2 * width {
            if free <= self.numerator {
                return false;
            }
            free -= u32::from(!is_claimed(at(offset - width)));
            if offset < 2 * width - 1 {
                free += u32::from(!is_claimed(at(offset)));
            } else {
                break;
            }
        }
        true
    }

    /// Which columns are in a window that has no unclaimed slot to spare.
    pub(crate) fn keeps(&self, claimed: &[bool]) -> Vec<bool> {
        let one_more = Self {
            numerator: self.numerator + 1,
            ..*self
        };
        one_more.in_short_windows(claimed)
    }

    /// How many unclaimed slots each window lacks, by its first column.
    pub(crate) fn deficits(&self, claimed: &[bool]) -> Vec<u32> {
        let columns = claimed.len();
        let width = self.denominator as usize;
        let mut free = (0..width).filter(|&column| !claimed[column]).count() as u32;
        let mut deficits = vec![0; columns];
        for first in 0..columns {
            deficits[first] = self.numerator.saturating_sub(free);
            free -= u32::from(!claimed[first]);
            free += u32::from(!claimed[(first + width) % columns]);
        }
        deficits
    }

    /// The columns to free so that every window holds: a set of which none can be spared, which need
    /// not be the smallest. Of the claims that may go and would help, `choose` names the next to go.
    /// `Err`: the columns that stay and are in the way.
    pub(crate) fn victims(
        &self,
        claimed: &[bool],
        may_go: impl Fn(u32) -> bool,
        mut choose: impl FnMut(&[u32]) -> Option<u32>,
    ) -> Result<Vec<u32>, Vec<u32>> {
        if self.numerator == 0 {
            return Ok(Vec::new());
        }
        let mut after = claimed.to_vec();
        let mut victims = Vec::new();
        loop {
            let short = self.in_short_windows(&after);
            let helps = |&column: &u32| after[column as usize] && short[column as usize];
            let mut candidates: Vec<u32> = (0..claimed.len() as u32).filter(helps).collect();
            if candidates.is_empty() {
                break;
            }
            let stay = candidates.clone();
            candidates.retain(|&column| may_go(column));
            let Some(column) = choose(&candidates) else {
                return Err(stay);
            };
            after[column as usize] = false;
            victims.push(column);
        }
        self.spare(&mut after, &mut victims);
        Ok(victims)
    }

    /// Which columns are in a window that lacks unclaimed slots.
    fn in_short_windows(&self, claimed: &[bool]) -> Vec<bool> {
        let deficits = self.deficits(claimed);
        let (columns, width) = (claimed.len(), self.denominator as usize);
        let (mut inside, mut last) = (vec![false; columns], None);
        // A window of the first round may reach into the second, round the end.
        for step in 0..2 * columns {
            if deficits[step % columns] > 0 {
                last = Some(step);
            }
            inside[step % columns] = last.is_some_and(|last| step - last < width);
        }
        inside
    }

    /// Spares each victim that others have made needless, the last to go first.
    fn spare(&self, after: &mut [bool], victims: &mut Vec<u32>) {
        for place in (0..victims.len()).rev() {
            let column = victims[place] as usize;
            after[column] = true;
            if self.deficits(after).iter().all(|&lack| lack == 0) {
                victims.remove(place);
            } else {
                after[column] = false;
            }
        }
    }
}
