//! The daemon: one ledger, one engine, journal, socket, permissions.

mod control;
mod daemon;
mod decode;
mod engine;
mod home;
mod host;
mod journal;
mod kernel_engine;
mod log;
mod peer;
mod policy;
mod process;
mod refusal;
mod report;
mod restore;
mod roots;
mod server;
mod session;
mod slots;
mod state;
mod state_directory;
#[cfg(any(test, fuzzing))]
#[cfg_attr(fuzzing, allow(dead_code))]
mod testing;
#[cfg(test)]
mod tests;
mod user_engine;
mod users;

pub use daemon::{DaemonError, DaemonOptions, MakeEngine, daemon_main, serve};
pub use decode::name_of_program;
pub use engine::{ClientAccount, Engine, EngineError, EngineSetup, EngineStatus};
pub use journal::JournalError;
pub use kernel_engine::{KeptScheduler, KernelOptions, kernel_engine, kernel_engine_over};
pub use process::ProcessId;
/// How the user engine keeps losers from running.
pub use prorata_user::Mechanism;
pub use refusal::USERS_NEED_ROOT;
pub use server::Timing;
pub use user_engine::user_engine;

/// What the fuzz target calls.
#[cfg(fuzzing)]
pub mod fuzzing {
    use crate::testing::conversation::{Conversation, askers, frame};
    use crate::testing::requests::request;

    /// Sends requests to a daemon with a few clients and currencies. Each line
    /// of `bytes` is a request; its first byte selects the asker.
    pub fn converse(bytes: &[u8]) {
        let mut conversation = Conversation::new(0);
        for number in 0..60 {
            let request = frame(request(&mut conversation.random));
            conversation.ask(&askers()[number % 3], &request, "to begin with");
        }
        for line in bytes.split(|&byte| byte == b'\n') {
            if let Some((asker, request)) = line.split_first() {
                let asker = &askers()[usize::from(*asker) % 3];
                conversation.ask(asker, request, &String::from_utf8_lossy(request));
            }
        }
        conversation.check_agreement("in the end");
    }
}
