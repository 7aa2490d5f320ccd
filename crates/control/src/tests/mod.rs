//! Tests of the daemon as a whole, on a made-up machine.

mod fuzz;
