//! The order in which a scheduler tries CPUs (2005, 4.4).

use alloc::vec::Vec;

use super::View;
use crate::rng::{Rng, below};

/// Which CPU to try first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CpuChoice {
    /// The one with the most open slots.
    LeastUtilised,
    /// The one with the fewest open slots.
    MostUtilised,
    /// Any.
    Random,
}

impl CpuChoice {
    /// All rows, the first to try first; equals in their order.
    pub fn order<R: Rng + ?Sized>(self, view: &View, rng: &mut R) -> Vec<u32> {
        let mut rows: Vec<u32> = (0..view.rows()).collect();
        match self {
            Self::LeastUtilised => rows.sort_by_key(|&row| core::cmp::Reverse(view.open_in(row))),
            Self::MostUtilised => rows.sort_by_key(|&row| view.open_in(row)),
            Self::Random => {
                for last in (1..rows.len()).rev() {
                    rows.swap(last, below(rng, last as u64 + 1) as usize);
                }
            }
        }
        rows
    }
}
