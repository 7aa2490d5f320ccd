//! What an account has of one level (2005, Figure 2.4: `TokenInfo`).

use super::share::Share;

/// Tokens of one level.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Tokens {
    /// Tokens free to spend.
    pub count: u64,
    /// Tokens in claims.
    pub spent: u64,
    /// The weight of the account's claims against others of the level.
    pub weight: u32,
}

impl Tokens {
    /// What the rule of fair shares needs.
    pub fn share(&self) -> Share {
        Share {
            claims: self.spent,
            weight: self.weight,
        }
    }
}
