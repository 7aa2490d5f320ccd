//! The mechanisms, each by itself.

/// Which mechanisms of hybrid lottery scheduling are in force. By default none is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Mechanisms {
    /// A client that wakes from a sleep in the kernel runs before others (1999, 3.1).
    pub kernel_priorities: bool,
    /// A client that wakes may preempt a running one (1999, 3.2).
    pub abbreviated_quanta: bool,
    /// A client that received less than it deserved runs before others (1999, 3.3).
    pub ticket_boost: bool,
    /// A client's base tickets follow its nice value (1999, 3.4).
    pub nice: bool,
}

impl Mechanisms {
    /// The policies of 1994 and 1995 alone.
    pub const NONE: Self = Self {
        kernel_priorities: false,
        abbreviated_quanta: false,
        ticket_boost: false,
        nice: false,
    };
    /// All mechanisms.
    pub const ALL: Self = Self {
        kernel_priorities: true,
        abbreviated_quanta: true,
        ticket_boost: true,
        nice: true,
    };

    /// Whether any is in force that judges clients when they wake.
    pub fn judges_wakes(self) -> bool {
        self.kernel_priorities || self.abbreviated_quanta || self.ticket_boost
    }
}
