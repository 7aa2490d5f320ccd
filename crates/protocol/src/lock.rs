//! Lock files, in which the holder notes what it does.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::StartError;

/// A file that at most one process holds; the kernel frees it when its holder
/// ends in any way.
#[derive(Debug)]
pub struct LockFile {
    file: File,
    path: PathBuf,
}

impl LockFile {
    /// Makes the file at `path` if need be.
    pub fn open(path: PathBuf) -> Result<Self, StartError> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
            .open(&path);
        match file {
            Ok(file) => Ok(Self { file, path }),
            Err(source) => Err(StartError::Lock { path, source }),
        }
    }

    /// Takes the lock unless another process holds it. Returns whether this
    /// process holds it now.
    pub fn try_take(&self) -> Result<bool, StartError> {
        loop {
            match flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(true),
                Err(Errno::WOULDBLOCK) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(error) => {
                    return Err(StartError::Lock {
                        path: self.path.clone(),
                        source: error.into(),
                    });
                }
            }
        }
    }

    /// Notes this process and its stage for waiting programs. A note that
    /// cannot be written leaves them without news, no more.
    pub fn note(&self, stage: &str) {
        let text = format!("{} {stage}", std::process::id());
        let _ = self.file.set_len(0);
        let _ = self.file.write_all_at(text.as_bytes(), 0);
    }
}

/// Whether a process holds the lock at `path`.
pub(crate) fn is_taken(path: &Path) -> bool {
    let Ok(file) = File::open(path) else {
        return false;
    };
    flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
}

/// What the last holder of a lock noted: its pid and its stage.
pub fn note_in(path: &Path) -> Option<(u32, String)> {
    let text = fs::read_to_string(path).ok()?;
    let (pid, stage) = text.split_once(' ')?;
    Some((pid.parse().ok()?, stage.to_owned()))
}
