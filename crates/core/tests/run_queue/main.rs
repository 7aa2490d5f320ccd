//! Run queues of many CPUs, driven without contention: random histories.

mod baseline;
mod cost;
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
mod shares;
mod turns;
mod weights;
