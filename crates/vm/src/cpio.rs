//! Archives in the format that the kernel unpacks as its first file system:
//! cpio "newc" (Documentation/driver-api/early-userspace/buffer-format.rst in
//! the kernel's sources).

use std::collections::BTreeSet;

/// The longest file: the format has 32 bits for a size.
pub const MAX_FILE_BYTES: usize = u32::MAX as usize;

/// The longest path without its final zero (`PATH_MAX`).
pub const MAX_PATH_BYTES: usize = 4095;

const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;

/// An archive under construction.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    /// Paths written so far, without a leading `/`.
    paths: BTreeSet<String>,
}

/// Why a file cannot be archived.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages explain the variants")]
pub enum ArchiveError {
    #[error(
        "{0:?} is no path of an archive: give an absolute one without `.`, `..` and zero bytes"
    )]
    BadPath(String),
    #[error("{0:?} is in the archive already: give each file once")]
    Twice(String),
    #[error("{path:?} has {bytes} bytes: a file of an archive has at most {MAX_FILE_BYTES}")]
    TooLong { path: String, bytes: usize },
}

impl Archive {
    /// An empty archive.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an empty directory and those above it, unless they exist.
    pub fn directory(&mut self, path: &str) -> Result<(), ArchiveError> {
        let path = relative(path)?;
        self.parents(&format!("{path}/"));
        Ok(())
    }

    /// Adds a file with these permissions, and the directories above it.
    pub fn file(&mut self, path: &str, mode: u32, contents: &[u8]) -> Result<(), ArchiveError> {
        let name = relative(path)?;
        if contents.len() > MAX_FILE_BYTES {
            return Err(ArchiveError::TooLong {
                path: path.to_owned(),
                bytes: contents.len(),
            });
        }
        if self.paths.contains(name) {
            return Err(ArchiveError::Twice(path.to_owned()));
        }
        self.parents(name);
        self.entry(name, REGULAR | (mode & 0o7777), contents);
        Ok(())
    }

    /// The finished archive.
    pub fn finish(mut self) -> Vec<u8> {
        write_entry(&mut self.bytes, 0, "TRAILER!!!", 0, &[]);
        self.bytes
    }

    /// Adds the directories above `name`.
    fn parents(&mut self, name: &str) {
        for (end, _) in name.match_indices('/') {
            let parent = &name[..end];
            if !self.paths.contains(parent) {
                self.entry(parent, DIRECTORY | 0o755, &[]);
            }
        }
    }

    fn entry(&mut self, name: &str, mode: u32, contents: &[u8]) {
        self.paths.insert(name.to_owned());
        let inode = u32::try_from(self.paths.len()).unwrap_or(u32::MAX);
        write_entry(&mut self.bytes, inode, name, mode, contents);
    }
}

/// `path` without its leading `/`, if it is fit for an archive.
fn relative(path: &str) -> Result<&str, ArchiveError> {
    let bad = || ArchiveError::BadPath(path.to_owned());
    let name = path.strip_prefix('/').ok_or_else(bad)?;
    let fit = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\0');
    if name.len() > MAX_PATH_BYTES || !name.split('/').all(fit) {
        return Err(bad());
    }
    Ok(name)
}

/// Header (six letters and 13 numbers of eight hexadecimal digits), name with
/// its final zero, contents; the last two filled up to a multiple of four.
fn write_entry(bytes: &mut Vec<u8>, inode: u32, name: &str, mode: u32, contents: &[u8]) {
    let numbers = [
        inode as usize,
        mode as usize,
        0, // user
        0, // group
        1, // links
        0, // time of change
        contents.len(),
        0, // device, major
        0, // device, minor
        0, // device of a special file, major
        0, // device of a special file, minor
        name.len() + 1,
        0, // checksum, unused in this format
    ];
    bytes.extend_from_slice(b"070701");
    for number in numbers {
        bytes.extend_from_slice(format!("{number:08x}").as_bytes());
    }
    bytes.extend_from_slice(name.as_bytes());
    bytes.push(0);
    fill_up(bytes);
    bytes.extend_from_slice(contents);
    fill_up(bytes);
}

/// Every entry begins at a multiple of four, so filling up the archive fills up
/// its last part.
fn fill_up(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A reader written from the format's description.
    fn read(mut bytes: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        let mut entries = Vec::new();
        loop {
            assert_eq!(&bytes[..6], b"070701");
            let number = |field: usize| {
                let digits = std::str::from_utf8(&bytes[6 + 8 * field..14 + 8 * field]).unwrap();
                u32::from_str_radix(digits, 16).unwrap() as usize
            };
            let (mode, size, name_size) = (number(1), number(6), number(11));
            let name = String::from_utf8(bytes[110..110 + name_size - 1].to_vec()).unwrap();
            assert_eq!(bytes[110 + name_size - 1], 0);
            let begin = (110 + name_size).next_multiple_of(4);
            let contents = bytes[begin..begin + size].to_vec();
            bytes = &bytes[(begin + size).next_multiple_of(4)..];
            if name == "TRAILER!!!" {
                assert!(bytes.is_empty());
                return entries;
            }
            entries.push((name, u32::try_from(mode).unwrap(), contents));
        }
    }

    #[test]
    fn each_directory_comes_once_and_before_its_files() {
        let mut archive = Archive::new();
        archive.file("/a/b/one", 0o755, b"1").unwrap();
        archive.directory("/a/c").unwrap();
        archive.directory("/a/c").unwrap();
        archive.file("/a/b/two", 0o644, b"").unwrap();
        let entries = read(&archive.finish());
        let names: Vec<_> = entries
            .iter()
            .map(|(name, mode, _)| (name.as_str(), *mode))
            .collect();
        assert_eq!(
            names,
            [
                ("a", 0o40_755),
                ("a/b", 0o40_755),
                ("a/b/one", 0o100_755),
                ("a/c", 0o40_755),
                ("a/b/two", 0o100_644),
            ]
        );
    }

    #[test]
    fn unfit_paths_are_refused() {
        let longest = format!("/{}", "x".repeat(MAX_PATH_BYTES));
        let mut archive = Archive::new();
        archive.file(&longest, 0o644, b"").unwrap();
        for path in ["", "/", "a", "/a//b", "/a/", "/a/../b", "/./a", "/a\0"] {
            assert_eq!(
                archive.file(path, 0o644, b""),
                Err(ArchiveError::BadPath(path.to_owned()))
            );
        }
        let too_long = format!("{longest}x");
        assert!(archive.file(&too_long, 0o644, b"").is_err());
        let twice = archive.file(&longest, 0o644, b"");
        assert_eq!(twice, Err(ArchiveError::Twice(longest)));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn written_files_are_read_back(files in proptest::collection::btree_map(
            "[a-z]{1,9}", proptest::collection::vec(any::<u8>(), 0..40), 0..10,
        )) {
            let mut archive = Archive::new();
            for (name, contents) in &files {
                archive.file(&format!("/{name}"), 0o600, contents).unwrap();
            }
            let expected: Vec<_> = files
                .into_iter()
                .map(|(name, contents)| (name, 0o100_600, contents))
                .collect();
            prop_assert_eq!(read(&archive.finish()), expected);
        }
    }
}
