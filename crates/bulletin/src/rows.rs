//! Which readers a change wakes.

use std::num::NonZeroU32;
use std::ops::BitOr;

/// Rows whose changes readers wait for, as the bits of a futex: bit `row % 32`. So a reader may be woken
/// for another row, and looks for itself.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Rows(u32);

impl Rows {
    /// Every row.
    pub const ALL: Self = Self(u32::MAX);

    /// One row.
    pub const fn one(row: u32) -> Self {
        Self(1 << (row % u32::BITS))
    }

    /// None if there are no rows.
    pub(crate) fn bits(self) -> Option<NonZeroU32> {
        NonZeroU32::new(self.0)
    }
}

impl BitOr for Rows {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl FromIterator<u32> for Rows {
    fn from_iter<T: IntoIterator<Item = u32>>(rows: T) -> Self {
        let bits = rows.into_iter().map(Self::one);
        bits.fold(Self::default(), BitOr::bitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_share_bits_beyond_32() {
        assert_eq!(Rows::one(0), Rows::one(32));
        assert_ne!(Rows::one(0), Rows::one(31));
        assert_eq!((0..32).collect::<Rows>(), Rows::ALL);
        assert_eq!(Rows::one(3) | Rows::one(4), [3, 36].into_iter().collect());
        assert_eq!(Rows::default().bits(), None);
    }
}
