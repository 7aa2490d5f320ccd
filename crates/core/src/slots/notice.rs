//! What owners are told of their claims (2005, 2.4.2), and watchers of free slots (2005, 6).

use super::claim::{Claim, Owner};
use super::geometry::Cell;

/// Why a claim has ended without its owner's doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Why {
    /// A claim of a higher level took the slot.
    Preempted(Owner),
    /// A claim of the same level took the slot: its owner had less than its fair share.
    Shared(Owner),
    /// An administrator reserved slots of the row.
    Reserved,
    /// A privileged caller or the owner's user freed the slot.
    Freed(Owner),
    /// The claim expired.
    Expired,
    /// The schedulee ended.
    ScheduleeEnded,
}

/// One claim that has ended; it goes to the claim's owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Notice {
    /// The slot.
    pub cell: Cell,
    /// The claim.
    pub claim: Claim,
    /// Why it ended.
    pub why: Why,
}

/// What a call did, with what is to be told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome<T> {
    /// The answer.
    pub value: T,
    /// The table's generation afterwards.
    pub generation: u64,
    /// Ends of claims since the last outcome.
    pub notices: alloc::vec::Vec<Notice>,
    /// Slots that became free since the last outcome; some may be claimed again.
    pub freed: alloc::vec::Vec<Cell>,
}
