//! Slot scheduling (2005): a periodic table of CPUs by slots that programs claim with tokens.
//!
//! [`timetable::Timetable`] is the door. The caller passes the time; nothing here reads a clock.

pub mod account;
mod administering;
pub mod admission;
pub mod bank;
pub mod check;
pub mod claim;
mod claiming;
pub mod error;
mod expiry;
pub mod geometry;
pub mod image;
pub mod level;
pub mod notice;
mod now;
pub mod place;
pub mod reservation;
mod row_set;
mod schedulees;
pub mod share;
pub mod staging;
pub mod table;
pub mod timetable;
pub mod word;

pub use administering::Donated;
pub use claiming::Mode;
pub use schedulees::SCHEDULEES;
