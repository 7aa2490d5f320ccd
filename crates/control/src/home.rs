//! The socket in its directory, and what becomes of it.
//!
//! Users and programs clean up directories. Without its socket a daemon cannot be asked any more,
//! and no program could stop it. So a daemon notices when its socket is removed, and makes its
//! directories and the socket again. (Its log goes on in the removed file until it grows full.)

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use prorata_protocol::{DaemonPaths, LockFile, SocketPath, note_in};
use rustix::fs::inotify::{self, WatchFlags};

/// The places of a daemon, and a watch on its socket.
#[derive(Debug)]
pub(crate) struct Home {
    paths: DaemonPaths,
    /// Readable when something was removed from the run-time directory.
    watch: OwnedFd,
    /// Device and inode of the socket.
    socket: (u64, u64),
    /// The locks of directories that were made again.
    locks: Vec<LockFile>,
}

impl Home {
    /// Makes the socket and watches it.
    pub fn open(paths: &DaemonPaths) -> io::Result<(Home, UnixListener)> {
        let watch = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
        let (listener, socket) = listen(paths)?;
        let home = Home {
            paths: paths.clone(),
            watch,
            socket,
            locks: Vec::new(),
        };
        home.look_out()?;
        Ok((home, listener))
    }

    fn look_out(&self) -> io::Result<()> {
        let removals = WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF;
        inotify::add_watch(&self.watch, &self.paths.runtime, removals)?;
        Ok(())
    }

    /// Where the socket is.
    pub fn socket(&self) -> &SocketPath {
        &self.paths.socket
    }

    /// Forgets the removals so far.
    pub fn hush(&self) {
        let mut events = [0; 4 << 10];
        while rustix::io::read(&self.watch, &mut events).is_ok_and(|bytes| bytes > 0) {}
    }

    /// Makes the directories and the socket again if the socket was removed. Returns the new
    /// socket. Fails with `AlreadyExists` if another daemon has the directories by now.
    pub fn renew(&mut self) -> io::Result<Option<UnixListener>> {
        if identity(&self.paths).is_ok_and(|found| found == self.socket) {
            return Ok(None);
        }
        self.paths.prepare_runtime().map_err(io::Error::other)?;
        self.paths.prepare_state().map_err(io::Error::other)?;
        if !self.take(self.paths.journal_lock())? {
            let message = "another daemon has taken the directories of this one";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
        }
        if !self.take(self.paths.daemon_lock())? {
            // Without the journal's lock the other one ends soon.
            return Err(io::Error::other("another daemon tries to start"));
        }
        let (listener, socket) = listen(&self.paths)?;
        self.socket = socket;
        self.look_out()?;
        tracing::warn!("{} was removed and is there again", self.paths.socket);
        Ok(Some(listener))
    }

    /// Takes a lock, unless this process holds it. Returns whether this process holds it now.
    fn take(&mut self, path: PathBuf) -> io::Result<bool> {
        if note_in(&path).is_some_and(|(pid, _)| pid == std::process::id()) {
            return Ok(true);
        }
        let lock = LockFile::open(path).map_err(io::Error::other)?;
        if !lock.try_take().map_err(io::Error::other)? {
            return Ok(false);
        }
        lock.note("serves");
        self.locks.push(lock);
        Ok(true)
    }
}

impl AsFd for Home {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.watch.as_fd()
    }
}

/// Every user may ask root's daemon. Only its own user may ask another one.
fn listen(paths: &DaemonPaths) -> io::Result<(UnixListener, (u64, u64))> {
    let path = paths.socket.path();
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        // A daemon that crashed has left it.
        Ok(()) | Err(_) => {}
    }
    let listener = UnixListener::bind(path)?;
    let mode = if DaemonPaths::is_of_root() {
        0o666
    } else {
        0o600
    };
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    Ok((listener, identity(paths)?))
}

fn identity(paths: &DaemonPaths) -> io::Result<(u64, u64)> {
    let found = fs::symlink_metadata(paths.socket.path())?;
    Ok((found.dev(), found.ino()))
}
