//! Preemption by weight between claims of one level (2005, 2.4.1).

/// What an account has of one level: its claims and its weight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// Claims in the whole table.
    pub claims: u64,
    /// Weight; an account without weight takes nothing.
    pub weight: u32,
}

/// Whether `taker` may take one slot from `holder`: only if the taker is not ahead afterwards.
///
/// The sum of `claims^2 / weight` then falls with each preemption, so preemptions end. "More than
/// its fair share", read literally, lets two equal accounts take one slot from each other for ever.
pub fn may_take(taker: Share, holder: Share) -> bool {
    if taker.weight == 0 || holder.claims == 0 {
        return false;
    }
    let held = u128::from(holder.claims - 1) * u128::from(taker.weight);
    let taken = (u128::from(taker.claims) + 1) * u128::from(holder.weight);
    held >= taken
}
