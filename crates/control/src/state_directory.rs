//! Where a daemon keeps its journal.
//!
//! Programs get their shares also where the state directory cannot be made, is read-only, or is not
//! named at all. The daemon then keeps its journal beside its socket, where it survives a crash but
//! no boot, and says so. In a full state directory there may be a journal with clients, so the
//! daemon stays there.

use prorata_protocol::{DaemonPaths, LockFile};

use crate::daemon::DaemonError;

/// The paths that a daemon uses.
#[derive(Debug)]
pub(crate) struct StateDirectory {
    pub paths: DaemonPaths,
    /// Why the journal does not lie in the state directory, in one sentence.
    pub trouble: Option<String>,
}

impl StateDirectory {
    /// Makes the directories of `paths`, and finds out whether the state directory can be used.
    pub fn prepare(paths: &DaemonPaths) -> Result<StateDirectory, DaemonError> {
        paths.prepare_runtime()?;
        let beside = DaemonPaths {
            state: paths.state_beside_socket(),
            ..paths.clone()
        };
        let reason = match prepare_state(paths) {
            Ok(()) if paths.is_homeless => {
                "neither HOME nor XDG_STATE_HOME names a directory".to_owned()
            }
            Ok(()) => {
                return Ok(StateDirectory {
                    paths: paths.clone(),
                    trouble: None,
                });
            }
            Err(error) if beside.state == paths.state => return Err(error),
            Err(error) => error.to_string(),
        };
        prepare_state(&beside)?;
        let trouble = format!(
            "{reason}, so the daemon keeps its journal in {} until the next boot",
            beside.state.display()
        );
        Ok(StateDirectory {
            paths: beside,
            trouble: Some(trouble),
        })
    }
}

/// Makes the state directory, and a file in it.
fn prepare_state(paths: &DaemonPaths) -> Result<(), DaemonError> {
    paths.prepare_state()?;
    LockFile::open(paths.journal_lock())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use prorata_protocol::SocketPath;

    use super::*;

    fn paths(directory: &Path, state: &str) -> DaemonPaths {
        let runtime = directory.join("run");
        DaemonPaths {
            state: directory.join(state),
            socket: SocketPath::new(runtime.join("socket")).unwrap(),
            runtime,
            is_homeless: false,
        }
    }

    #[test]
    fn a_usable_state_directory_is_used_without_a_word() {
        let directory = tempfile::tempdir().unwrap();
        let wanted = paths(directory.path(), "deep/state");
        let prepared = StateDirectory::prepare(&wanted).unwrap();
        assert_eq!((prepared.paths, prepared.trouble), (wanted, None));
    }

    #[test]
    fn a_journal_lies_beside_the_socket_where_the_state_directory_cannot_be_used() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("file"), "").unwrap();
        let wanted = paths(directory.path(), "file/state");
        let prepared = StateDirectory::prepare(&wanted).unwrap();
        let beside = directory.path().join("run/state");
        assert_eq!(prepared.paths.state, beside);
        let trouble = prepared.trouble.unwrap();
        assert!(
            trouble.contains(&format!("{}", wanted.state.display())),
            "{trouble}"
        );
        let end = format!(
            "keeps its journal in {} until the next boot",
            beside.display()
        );
        assert!(trouble.ends_with(&end), "{trouble}");
    }

    #[test]
    fn a_user_without_a_home_is_told_so() {
        let directory = tempfile::tempdir().unwrap();
        let wanted = DaemonPaths {
            is_homeless: true,
            ..paths(directory.path(), "run/state")
        };
        let prepared = StateDirectory::prepare(&wanted).unwrap();
        assert_eq!(prepared.paths.state, wanted.state);
        assert!(prepared.trouble.unwrap().starts_with("neither HOME nor"));
    }

    #[test]
    fn without_any_directory_for_the_journal_no_daemon_starts() {
        let directory = tempfile::tempdir().unwrap();
        let wanted = paths(directory.path(), "run/state");
        fs::create_dir(&wanted.runtime).unwrap();
        fs::write(&wanted.state, "").unwrap();
        let error = StateDirectory::prepare(&wanted).unwrap_err();
        assert!(error.to_string().contains("is not a directory"), "{error}");
    }
}
