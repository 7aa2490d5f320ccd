//! Kernels that were proven, with checksums.
//!
//! ```text
//!   6.18.15+deb13-cloud-amd64/vmlinuz
//!   6.18.15+deb13-cloud-amd64/overlay.ko.xz
//!   6.18.15+deb13-cloud-amd64/checksums.json    written last
//! ```

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::release::Release;

const IMAGE: &str = "vmlinuz";
const OVERLAY_MODULE: &str = "overlay.ko.xz";
const CHECKSUMS: &str = "checksums.json";

/// A directory of kernels.
#[derive(Clone, Debug)]
pub struct Store {
    directory: PathBuf,
}

/// One of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kernel {
    /// Its release.
    pub release: Release,
    /// Its image.
    pub image: PathBuf,
    /// Its module for overlays.
    pub overlay_module: PathBuf,
}

/// What is wrong with kept kernels.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Neither HOME nor XDG_CACHE_HOME.
    #[error("no directory to keep kernels in: set HOME or XDG_CACHE_HOME to an absolute path")]
    NoDirectory,
    /// None is kept.
    #[error(
        "no kernel {0} is kept: fetch one by `prorata vm fetch`, or name a file by --kernel FILE"
    )]
    None(String),
    /// A file is not what was kept.
    #[error("{0} has changed since it was fetched: fetch it anew by `prorata vm fetch`")]
    Changed(PathBuf),
    /// The package does not have a file.
    #[error("the packages of kernel {release} have no {file}")]
    Incomplete {
        /// The kernel.
        release: Release,
        /// What is missing.
        file: &'static str,
    },
    /// The disk.
    #[error("cannot use {path}: {source}")]
    Disk {
        /// The file or directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl Store {
    /// The user's: `$XDG_CACHE_HOME/prorata/vm`, or `~/.cache/prorata/vm`.
    pub fn of_user() -> Result<Self, StoreError> {
        let absolute = |name| {
            let path = env::var_os(name).map(PathBuf::from);
            path.filter(|path| path.is_absolute())
        };
        let cache = absolute("XDG_CACHE_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
            .ok_or(StoreError::NoDirectory)?;
        Ok(Self::new(cache.join("prorata/vm")))
    }

    /// The one in this directory.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Where it is; it need not be there yet.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// All kernels, the newest first.
    pub fn list(&self) -> Result<Vec<Kernel>, StoreError> {
        let entries = match fs::read_dir(&self.directory) {
            Ok(entries) => entries.collect::<io::Result<Vec<_>>>(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => Err(error),
        };
        let mut releases: Vec<_> = entries
            .map_err(|source| disk(&self.directory, source))?
            .iter()
            .filter(|entry| entry.path().join(CHECKSUMS).is_file())
            .filter_map(|entry| entry.file_name().into_string().ok())
            .map(|name| Release::named(&name))
            .collect();
        Release::sort(&mut releases);
        Ok(releases
            .iter()
            .map(|release| self.kernel(release))
            .collect())
    }

    /// The newest kernel whose release begins with these numbers, or of all;
    /// its files are what they were when they were kept.
    pub fn find(&self, series: Option<&str>) -> Result<Kernel, StoreError> {
        let mut kernels = self.list()?.into_iter();
        let wanted = |kernel: &Kernel| series.is_none_or(|series| kernel.release.is_of(series));
        let kernel = kernels
            .find(wanted)
            .ok_or_else(|| StoreError::None(series.unwrap_or("at all").to_owned()))?;
        let path = self.place(&kernel.release).join(CHECKSUMS);
        let written = fs::read(&path).map_err(|source| disk(&path, source))?;
        let kept: BTreeMap<String, String> =
            serde_json::from_slice(&written).map_err(|_| StoreError::Changed(path))?;
        for file in [&kernel.image, &kernel.overlay_module] {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            if kept.get(&*name) != Some(&checksum(file)?) {
                return Err(StoreError::Changed(file.clone()));
            }
        }
        Ok(kernel)
    }

    /// Takes a kernel's files out of the tree that its packages were unpacked
    /// to. It is not kept before [`Self::keep`].
    pub fn stage(&self, release: &Release, tree: &Path) -> Result<Kernel, StoreError> {
        let modules = format!("usr/lib/modules/{release}");
        let image = [
            tree.join(format!("boot/vmlinuz-{release}")),
            tree.join(&modules).join("vmlinuz"),
        ];
        let module = [tree
            .join(&modules)
            .join("kernel/fs/overlayfs/overlay.ko.xz")];
        let directory = self.place(release);
        fs::create_dir_all(&directory).map_err(|source| disk(&directory, source))?;
        // What was kept under this name is no longer.
        match fs::remove_file(directory.join(CHECKSUMS)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(disk(&directory, error));
            }
            _ => {}
        }
        let kernel = self.kernel(release);
        take(release, IMAGE, &image, &kernel.image)?;
        take(release, OVERLAY_MODULE, &module, &kernel.overlay_module)?;
        Ok(kernel)
    }

    /// Keeps a kernel that was staged and proven.
    pub fn keep(&self, kernel: &Kernel) -> Result<(), StoreError> {
        let checksums = BTreeMap::from([
            (IMAGE, checksum(&kernel.image)?),
            (OVERLAY_MODULE, checksum(&kernel.overlay_module)?),
        ]);
        let written = serde_json::to_vec_pretty(&checksums).expect("plain data");
        let path = self.place(&kernel.release).join(CHECKSUMS);
        fs::write(&path, written).map_err(|source| disk(&path, source))
    }

    /// Removes a kernel.
    pub fn remove(&self, release: &Release) -> Result<(), StoreError> {
        let directory = self.place(release);
        fs::remove_dir_all(&directory).map_err(|source| disk(&directory, source))
    }

    fn place(&self, release: &Release) -> PathBuf {
        self.directory.join(release.to_string())
    }

    fn kernel(&self, release: &Release) -> Kernel {
        let directory = self.place(release);
        Kernel {
            release: release.clone(),
            image: directory.join(IMAGE),
            overlay_module: directory.join(OVERLAY_MODULE),
        }
    }
}

/// Copies the first of some files that is there.
fn take(
    release: &Release,
    file: &'static str,
    from: &[PathBuf],
    to: &Path,
) -> Result<(), StoreError> {
    let found = from.iter().find(|path| path.is_file());
    let found = found.ok_or_else(|| StoreError::Incomplete {
        release: release.clone(),
        file,
    })?;
    fs::copy(found, to).map_err(|source| disk(to, source))?;
    Ok(())
}

fn checksum(path: &Path) -> Result<String, StoreError> {
    let bytes = fs::read(path).map_err(|source| disk(path, source))?;
    let digest = Sha256::digest(&bytes);
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn disk(path: &Path, source: io::Error) -> StoreError {
    StoreError::Disk {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree as packages of old or of split kernels unpack to.
    fn tree(directory: &Path, release: &str, split: bool) -> PathBuf {
        let tree = directory.join("tree");
        let modules = tree.join(format!("usr/lib/modules/{release}"));
        let overlay = modules.join("kernel/fs/overlayfs");
        fs::create_dir_all(&overlay).unwrap();
        fs::create_dir_all(tree.join("boot")).unwrap();
        fs::write(overlay.join("overlay.ko.xz"), "module").unwrap();
        let image = if split {
            modules.join("vmlinuz")
        } else {
            tree.join(format!("boot/vmlinuz-{release}"))
        };
        fs::write(image, release).unwrap();
        tree
    }

    #[test]
    fn kept_kernels_are_found_by_series_and_proven_ones_only() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path().join("store"));
        assert!(store.list().unwrap().is_empty());
        assert!(matches!(store.find(None), Err(StoreError::None(_))));
        for (name, split) in [("6.18.15+deb13", false), ("7.2.13+deb14", true)] {
            let release = Release::named(name);
            let tree = tree(directory.path(), name, split);
            let kernel = store.stage(&release, &tree).unwrap();
            assert!(matches!(store.find(Some(name)), Err(StoreError::None(_))));
            store.keep(&kernel).unwrap();
            assert_eq!(store.find(Some(name)).unwrap(), kernel);
        }
        assert_eq!(
            store.find(None).unwrap().release.to_string(),
            "7.2.13+deb14"
        );
        let old = store.find(Some("6.18")).unwrap();
        assert_eq!(fs::read(&old.image).unwrap(), b"6.18.15+deb13");
        store.remove(&old.release).unwrap();
        assert!(store.find(Some("6.18")).is_err());
        assert_eq!(store.list().unwrap().len(), 1);
    }

    #[test]
    fn changed_files_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path().join("store"));
        let tree = tree(directory.path(), "7.1", true);
        let kernel = store.stage(&Release::named("7.1"), &tree).unwrap();
        store.keep(&kernel).unwrap();
        for file in [&kernel.image, &kernel.overlay_module] {
            let before = fs::read(file).unwrap();
            fs::write(file, "other").unwrap();
            assert!(matches!(store.find(None), Err(StoreError::Changed(path)) if path == *file));
            fs::write(file, before).unwrap();
            store.find(None).unwrap();
        }
    }

    #[test]
    fn incomplete_packages_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path().join("store"));
        let staged = store.stage(&Release::named("7.1"), directory.path());
        assert!(matches!(
            staged,
            Err(StoreError::Incomplete { file: IMAGE, .. })
        ));
    }
}
