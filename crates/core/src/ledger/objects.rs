//! What a ledger is made of (1994, Figure 2): currencies and tickets, and the
//! clients and transfers that the figure leaves to the kernel.
//!
//! ```text
//!            backing                 issued
//!   ticket ----------> currency <------------ ticket ----> another currency
//!   ticket ---------->  amount  <------------ ticket ----> a client
//! ```
//!
//! A ticket ([`super::ticket`]) stands in up to four lists at once, one a
//! [`super::list::Chain`]; the links are in the ticket, so linking and
//! unlinking is O(1).

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::cell::Cell;

use super::arena::Handle;
use super::list::List;
use super::permission::Mode;
use super::value::CachedValue;

/// A currency: backing tickets make it worth something, issued tickets share
/// what it is worth.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Currency {
    pub(super) name: Arc<str>,
    pub(super) owner: u32,
    pub(super) group: u32,
    pub(super) mode: Mode,
    /// The tickets of this denomination that back a currency; kept apart, so
    /// that a walk down the graph does not meet the others.
    pub(super) backs: List,
    /// All other tickets of this denomination: they fund clients or nothing.
    pub(super) others: List,
    /// The tickets that fund this currency; all of them are active if
    /// `active_amount` is above zero, else none. Empty for the base currency.
    pub(super) backing: Funding,
    /// Sum of `amount` over all tickets of this denomination.
    pub(super) issued_amount: u64,
    /// The same over those that are active.
    pub(super) active_amount: u64,
    /// Its value, if that is known. Never serialised.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(super) cached: Cell<CachedValue>,
    /// Whether it stands in [`super::changes::Changes`].
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(super) noted: bool,
}

impl Currency {
    /// One without funding and without tickets.
    pub(super) fn new(name: Arc<str>, owner: u32, group: u32, mode: Mode) -> Self {
        Self {
            name,
            owner,
            group,
            mode,
            backs: List::default(),
            others: List::default(),
            backing: Funding::default(),
            issued_amount: 0,
            active_amount: 0,
            cached: Cell::default(),
            noted: false,
        }
    }
}

/// The tickets that fund one holder.
///
/// A block, a wake or a reading needs only the currency and the amount of each
/// ticket. Most holders have one ticket, so those of a single ticket stand here
/// too. That halves the reads from memory on the way to the base currency, each
/// of which waits for the one before it.
#[derive(Clone, Copy, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Funding {
    pub(super) list: List,
    /// Currency and amount of the only ticket, where there is exactly one.
    pub(super) sole: Option<(Handle<Currency>, u32)>,
}

/// What a ticket funds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) enum Holder {
    Currency(Handle<Currency>),
    Client(Handle<Client>),
}

/// A client: competes while it is active, with the tickets that fund it.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Client {
    /// Boxed to be thin: most of a million clients have none.
    pub(super) name: Option<Box<Arc<str>>>,
    pub(super) owner: u32,
    pub(super) active: bool,
    /// Whether it stands in [`super::changes::Changes`].
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(super) noted: bool,
    /// The tickets that fund it, active exactly if it is.
    pub(super) funding: Funding,
}

impl Client {
    /// One without tickets that does not compete.
    pub(super) fn new(name: Option<Arc<str>>, owner: u32) -> Self {
        Self {
            name: name.map(Box::new),
            owner,
            active: false,
            noted: false,
            funding: Funding::default(),
        }
    }
}

/// A transfer under way; it ends with the last of its pieces.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Transfer {
    pub(super) from: Handle<Client>,
    /// The tickets it made, each carved out of one that funds `from`. Never
    /// empty.
    pub(super) pieces: List,
}
