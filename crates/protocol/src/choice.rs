//! Which of several daemons a command asks.
//!
//! 1. The daemon whose socket was named, by `--socket` or else by `PRORATA_SOCKET`.
//! 2. The user's own daemon, if it runs or is starting.
//! 3. Root's daemon, if it listens.
//! 4. The user's own daemon, which the command starts.

use std::path::Path;

use crate::connection::listens;
use crate::paths::{DaemonPaths, PathError};
use crate::start::is_starting;

impl DaemonPaths {
    /// The paths of the daemon to ask. [`DaemonPaths::of_user`] has those of the user's own.
    pub fn to_ask(socket: Option<&Path>) -> Result<DaemonPaths, PathError> {
        let own = Self::of_user(socket)?;
        let is_named = socket.is_some() || Self::named_by_environment().is_some();
        Ok(if is_named {
            own
        } else {
            choose(own, Self::of_root())
        })
    }
}

fn choose(own: DaemonPaths, of_root: DaemonPaths) -> DaemonPaths {
    if own.socket == of_root.socket || is_starting(&own) || !listens(&of_root.socket) {
        own
    } else {
        of_root
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::lock::LockFile;
    use crate::paths::SocketPath;
    use crate::testing::without_forks;

    #[test]
    fn roots_daemon_is_asked_where_it_listens_and_no_own_one_runs() {
        let _no_forks = without_forks();
        let directory = tempfile::tempdir().unwrap();
        let paths = |name: &str| {
            let runtime = directory.path().join(name);
            std::fs::create_dir(&runtime).unwrap();
            DaemonPaths {
                state: runtime.join("state"),
                socket: SocketPath::new(runtime.join("socket")).unwrap(),
                runtime,
                is_homeless: false,
            }
        };
        let (own, of_root) = (paths("own"), paths("root"));
        let chosen = || choose(own.clone(), of_root.clone());
        assert_eq!(chosen(), own, "nothing listens");
        let listener = UnixListener::bind(of_root.socket.path()).unwrap();
        assert_eq!(chosen(), of_root);
        let lock = LockFile::open(own.daemon_lock()).unwrap();
        assert!(lock.try_take().unwrap());
        assert_eq!(chosen(), own, "its own one runs");
        drop(lock);
        assert_eq!(chosen(), of_root);
        drop(listener);
        assert_eq!(chosen(), own, "the socket is left of an ended daemon");
    }
}
