//! How a command ended, and ending in the same way.

use std::process::ExitCode;

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, raise, sigaction};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// How a command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// With this code.
    Exited(u8),
    /// By this signal.
    Killed(Signal),
}

impl Ending {
    /// Ends this process in the same way, so that our parent cannot tell us
    /// from the command. A signal that does not end us after all becomes the
    /// code by which shells write it.
    pub fn pass_on(self) -> ExitCode {
        match self {
            Ending::Exited(code) => ExitCode::from(code),
            Ending::Killed(signal) => {
                // The command has dumped its core if it wanted to; ours would
                // overwrite it.
                let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
                let by_default =
                    SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
                // SAFETY: the default action is no handler, so none can be
                // called at a bad moment.
                let _ = unsafe { sigaction(signal, &by_default) };
                let set: SigSet = [signal].into_iter().collect();
                let _ = raise(signal).and_then(|()| set.thread_unblock());
                ExitCode::from(128_u8.saturating_add(signal as u8))
            }
        }
    }
}
