//! The system calls by which a journal reaches the disk. Tests can make each of
//! them fail.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// A journal's file, open for writing.
#[derive(Debug)]
pub(super) struct Disk(File);

impl Disk {
    /// An empty file of our user's alone.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        attempt(|| options.open(path)).map(Self)
    }

    /// Writes all of it or, if it fails, perhaps some.
    pub fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let written = attempt(|| self.0.write_all_at(bytes, offset));
        #[cfg(test)]
        if written.is_err() {
            self.0.write_all_at(&bytes[..bytes.len() / 2], offset)?;
        }
        written
    }

    /// Cuts off what lies behind `length`.
    pub fn cut(&self, length: u64) -> io::Result<()> {
        attempt(|| self.0.set_len(length))
    }

    /// Returns when content and length are on the disk. After a failure the
    /// content is unknown, and a second call may succeed without effect
    /// (fsync(2)).
    pub fn flush(&self) -> io::Result<()> {
        attempt(|| self.0.sync_data())
    }
}

/// Renames `new` to `path` and replaces the file of that name. The rename is on
/// the disk when this returns.
pub(super) fn rename(new: &Path, path: &Path) -> io::Result<()> {
    attempt(|| fs::rename(new, path))?;
    let directory = path.parent().expect("a file has a directory");
    attempt(|| File::open(directory)?.sync_all())
}

fn attempt<T>(call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    #[cfg(test)]
    if faults::next() {
        return Err(io::ErrorKind::StorageFull.into());
    }
    call()
}

/// Which calls of this thread fail.
#[cfg(test)]
pub(crate) mod faults {
    use std::cell::RefCell;
    use std::collections::VecDeque;

    thread_local! {
        static PLAN: RefCell<VecDeque<bool>> = const { RefCell::new(VecDeque::new()) };
    }

    /// Of the next calls, those with `true` here fail.
    pub fn plan(fail: impl IntoIterator<Item = bool>) {
        PLAN.with_borrow_mut(|plan| *plan = fail.into_iter().collect());
    }

    pub(super) fn next() -> bool {
        PLAN.with_borrow_mut(VecDeque::pop_front).unwrap_or(false)
    }
}
