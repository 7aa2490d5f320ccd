//! Priorities of tokens (2005, 2.4.1).

/// The number of levels: the thesis's `NUM_TOKEN_PRIORITIES`.
pub const LEVELS: usize = 7;

/// The priority of a token, lowest first. A higher level preempts a lower one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Level {
    /// Work that may wait for ever.
    Background,
    /// Work without particular demands.
    BestEffort,
    /// Threads that run at the same time.
    Gang,
    /// The lower class of soft real time.
    Soft2,
    /// The upper class of soft real time.
    Soft1,
    /// Hard real time.
    Hard,
    /// What the system itself cannot do without.
    System,
}

impl Level {
    /// All levels, lowest first.
    pub const ALL: [Self; LEVELS] = [
        Self::Background,
        Self::BestEffort,
        Self::Gang,
        Self::Soft2,
        Self::Soft1,
        Self::Hard,
        Self::System,
    ];

    /// The level's place in an array of levels.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether claims of one level may preempt each other by weight (2005, 2.4.1, footnote 3).
    pub fn permits_sharing(self) -> bool {
        self < Self::Hard
    }
}
