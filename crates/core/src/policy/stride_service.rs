//! Service: what a client is charged for, as stride policies count it.
//!
//! Passes are service divided by tickets, so service is what stays the same
//! when tickets change. It is counted in units of `1 / STRIDE1` quantum: a
//! full quantum is [`STRIDE1`] units, whatever the caller's unit of time.

/// Service of one quantum, and so the stride of a single ticket: the paper's
/// large integer constant `stride1` (1995, 2.1 and Appendix A).
///
/// Remainders of every division are carried, so its size decides only how
/// finely passes are told apart and how far apart they can be. Above 2^32,
/// the pairwise error stays below one quantum for all ticket counts; at 2^44,
/// a client of a single ticket can be charged 2^17 quanta ahead of the others
/// before it is held at [`LONGEST_WAIT`].
pub const STRIDE1: u64 = 1 << 44;

/// The most that one charge counts for, 2^16 quanta (after multiplication by
/// the chance in a race); what is used beyond it is not accounted for.
pub const MAX_SERVICE: u64 = STRIDE1 << 16;

/// The furthest that a pass is kept ahead of the global pass or behind it.
/// Debt or credit beyond it is forgotten (see [`super::credit`]). Twice this
/// and [`MAX_SERVICE`] still lie within half the range of a pass, so passes can
/// be compared although they wrap around.
pub const LONGEST_WAIT: i64 = 1 << 61;

/// Service used so far that is too little to be counted: the remainder of the
/// division by the quantum, carried to the next charge so that charges in
/// uneven parts of a quantum add up exactly (1995, 2.4).
#[derive(Clone, Copy, Debug)]
pub(super) struct PartUnit {
    /// In `1 / quantum` of a unit; below `quantum`.
    rest: u64,
    /// Quantum of the last charge; at least 1.
    quantum: u64,
}

impl PartUnit {
    pub(super) const NONE: Self = Self {
        rest: 0,
        quantum: 1,
    };

    /// The same with a quantum, which is at least 1.
    pub(super) const fn of(quantum: u64) -> Self {
        Self { rest: 0, quantum }
    }

    /// Service that stands for `used` of a `quantum`, which is at least 1.
    ///
    /// Exact over any number of charges as long as the client's quantum stays
    /// the same; a change of quantum loses less than one unit.
    #[inline]
    pub(super) fn service(&mut self, used: u64, quantum: u64) -> u64 {
        if self.quantum != quantum {
            let rest = u128::from(self.rest) * u128::from(quantum) / u128::from(self.quantum);
            *self = Self {
                rest: rest as u64,
                quantum,
            };
        }
        if used < quantum && quantum <= u32::MAX.into() {
            // The same in two steps of 64 bits.
            const UPPER_BITS: u32 = 32;
            const LOWER_BITS: u32 = STRIDE1.ilog2() - UPPER_BITS;
            let upper = used << UPPER_BITS;
            let lower = ((upper % quantum) << LOWER_BITS) + self.rest;
            self.rest = lower % quantum;
            return ((upper / quantum) << LOWER_BITS) + lower / quantum;
        }
        let dividend = u128::from(used) * u128::from(STRIDE1) + u128::from(self.rest);
        self.rest = (dividend % u128::from(quantum)) as u64;
        (dividend / u128::from(quantum)).min(u128::from(MAX_SERVICE)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_quantum_add_up_exactly() {
        let mut part = PartUnit::NONE;
        let quantum = 7;
        let mut service = 0u128;
        for round in 0..1000 {
            for used in [1, 2, 4] {
                service += u128::from(part.service(used, quantum));
            }
            assert_eq!(service, (round + 1) * u128::from(STRIDE1));
        }
    }

    #[test]
    fn both_ways_to_divide_agree() {
        let limit = u64::from(u32::MAX);
        for quantum in [1, 2, 3, 20_000_000, limit - 1, limit, limit + 1] {
            for used in [0, 1, quantum / 3, quantum - 1] {
                let rest = quantum - 1;
                let mut part = PartUnit { rest, quantum };
                let service = part.service(used, quantum);
                let dividend = u128::from(used) * u128::from(STRIDE1) + u128::from(rest);
                assert_eq!(u128::from(service), dividend / u128::from(quantum));
                assert_eq!(u128::from(part.rest), dividend % u128::from(quantum));
            }
        }
    }

    #[test]
    fn a_change_of_quantum_loses_less_than_a_unit() {
        let mut part = PartUnit::NONE;
        let service = part.service(1, 3) + part.service(2, 7) + part.service(8, 21);
        assert!(STRIDE1 - service <= 2, "{}", STRIDE1 - service);
    }

    #[test]
    fn a_charge_counts_for_at_most_the_largest_service() {
        let mut part = PartUnit::NONE;
        assert_eq!(part.service(1 << 16, 1), MAX_SERVICE);
        assert_eq!(part.service((1 << 16) + 1, 1), MAX_SERVICE);
        assert_eq!(part.service(u64::MAX, 1), MAX_SERVICE);
        assert_eq!(part.service(u64::MAX, u64::MAX - 1), STRIDE1);
        assert_eq!(part.service(0, u64::MAX), 0);
    }
}
