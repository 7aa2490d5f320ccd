//! Claims, their owners and their requests (2005, Figures 2.2 and 2.3).

use core::fmt;

use super::geometry::{Cell, Tick};
use super::level::Level;
use crate::ids::ClientId;

/// The most requests of one call.
pub const VECTOR: usize = 512;

/// Whose tokens a claim costs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Account {
    /// All programs of a user.
    User(u32),
    /// One client, once it was given tokens.
    Client(ClientId),
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(user) => write!(f, "user {user}"),
            Self::Client(client) => write!(f, "client {client}"),
        }
    }
}

/// The owner of a claim.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Owner {
    /// The user.
    pub user: u32,
    /// The client that made the claim, if a client did.
    pub client: Option<ClientId>,
}

/// The author of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Caller {
    /// The owner of what the call claims.
    pub owner: Owner,
    /// Whether the caller may set tokens, reserve slots and free the slots of others.
    pub privileged: bool,
}

impl Caller {
    /// Whether this caller may free a claim of `owner`: its owner, its user, or a privileged one.
    pub fn may_free(&self, owner: Owner) -> bool {
        self.privileged
            || self.owner == owner
            || (self.owner.client.is_none() && self.owner.user == owner.user)
    }
}

/// What runs in a slot. A process and a thread are told from later ones of the same number by the
/// time of their start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Schedulee {
    /// Any task of a client.
    Client(ClientId),
    /// Any thread of a process.
    Process {
        /// The process.
        pid: u32,
        /// When it started.
        started: u64,
    },
    /// One thread.
    Thread {
        /// The thread.
        tid: u32,
        /// When it started.
        started: u64,
    },
}

/// A slot that has an owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Claim {
    /// The owner.
    pub owner: Owner,
    /// The account that the token came from and goes back to.
    pub payer: Account,
    /// What runs.
    pub schedulee: Schedulee,
    /// The token's level.
    pub level: Level,
    /// The first tick at which the claim is not valid any more.
    pub expires: Option<Tick>,
    /// The number of the claim: a later one has a greater number.
    pub number: u64,
}

/// One element of the vector of a claim (2005, Figure 2.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlotRequest {
    /// The slot.
    pub cell: Cell,
    /// What shall run.
    pub schedulee: Schedulee,
    /// The level of the token to spend.
    pub level: Level,
    /// The first tick at which the claim shall not be valid any more.
    pub expires: Option<Tick>,
}
