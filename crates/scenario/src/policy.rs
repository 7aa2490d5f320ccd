//! Policies of a run.

use prorata_core::policy::{Policy, PolicyName};

use crate::stream::{Purpose, split};

/// A policy without clients. Its lots come from stream `index` of the seed.
pub fn policy(name: PolicyName, seed: u64, index: u64) -> Box<dyn Policy + Send> {
    name.policy(split(seed, Purpose::Policy, index))
}
