//! The C library of slot scheduling; `include/prorata_slots.h` is its documentation.
//!
//! Each function decodes its arguments, calls `prorata-slots`, and leaves the reason of a failure to
//! [`prorata_slots_error`]. No function unwinds into C. A program in C tests them, with a daemon: see the
//! tests of the command line.

mod abi;
mod failure;

pub use abi::*;
pub use failure::prorata_slots_error;
