//! A slot in 64 bits, as engines read it without a lock (2005, 3.2).
//!
//! From the top: schedulee (20 bits), columns to the next claimed slot (12), expiry (32). The whole
//! word is zero where no claim is.

use alloc::vec;
use alloc::vec::Vec;

use super::geometry::Tick;

/// What a word says of a claimed slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Word {
    /// The schedulee's number, from 1 to 2^20 - 1.
    pub schedulee: u32,
    /// Columns to the row's next claimed slot, from 1 to 4,096: 4,096 is packed as zero.
    pub distance: u32,
    /// The first period since the epoch in which the claim is not valid any more; zero: it is valid
    /// for ever.
    pub expiry: u32,
}

impl Word {
    /// The 64 bits.
    pub const fn pack(self) -> u64 {
        (self.schedulee as u64) << 44 | (self.distance as u64 & 0xfff) << 32 | self.expiry as u64
    }

    /// What 64 bits say; `None`: unclaimed.
    pub const fn unpack(bits: u64) -> Option<Self> {
        if bits == 0 {
            return None;
        }
        let distance = (bits >> 32) as u32 & 0xfff;
        Some(Self {
            schedulee: (bits >> 44) as u32,
            distance: if distance == 0 { 4_096 } else { distance },
            expiry: bits as u32,
        })
    }

    /// Whether the claim is valid in a period.
    pub const fn is_valid(self, period: u64) -> bool {
        self.expiry == 0 || period < self.expiry as u64
    }
}

/// From each column of a row to the next one that is claimed, round the end of the table; zero where
/// none is.
pub fn distances(claimed: &[bool]) -> Vec<u32> {
    let columns = claimed.len();
    let mut distances = vec![0; columns];
    let mut next = None;
    for place in (0..2 * columns).rev() {
        let column = place % columns;
        distances[column] = next.map_or(0, |next: usize| (next - place) as u32);
        if claimed[column] {
            next = Some(place);
        }
    }
    distances
}

/// The first period in which a claim of `column` that ends before tick `expires` is not valid;
/// `None` if that is past what a word holds.
pub fn expiry_period(expires: Tick, column: u32, columns: u32) -> Option<u32> {
    let periods = expires
        .saturating_sub(u64::from(column))
        .div_ceil(u64::from(columns));
    // A claim that would never run has no period of its own; `claim_slots` refuses it.
    u32::try_from(periods.max(1)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_lead_to_the_next_claimed_column() {
        let five = distances(&[false, true, false, false, true]);
        assert_eq!(five, [1, 3, 2, 1, 2]);
        assert_eq!(distances(&[true, false, false]), [3, 2, 1]);
        assert_eq!(distances(&[false; 3]), [0; 3]);
        assert_eq!(distances(&[true]), [1]);
        let all = distances(&[true; 4096]);
        assert!(all.iter().all(|&distance| distance == 1));
    }
}
