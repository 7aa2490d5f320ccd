//! Processes for tests.

use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held while a child is on its way from fork to exec.
static FORKS: Mutex<()> = Mutex::new(());

/// No script starts meanwhile. Until its exec, the child would hold copies of all descriptors, so a
/// lock or a listener would outlive its end in another test.
pub fn without_forks() -> MutexGuard<'static, ()> {
    FORKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A shell script that runs, killed when it goes out of scope.
pub struct Script(pub Child);

impl Script {
    pub fn start(script: &str) -> Self {
        let _forks = without_forks();
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
