//! Everything that can be asked of a ledger from outside, as data.
//!
//! An [`Operation`] is what travels on the wire and what the journal keeps.
//! [`super::Ledger::check`] decodes one against the present state and the
//! asker's permissions; [`super::Ledger::apply`] then cannot fail. Activation
//! and deactivation are not operations: they follow from what the clients do,
//! happen at every block and wake, and are never refused.

use alloc::string::String;
use alloc::vec::Vec;

use super::permission::Mode;
use crate::cpu_limit::CpuLimit;
use crate::ids::{ClientId, CurrencyId, TicketId, TransferId};

/// What a ticket can fund: a currency that it backs, or a client.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Target {
    /// The ticket backs this currency.
    Currency(CurrencyId),
    /// The ticket competes for this client.
    Client(ClientId),
}

/// How much of the giver's tickets a transfer moves.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Portion {
    /// Everything that the giver holds, in every currency; several receivers
    /// share equally, the first ones getting the odd tickets.
    Whole(Vec<Target>),
    /// So many tickets to each receiver, all of one currency.
    Part {
        /// Which of the giver's currencies; `None` if it holds only one.
        currency: Option<CurrencyId>,
        /// Receivers and their tickets; each amount is above zero.
        shares: Vec<(Target, u32)>,
    },
}

/// One request to change a ledger. Amounts are face values, from 1 to
/// 2^32 - 1, in the ticket's own currency.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Operation {
    /// `mkcur`: a currency without funding and without tickets.
    CreateCurrency {
        /// Unique among currencies.
        name: String,
        /// The user of the mode's first digit.
        owner: u32,
        /// The group of the mode's second digit.
        group: u32,
        /// The users that may read, fund and issue.
        mode: Mode,
    },
    /// `rmcur`: refused, naming them, while it has issued tickets. Its
    /// backing tickets are unfunded; those transferred to it go back.
    DestroyCurrency {
        /// Which one; never the base currency.
        currency: CurrencyId,
    },
    /// Changes a currency's owner, group and mode.
    Protect {
        /// Which one.
        currency: CurrencyId,
        /// New owner.
        owner: u32,
        /// New group.
        group: u32,
        /// New mode.
        mode: Mode,
    },
    /// `mktkt`: issues a ticket, funding `target` with it at once if given.
    Issue {
        /// Denomination.
        currency: CurrencyId,
        /// Face value.
        amount: u32,
        /// What it funds.
        target: Option<Target>,
    },
    /// `rmtkt`: refused while part of it is lent by a transfer.
    DestroyTicket {
        /// Which one.
        ticket: TicketId,
    },
    /// Inflation and deflation (1994, 3.2): a new face value for a ticket.
    SetAmount {
        /// Which one.
        ticket: TicketId,
        /// New face value, what is lent included; not below what is lent.
        amount: u32,
    },
    /// `fund`: lets an idle ticket fund something, or moves one.
    Fund {
        /// Which one.
        ticket: TicketId,
        /// What it funds from now on.
        target: Target,
    },
    /// `unfund`: the ticket stays issued and funds nothing.
    Unfund {
        /// Which one.
        ticket: TicketId,
    },
    /// A new client without tickets, not active.
    CreateClient {
        /// Unique among clients. One without is known by its identifier alone;
        /// that spares memory where there are very many.
        name: Option<String>,
        /// User to whom it belongs.
        owner: u32,
    },
    /// The client gets at most so much CPU time from now on, or as much as its
    /// tickets are worth.
    LimitClient {
        /// Which one.
        client: ClientId,
        /// Its limit; `None` ends it.
        max: Option<CpuLimit>,
    },
    /// The client is gone. Transfers it gave or received end; the tickets
    /// that fund it are destroyed.
    DestroyClient {
        /// Which one.
        client: ClientId,
    },
    /// Moves tickets from a client until the transfer ends (1994, 3.1).
    Transfer {
        /// Giver.
        from: ClientId,
        /// How much, to whom.
        portion: Portion,
    },
    /// Undoes a transfer exactly.
    EndTransfer {
        /// Which one.
        transfer: TransferId,
    },
}

/// What an applied operation brought into being.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Outcome {
    /// Nothing new.
    Done,
    /// A currency.
    Currency(CurrencyId),
    /// A ticket.
    Ticket(TicketId),
    /// A client.
    Client(ClientId),
    /// A transfer.
    Transfer(TransferId),
}
