//! What a chooser keeps for each client.

/// Four bytes, since there may be a million clients, and turns on few CPUs.
///
/// Zero: the client does not compete. Else its runnable threads, or, with the
/// highest bit set, where its turn is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Client(u32);

const HAS_TURN: u32 = 1 << 31;

impl Client {
    pub(super) const ABSENT: Self = Self(0);

    /// A client without a turn. More threads than there can be CPUs count as
    /// the most that fit.
    pub(super) fn waiting(threads: u32) -> Self {
        Self(threads.min(HAS_TURN - 1))
    }

    /// Runnable threads of a client without a turn.
    pub(super) fn waiting_threads(self) -> u32 {
        self.0
    }

    pub(super) fn with_turn(place: usize) -> Self {
        Self(HAS_TURN | place as u32)
    }

    pub(super) fn turn(self) -> Option<usize> {
        (self.0 & HAS_TURN != 0).then_some((self.0 & !HAS_TURN) as usize)
    }
}
