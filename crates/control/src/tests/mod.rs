//! Tests of the daemon as a whole.

mod crash;
mod engines;
mod fuzz;
mod harness;
mod life;
mod requests;
mod restart;
mod server;
mod users;
