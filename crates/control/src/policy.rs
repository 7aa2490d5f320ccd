//! The policies that a daemon can run.

use std::hash::{BuildHasher, Hasher, RandomState};

use prorata_core::policy::lottery::ClassLottery;
use prorata_core::policy::{HierarchicalStride, Policy, Race, Stride};
use prorata_core::rng::{SeedableRng, Xoshiro256PlusPlus};
use prorata_protocol::PolicyKind;

/// A policy in which nobody competes yet. Lotteries are seeded at random.
pub(crate) fn new(kind: PolicyKind) -> Box<dyn Policy + Send> {
    match kind {
        PolicyKind::Stride => Box::new(Stride::new()),
        PolicyKind::Lottery => Box::new(Race::new(generator())),
        PolicyKind::HierarchicalStride => Box::new(HierarchicalStride::new()),
        PolicyKind::ClassLottery => Box::new(ClassLottery::new(generator())),
    }
}

/// The standard library seeds its hash tables from the system's randomness.
fn generator() -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(RandomState::new().build_hasher().finish())
}
