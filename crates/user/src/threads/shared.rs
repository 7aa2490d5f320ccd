//! The threads of a process, as two threads of the engine share them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Threads;

/// The threads of a process, as decision thread and keeper share them. Both hold the lock for some
/// system calls.
#[derive(Clone, Debug)]
pub(crate) struct SharedThreads(Arc<Mutex<Threads>>);

impl SharedThreads {
    pub(crate) fn new(threads: Threads) -> Self {
        Self(Arc::new(Mutex::new(threads)))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Threads> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether both are of one process.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
