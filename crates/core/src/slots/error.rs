//! Why a call is refused: one variant a rule, naming the input, the rule and the fix.

use alloc::vec::Vec;

use super::claim::{Account, VECTOR};
use super::geometry::{CELLS, COLUMNS, Cell, Tick};
use super::level::Level;

/// Why a call is refused; table and bank are unchanged.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SlotError {
    /// A table without cells, or one that is too large.
    #[error("a table of {rows} x {columns}: take 1 to {COLUMNS} columns and at most {CELLS} cells")]
    Size {
        /// CPUs.
        rows: u32,
        /// Slots of a period.
        columns: u32,
    },
    /// A slot that is too short or too long.
    #[error("a slot of {0} ns: take 1 to 100 ms")]
    SlotLength(u64),
    /// A cell outside the table.
    #[error("there is no slot {0}: name one of the table")]
    Outside(Cell),
    /// Too many requests in one call.
    #[error("{0} requests in one call: send at most {VECTOR}")]
    LongVector(usize),
    /// A table that has changed since the caller looked.
    #[error("the table is of generation {now}, not {expected}: look again")]
    Changed {
        /// The generation that the caller saw.
        expected: u64,
        /// The present one.
        now: u64,
    },
    /// An expiry before the claim could run.
    #[error(
        "the claim of slot {cell} would expire at tick {expires}, and the slot first comes up for \
         it at tick {first}: name a later end"
    )]
    Past {
        /// The slot.
        cell: Cell,
        /// What was asked for.
        expires: Tick,
        /// The slot's first tick at which the claim would be in force.
        first: Tick,
    },
    /// An expiry that a word cannot hold.
    #[error("the expiry at tick {0} is too far away: leave it out")]
    FarExpiry(Tick),
    /// A slot of an owner that does not give way.
    #[error("slot {cell} has a claim of level {level} that does not give way: name another slot")]
    Taken {
        /// The slot.
        cell: Cell,
        /// The level of its claim.
        level: Level,
    },
    /// A slot that a reservation keeps unclaimed.
    #[error("slot {0} is reserved: name another slot")]
    Reserved(Cell),
    /// No token left.
    #[error("no token of level {level} left in {account}: free a slot or ask for tokens")]
    NoToken {
        /// The account.
        account: Account,
        /// The level.
        level: Level,
    },
    /// A thread in two rows at once.
    #[error("the thread already runs in column {0}: claim each column once")]
    TwiceInColumn(u32),
    /// Too many schedulees.
    #[error("there are {0} schedulees already: free the slots of one")]
    ManySchedulees(usize),
    /// Too many accounts.
    #[error("there are {0} accounts already: wait until a client ends")]
    ManyAccounts(usize),
    /// Too many donations.
    #[error("there are {0} donations already: wait until a client ends")]
    ManyDonations(usize),
    /// A call for the privileged only.
    #[error("only root and the daemon's owner may do this: ask one of them")]
    NotPrivileged,
    /// Tokens below zero, or too many.
    #[error("{account} would have {count} tokens: stay between 0 and 2^32 - 1")]
    TokenCount {
        /// The account.
        account: Account,
        /// The tokens that it would have.
        count: i128,
    },
    /// A donation to oneself.
    #[error("{0} is donor and recipient: name another recipient")]
    OwnDonation(Account),
    /// A fraction above one, or with a denominator that the table has not got.
    #[error("{numerator} of {denominator} slots: take at most all of at most {columns}")]
    Fraction {
        /// Slots to keep unclaimed.
        numerator: u32,
        /// Slots of a window.
        denominator: u32,
        /// Slots of the table.
        columns: u32,
    },
    /// A reservation against claims of the system.
    #[error("claims of level system are in the way, {} of them from slot {} on: free them first", .0.len(), .0[0])]
    SystemClaims(Vec<Cell>),
}
