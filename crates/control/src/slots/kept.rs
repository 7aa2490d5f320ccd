//! What the journal keeps of an open table.

use prorata_core::slots::image::{Deed, Image};
use serde::{Deserialize, Serialize};

/// An open table as the next daemon of this boot finds it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct KeptTable {
    /// The CPU of each row.
    pub cpus: Vec<u32>,
    pub image: Image,
}

impl KeptTable {
    pub fn apply(&mut self, deeds: &[Deed]) {
        deeds.iter().for_each(|deed| self.image.apply(deed));
    }
}
