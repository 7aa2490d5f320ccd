//! How large a ledger may grow.

/// How much of everything a ledger holds at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Limits {
    /// Currencies, the base currency included.
    pub currencies: u32,
    /// Tickets, funding or idle, those made by transfers included.
    pub tickets: u32,
    /// Clients.
    pub clients: u32,
    /// Transfers under way.
    pub transfers: u32,
    /// Longest chain of currencies below the base currency; from 1 to
    /// [`Limits::MAX_DEPTH`], a ledger takes the nearest.
    pub depth: u32,
    /// Longest chain of transfers through which one ticket is lent on.
    pub lending_depth: u32,
    /// Receivers of one transfer.
    pub receivers: u32,
    /// Bytes in a name.
    pub name_bytes: u32,
}

impl Limits {
    /// Bounds [`Limits::depth`], and with it the stack that a ledger needs.
    pub const MAX_DEPTH: u32 = 256;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            currencies: 1 << 16,
            tickets: 1 << 20,
            clients: 1 << 20,
            transfers: 1 << 16,
            depth: 16,
            lending_depth: 16,
            receivers: 64,
            name_bytes: 64,
        }
    }
}
