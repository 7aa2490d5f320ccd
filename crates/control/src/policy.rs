//! The daemon's policies.

use std::hash::{BuildHasher, Hasher, RandomState};

use prorata_core::policy::{Policy, PolicyName};

/// A policy without clients. A lottery's seed is random: the standard library takes the
/// seeds of its hash tables from the system's randomness.
pub(crate) fn new(name: PolicyName) -> Box<dyn Policy + Send> {
    name.policy(RandomState::new().build_hasher().finish())
}
