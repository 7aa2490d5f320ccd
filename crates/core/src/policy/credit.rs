//! The bound on a sleeper's credit: one parameter with one meaning.
//!
//! A client that sleeps, or waits while others' turns last, is owed service.
//! The bound says how many quanta of service the client can be owed when it
//! comes back; what is owed beyond the bound is forgotten. A scheduler chooses
//! between two values:
//!
//! * Clients keep their credit ([`KEPT_CREDIT_QUANTA`]). This is the paper's
//!   rule (1995, 2.2): a client neither gains nor loses by sleeping. The bound
//!   only keeps passes comparable, so it is counted for each ticket. Policies
//!   that share a machine among the clients they were given use this value.
//! * Credit is cut to a few quanta ([`CUT_CREDIT_QUANTA`]). Where every task of
//!   a system competes, many tasks wake, run briefly and sleep again. If such a
//!   task could spend all its credit at once, no other task would run for long.

use super::stride_service::{LONGEST_WAIT, STRIDE1};

/// The bound, for each ticket, where clients keep their credit:
/// [`LONGEST_WAIT`] in quanta.
pub const KEPT_CREDIT_QUANTA: u64 = LONGEST_WAIT as u64 / STRIDE1;

/// The bound where credit is cut, in quanta of the client with the longest.
pub const CUT_CREDIT_QUANTA: u64 = 2;
