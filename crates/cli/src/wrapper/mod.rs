//! Running a command as its parent, so that it behaves as under a shell.

pub mod ending;
pub mod gate;
pub mod keeper;
pub mod signals;
pub mod supervise;
