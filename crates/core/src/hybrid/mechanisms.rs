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
}

impl Mechanisms {
    /// Whether any is in force.
    pub fn any(self) -> bool {
        self.kernel_priorities || self.abbreviated_quanta || self.ticket_boost
    }
}
