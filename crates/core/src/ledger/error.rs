//! Why an operation is refused: one variant a rule, naming the input, the rule
//! and the fix.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::permission::{Access, Mode};
use crate::ids::{ClientId, CurrencyId, TicketId, TransferId};

/// Why an operation is refused; the ledger is unchanged.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum LedgerError {
    /// An identifier that names no currency, or one that was destroyed.
    #[error("there is no currency {0}: name one that exists")]
    UnknownCurrency(CurrencyId),
    /// An identifier that names no ticket, or one that was destroyed.
    #[error("there is no ticket {0}: name one that exists")]
    UnknownTicket(TicketId),
    /// An identifier that names no client, or one that was destroyed.
    #[error("there is no client {0}: name one that exists")]
    UnknownClient(ClientId),
    /// An identifier that names no transfer, or one that has ended.
    #[error("there is no transfer {0}: name one that is under way")]
    UnknownTransfer(TransferId),

    /// A name without a single byte.
    #[error("a name is empty: give one of at least one byte")]
    EmptyName,
    /// A name longer than [`super::Limits::name_bytes`].
    #[error("name {start:?}... has {bytes} bytes: shorten it to {limit} or fewer")]
    LongName {
        /// How it begins.
        start: String,
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: u32,
    },
    /// A name with a control character, such as a line feed.
    #[error("name {name:?} holds the control character {control:?}: leave it out")]
    ControlInName {
        /// The name.
        name: String,
        /// The first such character.
        control: char,
    },
    /// A name that another currency bears.
    #[error("currency '{name}' exists already as {id}: choose another name")]
    CurrencyExists {
        /// The name.
        name: String,
        /// The bearer.
        id: CurrencyId,
    },
    /// A name that another client bears.
    #[error("client '{name}' exists already as {id}: choose another name")]
    ClientExists {
        /// The name.
        name: String,
        /// The bearer.
        id: ClientId,
    },

    /// A face value of zero, or a share of zero in a transfer.
    #[error("an amount is zero: give one from 1 to {max}", max = u32::MAX)]
    ZeroAmount,
    /// A face value below what transfers have taken from the ticket.
    #[error(
        "ticket {ticket} cannot shrink to {amount} while {lent} of it are lent: end transfer {transfer} first"
    )]
    BelowLent {
        /// The ticket.
        ticket: TicketId,
        /// What was asked for.
        amount: u32,
        /// What transfers have taken.
        lent: u32,
        /// One of them.
        transfer: TransferId,
    },

    /// A ticket that would close a cycle of currencies.
    #[error("currency '{}' would back itself through {}: fund it with another currency", .path[0], Path(.path))]
    Cycle {
        /// The currency that the ticket would back, those between, the
        /// ticket's own, and the first again; each backs the next.
        path: Vec<String>,
    },
    /// A ticket that would make a chain longer than [`super::Limits::depth`].
    #[error(
        "tickets of '{currency}' backing '{target}' make a chain of {depth} currencies below the base: keep it to {limit}"
    )]
    TooDeep {
        /// The ticket's currency.
        currency: String,
        /// The currency that it would back.
        target: String,
        /// The length of the longest chain through both.
        depth: u32,
        /// The limit.
        limit: u32,
    },
    /// A ticket that would back the base currency.
    #[error("currency '{base}' is the base and cannot be backed: issue tickets in it instead")]
    BaseBacked {
        /// The base currency.
        base: String,
    },
    /// `rmcur` of the base currency.
    #[error("currency '{base}' is the base and cannot be destroyed: destroy what it funds instead")]
    BaseDestroyed {
        /// The base currency.
        base: String,
    },
    /// `rmcur` of a currency that has issued tickets.
    #[error("currency '{currency}' has issued {}: destroy those tickets first", Dependants(.dependants, *.others))]
    HasIssued {
        /// The currency.
        currency: String,
        /// Its first tickets, each with what it funds.
        dependants: Vec<String>,
        /// Whether there are more of them.
        others: bool,
    },
    /// `unfund` of a ticket that funds nothing.
    #[error("ticket {ticket} funds nothing: name one that does")]
    Idle {
        /// The ticket.
        ticket: TicketId,
    },
    /// Moving or destroying a ticket of which part is lent.
    #[error("ticket {ticket} has {lent} of its tickets lent: end transfer {transfer} first")]
    Lent {
        /// The ticket.
        ticket: TicketId,
        /// How much of it.
        lent: u32,
        /// One of the transfers that took it.
        transfer: TransferId,
    },
    /// Moving, changing or destroying a ticket that a transfer made.
    #[error(
        "ticket {ticket} is borrowed through transfer {transfer}: change {lender}, from which it was taken"
    )]
    Borrowed {
        /// The ticket.
        ticket: TicketId,
        /// The transfer that made it.
        transfer: TransferId,
        /// The ticket from which it was taken.
        lender: TicketId,
    },

    /// A transfer without receivers.
    #[error("a transfer from '{from}' names no receiver: name at least one")]
    NoReceivers {
        /// The giver.
        from: String,
    },
    /// A transfer to more than [`super::Limits::receivers`].
    #[error("a transfer from '{from}' names {receivers} receivers: name at most {limit}")]
    TooManyReceivers {
        /// The giver.
        from: String,
        /// How many there are.
        receivers: usize,
        /// The limit.
        limit: u32,
    },
    /// A transfer from a client to itself.
    #[error("client '{client}' would transfer tickets to itself: name another receiver")]
    SelfTransfer {
        /// Giver and receiver.
        client: String,
    },
    /// A transfer of nothing.
    #[error("client '{from}' holds no tickets that it could transfer: fund it first")]
    NothingHeld {
        /// The giver.
        from: String,
    },
    /// A partial transfer without a currency from a client that holds several.
    #[error(
        "client '{from}' holds tickets of '{first}' and '{second}': say which currency to transfer"
    )]
    AmbiguousCurrency {
        /// The giver.
        from: String,
        /// One of the currencies.
        first: String,
        /// Another.
        second: String,
    },
    /// A transfer of more than the giver holds in that currency.
    #[error(
        "client '{from}' holds {held} tickets of '{currency}', not {wanted}: transfer at most what it holds"
    )]
    NotHeld {
        /// The giver.
        from: String,
        /// The currency.
        currency: String,
        /// All that was to be transferred.
        wanted: u64,
        /// What the giver holds and has not lent.
        held: u64,
    },
    /// Lending on a ticket through more transfers than
    /// [`super::Limits::lending_depth`].
    #[error(
        "ticket {ticket} has come through {limit} transfers and cannot be lent on: transfer from its first holder"
    )]
    LentTooFar {
        /// The ticket.
        ticket: TicketId,
        /// The limit.
        limit: u32,
    },

    /// One currency more than [`super::Limits::currencies`].
    #[error("there are {limit} currencies, the most that this ledger holds: destroy one first")]
    CurrencyLimit {
        /// The limit.
        limit: u32,
    },
    /// More tickets than [`super::Limits::tickets`].
    #[error(
        "{wanted} more tickets pass the limit of {limit}, of which {used} are in use: destroy some first"
    )]
    TicketLimit {
        /// How many were to be made.
        wanted: usize,
        /// How many there are.
        used: u32,
        /// The limit.
        limit: u32,
    },
    /// One client more than [`super::Limits::clients`].
    #[error("there are {limit} clients, the most that this ledger holds: destroy one first")]
    ClientLimit {
        /// The limit.
        limit: u32,
    },
    /// One transfer more than [`super::Limits::transfers`].
    #[error(
        "there are {limit} transfers under way, the most that this ledger holds: end one first"
    )]
    TransferLimit {
        /// The limit.
        limit: u32,
    },

    /// A currency's mode refuses the asker.
    #[error(
        "user {uid} may not {access} currency '{currency}' of user {owner}, mode {mode}: ask its owner"
    )]
    Denied {
        /// The asker.
        uid: u32,
        /// What was wanted.
        access: Access,
        /// The currency.
        currency: String,
        /// Its owner.
        owner: u32,
        /// Its mode.
        mode: Mode,
    },
    /// Only a currency's owner may do this.
    #[error(
        "user {uid} may not protect or destroy currency '{currency}': ask its owner, user {owner}"
    )]
    NotCurrencyOwner {
        /// The asker.
        uid: u32,
        /// The currency.
        currency: String,
        /// Its owner.
        owner: u32,
    },
    /// Only a client's owner may do this.
    #[error(
        "user {uid} may not fund, limit, transfer from or destroy client '{client}': ask its owner, user {owner}"
    )]
    NotClientOwner {
        /// The asker.
        uid: u32,
        /// The client.
        client: String,
        /// Its owner.
        owner: u32,
    },
    /// Creating something in another user's name.
    #[error("user {uid} may not create '{name}' for user {owner}: name user {uid} as its owner")]
    ForeignOwner {
        /// The asker.
        uid: u32,
        /// What was to be created.
        name: String,
        /// Its owner to be.
        owner: u32,
    },
}

/// Currencies, each backing the next: `x -> y -> x`.
struct Path<'a>(&'a [String]);

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        separated(f, " -> ", self.0)
    }
}

/// Tickets that stand in the way, and whether there are others.
struct Dependants<'a>(&'a [String], bool);

impl fmt::Display for Dependants<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        separated(f, ", ", self.0)?;
        if self.1 {
            f.write_str(" and others")
        } else {
            Ok(())
        }
    }
}

fn separated(f: &mut fmt::Formatter<'_>, separator: &str, names: &[String]) -> fmt::Result {
    for (place, name) in names.iter().enumerate() {
        f.write_str(if place == 0 { "" } else { separator })?;
        f.write_str(name)?;
    }
    Ok(())
}
