//! Tells once how clients are held down while others run.
//!
//! Each mechanism is told to a terminal, and only the first time since the user's run-time
//! directory is there: a login or a boot makes it anew. A file in it lists what was told. Output
//! that does not go to a terminal stays as without prorata.

use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use prorata_protocol::{Connection, DaemonPaths};

use crate::caller::{self, Caller};
use crate::output;

/// The list, in the user's run-time directory.
const TOLD: &str = "told";

/// Tells the mechanism of a daemon that has just registered a client, unless it was told. A daemon
/// that does not answer is no reason to disturb the command.
pub fn tell_once(caller: &Caller, connection: &mut Connection) {
    if !io::stderr().is_terminal() {
        return;
    }
    let Ok(status) = caller::status(connection) else {
        return;
    };
    // The kernel engine was chosen by a user, and holds nothing down.
    let sentence = sentence(&status.mechanism).filter(|_| status.engine == "user");
    if let Some(sentence) = sentence
        && let Some(list) = list(caller.paths())
        && is_news(&list, &status.mechanism).unwrap_or(false)
    {
        output::say(format_args!(
            "{sentence} (mechanism {}, told once)",
            status.mechanism
        ));
    }
}

fn sentence(mechanism: &str) -> Option<&'static str> {
    Some(match mechanism {
        "idle" => "clients that wait for their turn run in SCHED_IDLE, on CPUs that would idle",
        "group-idle" => {
            "clients that wait for their turn are in control groups for CPUs that would idle"
        }
        "group-freeze" => "clients that wait for their turn are frozen by control groups",
        "stop" => {
            "signals stop clients that wait for their turn, which interrupts some calls; `prorata \
             status` tells how to avoid that"
        }
        _ => return None,
    })
}

/// Beside the socket if that is in a directory of this user.
fn list(paths: &DaemonPaths) -> Option<PathBuf> {
    let user = rustix::process::getuid().as_raw();
    let is_own = |directory: &Path| fs::metadata(directory).is_ok_and(|found| found.uid() == user);
    if is_own(&paths.runtime) {
        return Some(paths.runtime.join(TOLD));
    }
    let own = DaemonPaths::without_names().ok()?;
    own.prepare_runtime().ok()?;
    Some(own.runtime.join(TOLD))
}

/// Adds a mechanism to a list. Returns whether it is new there.
fn is_news(list: &Path, mechanism: &str) -> io::Result<bool> {
    let told = fs::read_to_string(list).unwrap_or_default();
    if told.lines().any(|told| told == mechanism) {
        return Ok(false);
    }
    let mut options = OpenOptions::new();
    let mut list = options.append(true).create(true).mode(0o600).open(list)?;
    list.write_all(format!("{mechanism}\n").as_bytes())?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mechanism_is_news_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let list = directory.path().join(TOLD);
        let news = |mechanism| is_news(&list, mechanism).expect("the directory is ours");
        assert!(news("idle") && news("stop") && !news("idle") && !news("stop"));
        assert!(news("group-idle") && !news("group-idle"));
        assert!(is_news(&directory.path().join("none/told"), "idle").is_err());
    }

    #[test]
    fn mechanisms_of_the_user_engine_have_a_sentence() {
        for mechanism in ["idle", "group-idle", "group-freeze", "stop"] {
            assert!(sentence(mechanism).is_some(), "{mechanism}");
        }
        assert_eq!(sentence("partial"), None);
    }
}
