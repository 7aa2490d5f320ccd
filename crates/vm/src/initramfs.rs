//! The machine's first file system: this program as its init, the libraries
//! that the program needs, the job, and the kernel's module for overlays.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::cpio::{Archive, ArchiveError};
use crate::job::{self, Job};
use crate::libraries;

/// Where the guest finds the module, as its distribution packed it.
pub const OVERLAY_MODULE: &str = "/overlay.ko.xz";

/// Where the guest mounts the host's files on the way to its final root.
pub const HOST: &str = "/host";
/// A file system in memory that takes the guest's writes.
pub const WRITTEN: &str = "/written";
/// The final root, before the guest moves it.
pub const ROOT: &str = "/root";

/// Why the first file system cannot be built.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages explain the variants")]
pub enum InitramfsError {
    #[error("cannot read {path} for the machine: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    #[error("{0:?} is not UTF-8: install the library or program in a directory whose name is")]
    NotText(PathBuf),
}

/// The archive for a job.
pub fn build(job: &Job) -> Result<Vec<u8>, InitramfsError> {
    let mut archive = Archive::new();
    for directory in ["/dev", "/proc", "/sys", HOST, WRITTEN, ROOT] {
        archive.directory(directory)?;
    }
    archive.file("/init", 0o755, &read(Path::new("/proc/self/exe"))?)?;
    for library in libraries::loaded() {
        let contents = read(&library)?;
        let path = library
            .to_str()
            .ok_or_else(|| InitramfsError::NotText(library.clone()))?;
        archive.file(path, 0o755, &contents)?;
    }
    if let Some(files) = &job.kernel_files {
        archive.file(OVERLAY_MODULE, 0o644, &read(&files.overlay_module())?)?;
    }
    let written = serde_json::to_vec(job).expect("a job is plain data");
    archive.file(job::PATH, 0o644, &written)?;
    Ok(archive.finish())
}

fn read(path: &Path) -> Result<Vec<u8>, InitramfsError> {
    fs::read(path).map_err(|source| InitramfsError::Read {
        path: path.to_owned(),
        source,
    })
}
