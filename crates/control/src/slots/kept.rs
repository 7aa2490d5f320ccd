//! What the journal keeps of an open table.

use prorata_core::slots::admission::{Grant, Granted, Policy};
use prorata_core::slots::claim::Account;
use prorata_core::slots::image::{Deed, Image};
use serde::{Deserialize, Serialize};

/// An open table as the next daemon of this boot finds it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct KeptTable {
    /// The CPU of each row.
    pub cpus: Vec<u32>,
    pub image: Image,
    /// The classes of clients that get tokens unasked.
    #[serde(default)]
    pub policy: Policy,
    /// What was given under that policy.
    #[serde(default)]
    granted: Vec<Grant>,
    /// Whether the table ends with the connection that opened it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
}

impl KeptTable {
    /// A table without policy.
    pub fn new(cpus: Vec<u32>, image: Image) -> Self {
        Self {
            cpus,
            image,
            policy: Policy::default(),
            granted: Vec::new(),
            held: false,
        }
    }

    pub fn apply(&mut self, deeds: &[Deed]) {
        deeds.iter().for_each(|deed| self.image.apply(deed));
    }

    /// Another policy: what was given under the former one does not count.
    pub fn admit(&mut self, policy: &Policy) {
        self.policy.clone_from(policy);
        self.granted.clear();
    }

    /// Grants of the policy in force.
    pub fn grant(&mut self, grants: &[Grant]) {
        self.granted.extend(grants);
    }

    /// A client has ended: others of its class may get as much, unless it gave tokens away, which go
    /// on without it.
    pub fn forget(&mut self, account: Account) {
        if !self.image.gave(account) {
            self.granted.retain(|grant| grant.account != account);
        }
    }

    /// What was given, to be decided with.
    pub fn granted(&self) -> Granted {
        let mut granted = Granted::default();
        self.granted.iter().for_each(|grant| granted.note(grant));
        granted
    }
}
