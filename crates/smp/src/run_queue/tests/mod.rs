//! Random histories of the run queues.

mod balancing;
mod cost;
mod equals;
mod equivalence;
mod goodness;
mod interleaved;
mod machine;
mod offers;
mod placing;
mod pools;
mod reference;
mod refusals;

use proptest::test_runner::{Config, RngSeed};

/// Random histories that are the same each time.
fn seeded(seed: u64) -> Config {
    Config {
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(seed),
        ..Config::default()
    }
}
