//! Moves processes that only the system's service manager may move.
//!
//! The processes of a login, such as one by ssh, are in a group of root (`session-N.scope`). The
//! user's service manager cannot move them either, but asks the system's one to
//! (`AttachProcessesToUnit`, systemd 238 and later), which moves processes of the same user.
//!
//! After the last logout the user's service manager ends all that is in its groups, unless the
//! user lingers. A job that is to outlive the login must not be moved there. So processes move
//! only if their user lingers.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};

use super::manager;
use crate::process_id::ProcessId;

/// A process, and the group to move it to.
type Request = (ProcessId, PathBuf);

/// Asks the service manager on a thread of its own, which ends with this. `/proc` tells whether a
/// process has arrived.
#[derive(Debug)]
pub(super) struct Mover(Sender<Request>);

impl Mover {
    /// For groups in a scope of the user's service manager. Fails if the user does not linger.
    pub(super) fn start(scope: &Path) -> io::Result<Mover> {
        let user = rustix::process::geteuid().as_raw();
        if !manager::lingers(user)? {
            return Err(io::Error::other(format!("user {user} does not linger")));
        }
        let scope = scope.to_owned();
        let (sender, requests) = channel();
        std::thread::Builder::new()
            .name("mover".into())
            .spawn(move || move_all(&scope, &requests))?;
        Ok(Mover(sender))
    }

    /// Asks for a move, which takes some 50 ms or does not happen.
    pub(super) fn ask(&self, process: ProcessId, group: &Path) {
        // The thread lives as long as this.
        let _ = self.0.send((process, group.to_owned()));
    }
}

fn move_all(scope: &Path, requests: &Receiver<Request>) {
    while let Ok(first) = requests.recv() {
        let mut by_group: BTreeMap<PathBuf, Vec<u32>> = BTreeMap::new();
        for (process, group) in std::iter::once(first).chain(requests.try_iter()) {
            if process.is_alive() {
                by_group.entry(group).or_default().push(process.pid);
            }
        }
        for (group, pids) in by_group {
            if manager::attach(scope, &group, &pids).is_ok() {
                continue;
            }
            // One of them may have ended: then none is moved.
            for pid in pids {
                if let Err(error) = manager::attach(scope, &group, &[pid]) {
                    tracing::info!("process {pid} cannot be moved to a group: {error}");
                }
            }
        }
    }
}
