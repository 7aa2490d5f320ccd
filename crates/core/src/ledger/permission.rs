//! Permissions: which users may do what to a currency.
//!
//! 1994, 4.7: "A complete lottery scheduling system should protect currencies
//! by using access control lists or Unix-style permissions based on user and
//! group membership." These are the Unix-style ones.
//!
//! A currency has an owner, a group and a [`Mode`]; a client has an owner. The
//! super-user may do everything. Any other user needs, for
//!
//! | operation | what |
//! |---|---|
//! | `CreateCurrency`, `CreateClient` | to be the owner named |
//! | `Protect`, `DestroyCurrency` | to own the currency |
//! | `LimitClient`, `DestroyClient` | to own the client |
//! | `Issue` | issue in the currency; with a target also *reach* it |
//! | `DestroyTicket`, `SetAmount` | issue in the ticket's currency |
//! | `Unfund` | issue in the ticket's currency, and reach what it funds |
//! | `Fund` | as `Unfund` if it funds something, and reach the new target |
//! | `Transfer` | own the giver; fund each receiving currency, nothing for a receiving client |
//! | `EndTransfer` | own the giver, or issue in all currencies that it moved |
//! | reading tickets and values | read the currency, see [`super::Ledger::may_read`] |
//!
//! To *reach* a target is to have fund on it if it is a currency, and to own
//! it if it is a client. So a user without the right to issue in a currency gets
//! no share of it, except as a gift from a client that has one. A gift is harmless: its
//! receiver only gains, and every other client gets as much as beside a giver that competes (a
//! receiver that competes while the giver sleeps keeps those tickets active). A user with the
//! right to issue in a currency may also take back its tickets, wherever they are.

use alloc::vec::Vec;
use core::fmt;

/// The asker of an operation: a user and the groups it belongs to.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Principal {
    /// User id; 0 may do everything.
    pub uid: u32,
    /// Group ids.
    pub gids: Vec<u32>,
}

impl Principal {
    /// The super-user: nothing is refused for want of permission.
    pub const ROOT: Principal = Principal {
        uid: 0,
        gids: Vec::new(),
    };

    /// Whether it is this user or the super-user.
    pub fn acts_for(&self, uid: u32) -> bool {
        self.uid == 0 || self.uid == uid
    }
}

/// What a principal wants to do with a currency.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Access {
    /// See its tickets and what they are worth.
    Read,
    /// Back it with tickets of another currency, or take them away.
    Fund,
    /// Issue, inflate, deflate and destroy tickets denominated in it.
    Issue,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Access::Read => "read",
            Access::Fund => "fund",
            Access::Issue => "issue tickets in",
        })
    }
}

/// Three octal digits, for the owner, the group and the others; in each digit
/// 4 is read, 2 is fund, 1 is issue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "u16", into = "u16"))]
pub struct Mode(u16);

/// A mode with more than nine bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("mode {0:o} is not three octal digits: use 000 to 777, such as 744")]
pub struct BadMode(pub u16);

impl Mode {
    /// The owner may do everything, the others may look.
    pub const DEFAULT: Mode = Mode(0o744);

    /// Whether a principal may do `access` to a currency of this owner and group.
    /// As in Unix, the first class that fits decides.
    pub fn allows(self, owner: u32, group: u32, principal: &Principal, access: Access) -> bool {
        let shift = if principal.uid == 0 {
            return true;
        } else if principal.uid == owner {
            6
        } else if principal.gids.contains(&group) {
            3
        } else {
            0
        };
        let bit = match access {
            Access::Read => 4,
            Access::Fund => 2,
            Access::Issue => 1,
        };
        (self.0 >> shift) & bit != 0
    }
}

impl TryFrom<u16> for Mode {
    type Error = BadMode;

    fn try_from(bits: u16) -> Result<Self, BadMode> {
        if bits > 0o777 {
            Err(BadMode(bits))
        } else {
            Ok(Mode(bits))
        }
    }
}

impl From<Mode> for u16 {
    fn from(mode: Mode) -> u16 {
        mode.0
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:03o}", self.0)
    }
}
