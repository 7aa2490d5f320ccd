//! Processes for tests.

use std::process::{Child, Command};

/// A shell script that runs, killed when it goes out of scope.
pub struct Script(pub Child);

impl Script {
    pub fn start(script: &str) -> Self {
        // By exec, so that to kill the shell is to kill what it runs.
        Self(Command::new("sh").args(["-c", script]).spawn().unwrap())
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
