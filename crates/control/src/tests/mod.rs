//! Tests of the daemon as a whole.

mod crash;
mod engines;
mod fuzz;
mod harness;
mod held_tables;
mod life;
mod requests;
mod restart;
mod server;
mod users;
