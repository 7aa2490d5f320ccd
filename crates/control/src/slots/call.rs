//! A request about the timetable, decoded: names are resolved, and the asker is known.

use prorata_core::slots::Mode;
use prorata_core::slots::admission::Policy;
use prorata_core::slots::bank::Amount;
use prorata_core::slots::claim::{Account, Caller, Schedulee};
use prorata_core::slots::geometry::Cell;
use prorata_core::slots::level::Level;
use prorata_core::slots::reservation::{Onset, Reservation};

/// A call and its caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SlotsCall {
    pub caller: Caller,
    pub call: Call,
    /// Base tickets behind the caller's user, which weigh its claims by default.
    pub funding: u32,
    /// The groups of the caller's user.
    pub groups: Vec<u32>,
    /// The name of the caller's client.
    pub client_name: Option<String>,
}

/// One slot that is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Wanted {
    pub cell: Cell,
    pub schedulee: Schedulee,
    pub level: Level,
    /// How long from now.
    pub expires_ns: Option<u64>,
}

/// What is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Call {
    Open {
        columns: u32,
        slot_ns: u64,
        reserve: Reservation,
        /// Whether the table ends with the caller's connection.
        hold: bool,
    },
    Close,
    Status,
    Claim {
        wanted: Vec<Wanted>,
        mode: Mode,
        generation: Option<u64>,
    },
    Free {
        cells: Vec<Cell>,
    },
    /// Of an account, or of the one that pays for the caller.
    Tokens {
        account: Option<Account>,
    },
    SetTokens {
        account: Account,
        level: Level,
        amount: Amount,
        weight: Option<u32>,
    },
    Donate {
        to: Account,
        level: Level,
        count: u32,
    },
    Reserve {
        row: Option<u32>,
        reservation: Reservation,
        onset: Onset,
    },
    Admit {
        policy: Policy,
    },
    Watch {
        freed: bool,
    },
}

/// What ends earlier is not journaled.
pub(crate) const LASTS_NS: u64 = 10_000_000_000;

impl Call {
    /// Whether the journal has to know before anything changes.
    pub fn may_last(&self) -> bool {
        match self {
            Call::Claim { wanted, .. } => wanted
                .iter()
                .any(|wanted| wanted.expires_ns.is_none_or(|ns| ns >= LASTS_NS)),
            Call::Free { .. }
            | Call::SetTokens { .. }
            | Call::Donate { .. }
            | Call::Reserve { .. } => true,
            Call::Open { .. }
            | Call::Close
            | Call::Status
            | Call::Tokens { .. }
            | Call::Admit { .. }
            | Call::Watch { .. } => false,
        }
    }
}
