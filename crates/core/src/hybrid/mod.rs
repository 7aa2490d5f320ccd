//! The rules of hybrid lottery scheduling (1999): integers only, for any policy.
//!
//! ```text
//!   value, values of all competitors --due--> rate
//!   rate, time passed, use --window--> received and deserved of the last ten seconds
//!                          --lead----> how far use is ahead of what is due
//!   received, deserved --boost--> fraction f, boost (1/f)^4
//!   kind of sleep, f, lead --early--> a wake before all others, and in which order
//!   nice value --nice--> tickets, and bounds of base tickets
//! ```
//!
//! In the paper a boost multiplies tickets. A pass cannot be multiplied: a client
//! whose pass is always in front owes nothing and still starves the others. So here
//! a client that received less than it deserved is *early*: it runs before the policy
//! chooses, for as long as its lead is within a bound. Its pass moves by use as ever.
//!
//! Each rule stands a second time in the kernel engine's BPF, and a test compares the
//! two on random inputs.

mod accounts;
pub mod boost;
mod competition;
pub mod due;
pub mod early;
pub mod lead;
mod mechanisms;
pub mod nice;
pub mod window;

pub(crate) use accounts::Accounts;
pub use accounts::{Balance, Outlook};
pub use boost::{BOOST_ONE, FRACTION_ONE, MAX_BOOST, boost, fraction};
pub use due::{CPU, DueRate, due_rate};
pub use early::{EarlyRank, WakeClass, is_early};
pub use lead::{LEAD_BOUND_NS, Lead, lead_bound_ns};
pub use mechanisms::Mechanisms;
pub use nice::{FACTOR_ONE, Nice, NiceLaw, NiceMean};
pub use window::UseWindow;
