//! One scheduler for several engines, one after another. A load is some hundred
//! thousand instructions of checks: seconds on an emulated machine.

use std::sync::Arc;
use std::time::Instant;

use prorata_kernel::KernelError;
use prorata_kernel::scheduler::{Options, Scheduler};

use super::scheduler::InKernel;
use super::{UNLOADING, load};

/// A scheduler that stays loaded from one engine to the next. Dropping this and
/// the last engine over it unloads it.
pub struct KeptScheduler(Arc<Scheduler>);

impl KeptScheduler {
    /// Loads it.
    ///
    /// # Errors
    ///
    /// As [`Scheduler::load`].
    pub fn load(options: &Options) -> Result<Self, KernelError> {
        Ok(Self(Arc::new(load(options, false)?)))
    }

    /// The scheduler as if newly loaded, for an engine. It forgets what the
    /// last one left, whose tasks may still be ending.
    pub(super) fn lend(&self, options: &Options) -> Result<Box<dyn InKernel>, KernelError> {
        self.0.close_timetable()?;
        let deadline = Instant::now() + UNLOADING;
        while let Err(error) = self.0.forget_all() {
            if Instant::now() > deadline {
                return Err(error);
            }
            std::thread::sleep(UNLOADING / 100);
        }
        self.0.set_policy(options.policy)?;
        self.0.set_quantum_ns(options.quantum_ns)?;
        Ok(Box::new(Arc::clone(&self.0)))
    }
}
