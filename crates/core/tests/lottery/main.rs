//! The lotteries, seen from outside (1994).
//!
//! Every random choice here comes from a fixed seed. Statistical tests refuse
//! at p = 1e-6, so that no seed in the lists fails by chance, and use enough
//! draws that a weight wrong by 2 % is refused (see `distribution`).

mod bookkeeping;
mod compensation;
mod distribution;
mod every_lottery;
mod exact;
mod generators;
mod history;
mod inverse;
mod list_search;
mod response;
mod statistics;
