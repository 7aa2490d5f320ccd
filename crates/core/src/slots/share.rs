//! Preemption by weight between claims of one level (2005, 2.4.1).

use core::cmp::Ordering;

/// What an account has of one level: its claims and its weight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// Claims in the whole table.
    pub claims: u64,
    /// Weight; an account without weight takes nothing.
    pub weight: u32,
}

impl Share {
    /// Compares claims for their weight. An account without weight is ahead of all that have some,
    /// and of others without as far as it has more claims.
    pub fn ahead_of(self, other: Self) -> Ordering {
        if self.weight == 0 && other.weight == 0 {
            return self.claims.cmp(&other.claims);
        }
        let mine = u128::from(self.claims) * u128::from(other.weight);
        let theirs = u128::from(other.claims) * u128::from(self.weight);
        mine.cmp(&theirs)
    }

    /// The share with some claims less.
    pub(crate) fn after_losing(self, claims: u64) -> Self {
        Self {
            claims: self.claims.saturating_sub(claims),
            ..self
        }
    }
}

/// Whether `taker` may take one slot from `holder`: only if the taker is not ahead afterwards.
///
/// The sum of `claims^2 / weight` then falls with each preemption, so preemptions end. "More than
/// its fair share", read literally, lets two equal accounts take one slot from each other for ever.
pub fn may_take(taker: Share, holder: Share) -> bool {
    if taker.weight == 0 || holder.claims == 0 {
        return false;
    }
    let gained = Share {
        claims: taker.claims + 1,
        ..taker
    };
    gained.ahead_of(holder.after_losing(1)) != Ordering::Greater
}
