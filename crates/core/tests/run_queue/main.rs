//! Run queues of many CPUs, driven without contention: random histories.

mod equivalence;
mod goodness;
mod machine;
mod reference;
