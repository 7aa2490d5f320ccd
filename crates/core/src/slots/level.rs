//! Priorities of tokens (2005, 2.4.1).

use alloc::string::String;
use core::fmt;
use core::str::FromStr;

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
    #[cfg_attr(feature = "serde", serde(rename = "soft-2"))]
    Soft2,
    /// The upper class of soft real time.
    #[cfg_attr(feature = "serde", serde(rename = "soft-1"))]
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

    /// The level as users write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Background => "background",
            Self::BestEffort => "best-effort",
            Self::Gang => "gang",
            Self::Soft2 => "soft-2",
            Self::Soft1 => "soft-1",
            Self::Hard => "hard",
            Self::System => "system",
        }
    }

    /// The level's place in an array of levels.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether claims of one level may preempt each other by weight (2005, 2.4.1, footnote 3).
    pub fn permits_sharing(self) -> bool {
        self < Self::Hard
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that names no level.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "no level is named '{0}': take background, best-effort, gang, soft-2, soft-1, hard or system"
)]
pub struct UnknownLevel(pub String);

impl FromStr for Level {
    type Err = UnknownLevel;

    fn from_str(text: &str) -> Result<Self, UnknownLevel> {
        let level = Self::ALL.into_iter().find(|level| level.name() == text);
        level.ok_or_else(|| UnknownLevel(text.into()))
    }
}
