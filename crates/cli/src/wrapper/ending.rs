//! The exit code or fatal signal of a command, passed on to our parent.

use std::process::ExitCode;

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, raise, sigaction};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// How a command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// The command exited with this code.
    Exited(u8),
    Killed(Signal),
}

impl Ending {
    /// Ends this process in the same way, so our parent sees what it would see
    /// of the command. If the signal does not end this process, returns 128
    /// plus its number, as shells do.
    pub fn pass_on(self) -> ExitCode {
        match self {
            Ending::Exited(code) => ExitCode::from(code),
            Ending::Killed(signal) => {
                // Our core dump would overwrite the command's.
                let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
                let by_default =
                    SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
                // SAFETY: the default action installs no handler.
                let _ = unsafe { sigaction(signal, &by_default) };
                let set: SigSet = [signal].into_iter().collect();
                let _ = raise(signal).and_then(|()| set.thread_unblock());
                ExitCode::from(128_u8.saturating_add(signal as u8))
            }
        }
    }
}
