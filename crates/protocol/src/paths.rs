//! The directories and the socket of a daemon.

use std::env;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Path of a daemon's socket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SocketPath(PathBuf);

/// Bytes of a path that a Unix socket address holds (unix(7)), without the
/// final zero.
pub const MAX_SOCKET_PATH_BYTES: usize = 107;

impl SocketPath {
    /// Checks that `path` can name a socket from any directory.
    pub fn new(path: impl Into<PathBuf>) -> Result<Self, PathError> {
        let path = path.into();
        if !path.is_absolute() || path.file_name().is_none() {
            return Err(PathError::NotAbsolute(path));
        }
        if path.as_os_str().len() > MAX_SOCKET_PATH_BYTES {
            return Err(PathError::TooLong(path));
        }
        Ok(Self(path))
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl std::fmt::Display for SocketPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.display().fmt(f)
    }
}

/// A daemon's socket, its run-time directory and its state directory.
///
/// At most one daemon uses a run-time directory, and at most one a state
/// directory: a daemon holds a lock in both.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DaemonPaths {
    /// For the socket, the locks and the log. A boot empties it.
    pub runtime: PathBuf,
    /// For the journal. Survives a boot.
    pub state: PathBuf,
    /// The socket on which the daemon listens.
    pub socket: SocketPath,
    /// The environment names no directory that survives a boot, so `state` lies
    /// beside the socket.
    pub is_homeless: bool,
}

/// Why a daemon cannot use a directory or a socket.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages explain the variants")]
pub enum PathError {
    #[error(
        "socket path '{0}' does not start at the root: give one such as /run/user/1000/prorata/socket"
    )]
    NotAbsolute(PathBuf),
    /// A path longer than [`MAX_SOCKET_PATH_BYTES`].
    #[error(
        "socket path '{0}' is longer than the {MAX_SOCKET_PATH_BYTES} bytes that a socket \
         address holds: give a shorter one by --socket or PRORATA_SOCKET"
    )]
    TooLong(PathBuf),
    /// A directory of another user, which may have prepared it.
    #[error(
        "directory {path} belongs to user {owner}, not to you (user {uid}): only its owner \
         starts a daemon there"
    )]
    Foreign { path: PathBuf, owner: u32, uid: u32 },
    #[error("{0} is not a directory itself (a link or a file): move it out of the way")]
    NotADirectory(PathBuf),
    #[error(
        "directory {path} may be written by others (mode {mode:03o}): give the socket a directory \
         of its own, with mode 700"
    )]
    Open { path: PathBuf, mode: u32 },
    #[error("directory {path} cannot be used: {source}")]
    Io { path: PathBuf, source: io::Error },
}

/// The environment from which paths follow. Gathered once, so that tests do not
/// change the process's own environment.
#[derive(Clone, Default, Debug)]
struct Surroundings {
    uid: u32,
    socket: Option<PathBuf>,
    runtime_dir: Option<PathBuf>,
    state_home: Option<PathBuf>,
    home: Option<PathBuf>,
}

impl DaemonPaths {
    /// The paths of this process's user.
    ///
    /// A socket named by hand (`socket`, else `PRORATA_SOCKET`) has its own
    /// directories: state and log lie beside it. Without one, the run-time
    /// directory is the first possible of `$XDG_RUNTIME_DIR/prorata`,
    /// `/run/user/UID/prorata` and `/tmp/prorata-UID`. The state directory is
    /// `$XDG_STATE_HOME/prorata` or `~/.local/state/prorata`, and without both it
    /// lies beside the socket. Root's daemon serves the machine, hence `/run/prorata` and `/var/lib/prorata`.
    pub fn of_user(socket: Option<&Path>) -> Result<DaemonPaths, PathError> {
        let by_hand = socket.map(Path::to_path_buf);
        Self::in_environment(by_hand.or_else(Self::named_by_environment))
    }

    /// The paths of this process's user if no socket is named.
    pub fn without_names() -> Result<DaemonPaths, PathError> {
        Self::in_environment(None)
    }

    fn in_environment(by_hand: Option<PathBuf>) -> Result<DaemonPaths, PathError> {
        let absolute = |name: &str| {
            env::var_os(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        let uid = rustix::process::getuid().as_raw();
        let owned = |path: &PathBuf| fs::metadata(path).is_ok_and(|found| found.uid() == uid);
        Self::in_surroundings(&Surroundings {
            uid,
            socket: by_hand,
            runtime_dir: absolute("XDG_RUNTIME_DIR")
                .into_iter()
                .chain([PathBuf::from(format!("/run/user/{uid}"))])
                .find(owned),
            state_home: absolute("XDG_STATE_HOME"),
            home: absolute("HOME"),
        })
    }

    /// The socket that `PRORATA_SOCKET` names.
    pub(crate) fn named_by_environment() -> Option<PathBuf> {
        env::var_os("PRORATA_SOCKET")
            .filter(|text| !text.is_empty())
            .map(PathBuf::from)
    }

    /// The paths of root's daemon, which serves the machine.
    pub fn of_root() -> DaemonPaths {
        let around = Surroundings::default();
        Self::in_surroundings(&around).expect("its paths are short and absolute")
    }

    fn in_surroundings(around: &Surroundings) -> Result<DaemonPaths, PathError> {
        let runtime = around.runtime();
        let socket = SocketPath::new(runtime.join("socket"))?;
        match &around.socket {
            Some(by_hand) if by_hand != socket.path() => {
                let socket = SocketPath::new(by_hand)?;
                let runtime = socket.0.parent().expect("it has a file name").to_path_buf();
                Ok(DaemonPaths {
                    state: beside_socket(&runtime),
                    runtime,
                    socket,
                    is_homeless: false,
                })
            }
            _ => {
                let state = around.state();
                Ok(DaemonPaths {
                    is_homeless: state.is_none(),
                    state: state.unwrap_or_else(|| beside_socket(&runtime)),
                    runtime,
                    socket,
                })
            }
        }
    }

    /// Whether a daemon of this user serves the whole machine.
    pub fn is_of_root() -> bool {
        rustix::process::getuid().is_root()
    }

    /// Creates the state directory, private to this user. Refuses a directory
    /// that other users could have prepared.
    pub fn prepare_state(&self) -> Result<(), PathError> {
        prepare_directory(&self.state, 0o700)
    }

    /// A state directory beside the socket.
    pub fn state_beside_socket(&self) -> PathBuf {
        beside_socket(&self.runtime)
    }

    /// Creates the run-time directory, private to this user; every user may
    /// reach the socket of root's daemon. Refuses like
    /// [`prepare_state`](Self::prepare_state).
    pub fn prepare_runtime(&self) -> Result<(), PathError> {
        prepare_directory(
            &self.runtime,
            if Self::is_of_root() { 0o755 } else { 0o700 },
        )
    }

    /// Directory of the user engine's state.
    pub fn engine(&self) -> PathBuf {
        self.runtime.join("engine")
    }

    /// The daemon's log.
    pub fn log(&self) -> PathBuf {
        self.runtime.join("log")
    }

    /// Whether a request stopped the last daemon, and no other has started
    /// since. Its clients are forgotten.
    pub fn was_stopped(&self) -> bool {
        self.stop_note().exists()
    }

    /// An empty file that a stopped daemon leaves.
    pub fn stop_note(&self) -> PathBuf {
        self.runtime.join("stopped")
    }

    /// The lock that a daemon holds during its life, with a note of its stage.
    pub fn daemon_lock(&self) -> PathBuf {
        self.runtime.join("daemon.lock")
    }

    /// The lock of the one daemon that uses the state directory.
    pub fn journal_lock(&self) -> PathBuf {
        self.state.join("journal.lock")
    }

    /// The lock of the program that is starting a daemon.
    pub fn start_lock(&self) -> PathBuf {
        self.runtime.join("start.lock")
    }
}

impl Surroundings {
    fn runtime(&self) -> PathBuf {
        // Login sessions of root have a run-time directory too, but other users
        // cannot reach a socket in it.
        let session_of_root = |path: &&PathBuf| self.uid == 0 && **path == Path::new("/run/user/0");
        match &self.runtime_dir {
            Some(path) if !session_of_root(&path) => path.join("prorata"),
            _ if self.uid == 0 => PathBuf::from("/run/prorata"),
            _ => PathBuf::from(format!("/tmp/prorata-{}", self.uid)),
        }
    }

    fn state(&self) -> Option<PathBuf> {
        match (&self.state_home, &self.home) {
            (Some(path), _) => Some(path.join("prorata")),
            (None, _) if self.uid == 0 => Some(PathBuf::from("/var/lib/prorata")),
            (None, Some(home)) => Some(home.join(".local/state/prorata")),
            (None, None) => None,
        }
    }
}

fn beside_socket(runtime: &Path) -> PathBuf {
    runtime.join("state")
}

/// Creates `path` if need be, and refuses a directory into which another user
/// could have put something.
fn prepare_directory(path: &Path, mode: u32) -> Result<(), PathError> {
    let failed = |source| PathError::Io {
        path: path.to_path_buf(),
        source,
    };
    if let Some(parent) = path.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(mode)
            .create(parent)
            .map_err(failed)?;
    }
    match DirBuilder::new().mode(mode).create(path) {
        // The umask narrowed the mode, but every user must reach root's socket.
        Ok(()) => fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(failed)?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(failed(error)),
    }
    let found = fs::symlink_metadata(path).map_err(failed)?;
    let uid = rustix::process::getuid().as_raw();
    if !found.is_dir() {
        return Err(PathError::NotADirectory(path.to_path_buf()));
    }
    if found.uid() != uid {
        return Err(PathError::Foreign {
            path: path.to_path_buf(),
            owner: found.uid(),
            uid,
        });
    }
    if found.mode() & 0o022 != 0 {
        return Err(PathError::Open {
            path: path.to_path_buf(),
            mode: found.mode() & 0o777,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user() -> Surroundings {
        Surroundings {
            uid: 1000,
            home: Some("/home/user".into()),
            ..Surroundings::default()
        }
    }

    fn paths(around: &Surroundings) -> (String, String, String) {
        let paths = DaemonPaths::in_surroundings(around).unwrap();
        let text = |path: &Path| path.display().to_string();
        (
            text(&paths.runtime),
            text(&paths.state),
            paths.socket.to_string(),
        )
    }

    fn triple(runtime: &str, state: &str, socket: &str) -> (String, String, String) {
        (runtime.into(), state.into(), socket.into())
    }

    #[test]
    fn a_user_without_session_lives_in_tmp_and_home() {
        assert_eq!(
            paths(&user()),
            triple(
                "/tmp/prorata-1000",
                "/home/user/.local/state/prorata",
                "/tmp/prorata-1000/socket"
            )
        );
    }

    #[test]
    fn the_session_directories_come_first() {
        let around = Surroundings {
            runtime_dir: Some("/run/user/1000".into()),
            state_home: Some("/data/state".into()),
            ..user()
        };
        assert_eq!(
            paths(&around),
            triple(
                "/run/user/1000/prorata",
                "/data/state/prorata",
                "/run/user/1000/prorata/socket"
            )
        );
    }

    #[test]
    fn root_serves_the_machine_even_from_a_login_session() {
        let machine = triple("/run/prorata", "/var/lib/prorata", "/run/prorata/socket");
        let root = Surroundings {
            uid: 0,
            home: Some("/root".into()),
            ..Surroundings::default()
        };
        assert_eq!(paths(&root), machine);
        let session = Surroundings {
            runtime_dir: Some("/run/user/0".into()),
            ..root.clone()
        };
        assert_eq!(paths(&session), machine);
        let elsewhere = Surroundings {
            runtime_dir: Some("/scratch".into()),
            ..root
        };
        assert_eq!(paths(&elsewhere).0, "/scratch/prorata");
    }

    #[test]
    fn a_socket_named_by_hand_keeps_everything_beside_it() {
        let around = Surroundings {
            socket: Some("/tmp/a/b".into()),
            ..user()
        };
        assert_eq!(paths(&around), triple("/tmp/a", "/tmp/a/state", "/tmp/a/b"));
        let usual = Surroundings {
            socket: Some("/tmp/prorata-1000/socket".into()),
            ..user()
        };
        assert_eq!(paths(&usual), paths(&user()));
    }

    #[test]
    fn a_socket_path_is_absolute_and_fits_an_address() {
        let longest = format!("/{}", "a".repeat(MAX_SOCKET_PATH_BYTES - 1));
        assert!(SocketPath::new(&longest).is_ok());
        assert!(matches!(
            SocketPath::new(longest + "a"),
            Err(PathError::TooLong(_))
        ));
        assert!(matches!(
            SocketPath::new("socket"),
            Err(PathError::NotAbsolute(_))
        ));
        assert!(matches!(
            SocketPath::new("/tmp/.."),
            Err(PathError::NotAbsolute(_))
        ));
    }

    #[test]
    fn without_a_home_the_state_lies_beside_the_socket() {
        let homeless = Surroundings {
            home: None,
            ..user()
        };
        let paths = DaemonPaths::in_surroundings(&homeless).unwrap();
        assert_eq!(paths.state, Path::new("/tmp/prorata-1000/state"));
        assert!(paths.is_homeless);
        assert!(!DaemonPaths::in_surroundings(&user()).unwrap().is_homeless);
    }

    #[test]
    fn a_directory_that_others_could_have_prepared_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);

        prepare_directory(&at("deep/new"), 0o700).unwrap();
        assert_eq!(fs::metadata(at("deep/new")).unwrap().mode() & 0o777, 0o700);
        prepare_directory(&at("deep/new"), 0o700).unwrap();

        std::os::unix::fs::symlink(at("deep/new"), at("link")).unwrap();
        let refused = prepare_directory(&at("link"), 0o700);
        assert!(
            matches!(refused, Err(PathError::NotADirectory(_))),
            "{refused:?}"
        );

        fs::set_permissions(at("deep/new"), fs::Permissions::from_mode(0o720)).unwrap();
        let refused = prepare_directory(&at("deep/new"), 0o700);
        assert!(
            matches!(refused, Err(PathError::Open { mode: 0o720, .. })),
            "{refused:?}"
        );

        if DaemonPaths::is_of_root() {
            fs::set_permissions(at("deep/new"), fs::Permissions::from_mode(0o700)).unwrap();
            std::os::unix::fs::chown(at("deep/new"), Some(12345), None).unwrap();
            let refused = prepare_directory(&at("deep/new"), 0o700);
            assert!(
                matches!(refused, Err(PathError::Foreign { owner: 12345, .. })),
                "{refused:?}"
            );
        }
    }
}
