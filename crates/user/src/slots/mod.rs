//! Slot scheduling (2005): the engine keeps to the public timetable.
//!
//! ```text
//!   timetable ----> keepers: at each boundary one look-up a row, then
//!   (mapped)   |    raise whose slot begins, lower whose slot has ended
//!              |                                     ^
//!              +--> herald: schedulees, owners ---> decision thread: their
//!                                                   threads, by name and start
//! ```
//!
//! In an unclaimed slot, and in that of a schedulee that is not runnable, Linux runs what else there
//! is: what the decision thread let run.

mod cast;
mod herald;
mod histogram;
mod keeper;
mod lead;
mod rows;
mod tally;
mod watch;

pub(crate) use cast::Director;
pub(crate) use keeper::{Keepers, Play};
pub use tally::{RowReport, SlotReport};

/// How a schedulee gets the CPU of its slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlotMechanism {
    /// It is bound to the CPU and has a real-time priority.
    Raise,
    /// It is bound to the CPU, and other clients that may use the CPU are in `SCHED_IDLE`.
    Lower,
    /// It is bound to the CPU, and other clients that may use the CPU are stopped.
    Stop,
}
