//! The pure heart of prorata: tickets, currencies, and the policies that turn
//! them into decisions.
//!
//! Nothing here reads a clock, opens a file, starts a thread or keeps global
//! state. Time and randomness come in as arguments; the same inputs give the
//! same outputs on every machine. The crate is `no_std` and needs only `alloc`.
//!
//! Papers cited throughout, by year:
//! * 1994: Waldspurger and Weihl, *Lottery Scheduling*, OSDI.
//! * 1995: Waldspurger and Weihl, *Stride Scheduling*, MIT/LCS/TM-528.
//! * 1999: Petrou, Milford and Gibson, *Implementing Lottery Scheduling*, USENIX.
//! * 2001: Kravetz, Franke, Nagar and Ravindran, *Enhancing Linux Scheduler Scalability*, IBM.
//! * 2005: Hall, *Slot Scheduling*, thesis, University of Texas at Austin.
#![no_std]

extern crate alloc;

pub mod affinity;
pub mod allowance;
pub mod capacity;
pub mod choice;
pub mod cpu_limit;
pub mod cpu_list;
pub mod dispatcher;
pub mod entitlement;
pub mod feasible;
pub mod hybrid;
pub mod ids;
pub mod ledger;
pub mod matching;
pub mod max_min;
pub mod placement;
pub mod policy;
pub mod prefetch;
pub mod rng;
mod saturation;
pub mod slots;
