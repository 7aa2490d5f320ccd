//! The binary as its users meet it.

mod job_control;
mod support;
mod usage;
mod wrapper;
