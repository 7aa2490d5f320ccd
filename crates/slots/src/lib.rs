//! Slot scheduling for programs: look at the public timetable, claim slots, and have a library
//! scheduler answer when they are lost (2005, 2.3 and 2.4.2).
//!
//! ```no_run
//! use prorata_slots::{Claimant, Level, Periodic, Runs, Slots};
//!
//! # fn main() -> Result<(), prorata_slots::SlotsError> {
//! let slots = Slots::open(None)?;
//! // 4 ms of every 20 ms for this process, which is a client of prorata already.
//! let scheduler = Periodic::of_time(slots.table().geometry(), 4_000_000, 20_000_000)?;
//! let me = Runs::Process(std::process::id());
//! let mut claimant = Claimant::begin(slots, scheduler, me, Level::BestEffort)?;
//! loop {
//!     claimant.answer_next()?;
//! }
//! # }
//! ```
//!
//! The crate links no engine, starts no thread and needs no runtime. A program that only looks uses
//! [`Slots::table`] and pays for no call.

mod claimant;
mod error;
mod look;
pub mod scheduler;
mod slots;

pub use claimant::Claimant;
pub use error::SlotsError;
pub use look::next_slot;
pub use prorata_bulletin::{PublicClaim, Reader, Snapshot, now_ns};
pub use prorata_core::slots::claim::Schedulee;
pub use prorata_core::slots::geometry::{Cell, Geometry, Tick};
pub use prorata_core::slots::level::Level;
pub use prorata_core::slots::place::View;
pub use prorata_protocol::SlotsWatch;
pub use prorata_protocol::slots::{
    AccountName, Amount, Ended, Fraction, LevelReport, Runs, SlotRequest, SlotsNews, TokensReport,
};
pub use scheduler::{BestEffort, CacheSensitive, EventDriven, Gang, Periodic, Reply, Scheduler};
pub use slots::{Claimed, Slots};
