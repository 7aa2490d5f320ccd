//! Run queues of many CPUs, driven without contention: random histories.

mod balancing;
mod baseline;
mod cost;
mod equals;
mod equivalence;
mod goodness;
mod interleaved;
mod limits;
mod machine;
mod offers;
mod placing;
mod pools;
mod real_time;
mod reference;
mod refusals;
mod shares;
mod turns;
mod wakes;
mod weights;

use proptest::test_runner::{Config, RngSeed};

/// Random histories that are the same each time.
fn seeded(seed: u64) -> Config {
    Config {
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(seed),
        ..Config::default()
    }
}
