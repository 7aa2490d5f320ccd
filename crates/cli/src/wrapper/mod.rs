//! Runs a command as its parent, with the job control of a shell.

pub mod ending;
pub mod gate;
pub mod keeper;
pub mod mechanism;
pub mod signals;
pub mod supervise;
