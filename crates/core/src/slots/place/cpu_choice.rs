//! The order in which a scheduler tries CPUs (2005, 4.4).

use alloc::vec::Vec;
use core::cmp::Reverse;

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
    /// The rows with at least `room` open slots, the first to try first; equals in their order.
    ///
    /// Each is looked for when it is asked for, because mostly the first one will do.
    pub fn order<R: Rng + ?Sized>(
        self,
        view: &View,
        room: u32,
        rng: &mut R,
    ) -> impl Iterator<Item = u32> {
        let rows = (0..view.rows()).map(|row| (view.open_in(row), row));
        let mut left: Vec<(u32, u32)> = rows.filter(|&(open, _)| open >= room).collect();
        core::iter::from_fn(move || {
            let places = 0..left.len();
            let place = match self {
                Self::LeastUtilised => {
                    places.min_by_key(|&place| (Reverse(left[place].0), left[place].1))
                }
                Self::MostUtilised => places.min_by_key(|&place| left[place]),
                Self::Random => (!left.is_empty()).then(|| below(rng, left.len() as u64) as usize),
            };
            place.map(|place| left.swap_remove(place).1)
        })
    }
}
