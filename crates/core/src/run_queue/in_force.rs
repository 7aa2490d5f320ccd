//! What a task goes by: its tickets, or those that are feasible.

use core::num::NonZeroU32;

use super::limits::Tickets;

/// Parts of a ticket that feasible tickets are counted in. No feasible weight
/// is less than a ticket, as nobody's weight is, so rounding to a part is less
/// than half a percent of it; and most tickets in parts fit 32 bits.
pub const TICKET_PARTS: u32 = 128;

/// The tickets that a task goes by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InForce {
    parts: NonZeroU32,
    is_cut: bool,
}

impl InForce {
    /// A single ticket.
    pub(super) const ONE: Self = Self::whole(Tickets::ONE);

    /// All of these.
    pub(super) const fn whole(tickets: Tickets) -> Self {
        let one = NonZeroU32::MIN;
        Self {
            // MAX_TICKETS of them fit.
            parts: one.saturating_add(tickets.get() * TICKET_PARTS - 1),
            is_cut: false,
        }
    }

    /// In parts of a ticket: there are [`TICKET_PARTS`] in one.
    pub const fn parts(self) -> u32 {
        self.parts.get()
    }

    /// Whether its tickets would be worth more than a CPU: it goes by no more
    /// than what one is worth.
    pub const fn is_cut(self) -> bool {
        self.is_cut
    }

    /// As a word: zero for nobody.
    pub(super) fn word(this: Option<Self>) -> u64 {
        this.map_or(0, |this| {
            u64::from(this.parts.get()) << 1 | u64::from(this.is_cut)
        })
    }

    pub(super) fn from_word(word: u64) -> Option<Self> {
        Self::new((word >> 1) as u32, word & 1 == 1)
    }

    /// So many parts; `None` of none.
    pub(super) fn new(parts: u32, is_cut: bool) -> Option<Self> {
        let parts = NonZeroU32::new(parts)?;
        Some(Self { parts, is_cut })
    }
}
