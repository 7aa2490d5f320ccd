//! The daemon's log: a file of bounded size.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// A log of this length becomes the old log and replaces the last one.
const MAX_LOG_BYTES: u64 = 1 << 20;

/// Sends the events of `tracing` to the file at `path` from now on.
pub(crate) fn start(path: &Path) -> io::Result<()> {
    let log = BoundedLog::open(path.to_path_buf())?;
    // With a subscriber already there, this runs inside another program.
    let _ = tracing_subscriber::fmt()
        .with_writer(Mutex::new(log))
        .with_ansi(false)
        .with_max_level(tracing::Level::INFO)
        // Internal errors would go to standard error; where that is full too, the
        // daemon would panic.
        .log_internal_errors(false)
        .try_init();
    Ok(())
}

/// A file and, under another name, the part that came before it.
#[derive(Debug)]
struct BoundedLog {
    path: PathBuf,
    file: File,
    /// Whether the program's own error messages go to the same file.
    has_stderr: bool,
    length: u64,
}

impl BoundedLog {
    fn open(path: PathBuf) -> io::Result<Self> {
        let file = open(&path)?;
        let found = file.metadata()?;
        let has_stderr = rustix::fs::fstat(io::stderr())
            .is_ok_and(|stderr| (stderr.st_dev, stderr.st_ino) == (found.dev(), found.ino()));
        Ok(Self {
            path,
            file,
            has_stderr,
            length: found.len(),
        })
    }

    fn begin_anew(&mut self) -> io::Result<()> {
        fs::rename(&self.path, self.path.with_extension("old"))?;
        self.file = open(&self.path)?;
        self.length = 0;
        if self.has_stderr {
            rustix::stdio::dup2_stderr(&self.file)?;
        }
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)
}

impl Write for BoundedLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.length + bytes.len() as u64 > MAX_LOG_BYTES {
            self.begin_anew()?;
        }
        let written = self.file.write(bytes)?;
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_and_its_predecessor_stay_within_the_limit() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("log");
        let mut log = BoundedLog::open(path.clone()).unwrap();
        let line = [b'x'; 1 << 10];
        for written in 1..=MAX_LOG_BYTES / 1024 {
            log.write_all(&line).unwrap();
            assert_eq!(fs::metadata(&path).unwrap().len(), written * 1024);
        }
        assert!(
            !path.with_extension("old").exists(),
            "exactly full is not too full"
        );
        log.write_all(b"one more").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one more");
        assert_eq!(
            fs::metadata(path.with_extension("old")).unwrap().len(),
            MAX_LOG_BYTES
        );

        // Another start goes on with the same file.
        BoundedLog::open(path.clone())
            .unwrap()
            .write_all(b"!")
            .unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one more!");
    }
}
