//! Tests of the binary through its command line.

mod choosing;
mod crashes;
mod demo;
mod demo_slots;
mod events;
mod job_control;
mod killing;
mod limits;
mod load;
mod managing;
mod reproduce;
mod sessions;
mod sim;
mod sim_on_processes;
mod slots;
mod slots_offline;
mod starting;
mod support;
mod trouble;
mod turns;
mod usage;
mod users;
mod views;
mod wrapper;
