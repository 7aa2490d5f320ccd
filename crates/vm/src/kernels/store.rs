//! Kernels that were proven, with checksums.
//!
//! ```text
//!   6.18.15+deb13-cloud-amd64/vmlinuz
//!   6.18.15+deb13-cloud-amd64/config
//!   6.18.15+deb13-cloud-amd64/modules/         as the packages have it
//!   6.18.15+deb13-cloud-amd64/checksums.json   written last
//! ```

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::release::Release;
use crate::job::KernelFiles;

const IMAGE: &str = "vmlinuz";
const CONFIG: &str = "config";
const MODULES: &str = "modules";
const CHECKSUMS: &str = "checksums.json";

/// A directory of kernels.
#[derive(Clone, Debug)]
pub struct Store {
    directory: PathBuf,
}

/// A kernel in the store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kernel {
    /// Its release.
    pub release: Release,
    /// Its image.
    pub image: PathBuf,
    /// Its modules and its configuration.
    pub files: KernelFiles,
}

/// Why the store cannot give or take a kernel.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages explain the variants")]
pub enum StoreError {
    #[error("no directory to keep kernels in: set HOME or XDG_CACHE_HOME to an absolute path")]
    NoDirectory,
    #[error(
        "no kernel {0} is kept: fetch one by `prorata vm fetch`, or name a file by --kernel FILE"
    )]
    None(String),
    #[error("{0} has changed since it was fetched: fetch it anew by `prorata vm fetch`")]
    Changed(PathBuf),
    #[error("the packages of kernel {release} have no {file}")]
    Incomplete {
        release: Release,
        file: &'static str,
    },
    #[error("cannot use {path}: {source}")]
    Disk { path: PathBuf, source: io::Error },
}

/// Paths in a kernel's directory, and their checksums.
type Checksums = BTreeMap<String, String>;

impl Store {
    /// The user's: `$XDG_CACHE_HOME/prorata/kernels`, or `~/.cache/prorata/kernels`.
    pub fn of_user() -> Result<Self, StoreError> {
        let absolute = |name| {
            let path = env::var_os(name).map(PathBuf::from);
            path.filter(|path| path.is_absolute())
        };
        let cache = absolute("XDG_CACHE_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
            .ok_or(StoreError::NoDirectory)?;
        Ok(Self::new(cache.join("prorata/kernels")))
    }

    /// The store in this directory.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// The store's directory, which need not exist yet.
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

    /// The newest kernel of this series, or of all. Its files still have their
    /// checksums.
    pub fn find(&self, series: Option<&str>) -> Result<Kernel, StoreError> {
        let mut kernels = self.list()?.into_iter();
        let wanted = |kernel: &Kernel| series.is_none_or(|series| kernel.release.is_of(series));
        let kernel = kernels
            .find(wanted)
            .ok_or_else(|| StoreError::None(series.unwrap_or("at all").to_owned()))?;
        let place = self.place(&kernel.release);
        let path = place.join(CHECKSUMS);
        let written = fs::read(&path).map_err(|source| disk(&path, source))?;
        let kept: Checksums =
            serde_json::from_slice(&written).map_err(|_| StoreError::Changed(path))?;
        let found = checksums(&place)?;
        let names = || kept.keys().chain(found.keys());
        match names().find(|&name| kept.get(name) != found.get(name)) {
            Some(name) => Err(StoreError::Changed(place.join(name))),
            None => Ok(kernel),
        }
    }

    /// Takes a kernel's files out of the tree that its packages were unpacked
    /// to, on the store's own file system. [`Self::keep`] keeps the kernel.
    pub fn stage(&self, release: &Release, tree: &Path) -> Result<Kernel, StoreError> {
        let place = self.place(release);
        if place.exists() {
            self.remove(release)?;
        }
        fs::create_dir_all(&place).map_err(|source| disk(&place, source))?;
        let modules = tree.join(format!("usr/lib/modules/{release}"));
        let boot = |name: &str| tree.join(format!("boot/{name}-{release}"));
        for (file, from) in [
            (IMAGE, [boot(IMAGE), modules.join(IMAGE)]),
            (CONFIG, [boot(CONFIG), modules.join(CONFIG)]),
            (MODULES, [modules.clone(), modules]),
        ] {
            let found = from.iter().find(|path| path.exists());
            let found = found.ok_or_else(|| StoreError::Incomplete {
                release: release.clone(),
                file,
            })?;
            let to = place.join(file);
            fs::rename(found, &to).map_err(|source| disk(&to, source))?;
        }
        Ok(self.kernel(release))
    }

    /// Keeps a kernel that was staged and proven.
    pub fn keep(&self, kernel: &Kernel) -> Result<(), StoreError> {
        let place = self.place(&kernel.release);
        let written = serde_json::to_vec_pretty(&checksums(&place)?).expect("plain data");
        let path = place.join(CHECKSUMS);
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
        let place = self.place(release);
        Kernel {
            release: release.clone(),
            image: place.join(IMAGE),
            files: KernelFiles {
                modules: place.join(MODULES),
                config: place.join(CONFIG),
            },
        }
    }
}

/// The checksums of all files of a kernel.
fn checksums(place: &Path) -> Result<Checksums, StoreError> {
    let mut checksums = Checksums::new();
    let mut waiting = vec![place.to_owned()];
    while let Some(path) = waiting.pop() {
        let failed = |source| disk(&path, source);
        if path.is_dir() {
            for entry in fs::read_dir(&path).map_err(failed)? {
                waiting.push(entry.map_err(failed)?.path());
            }
        } else {
            let name = path.strip_prefix(place).expect("it is in there");
            if name != CHECKSUMS {
                let digest = Sha256::digest(fs::read(&path).map_err(failed)?);
                let digits = digest.iter().map(|byte| format!("{byte:02x}")).collect();
                checksums.insert(name.to_string_lossy().into_owned(), digits);
            }
        }
    }
    Ok(checksums)
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

    /// A tree as the packages of an older kernel, or of one in parts, unpack to.
    fn tree(directory: &Path, release: &str, in_parts: bool) -> PathBuf {
        let tree = directory.join("tree");
        let modules = tree.join(format!("usr/lib/modules/{release}"));
        let overlay = modules.join("kernel/fs/overlayfs");
        fs::create_dir_all(&overlay).unwrap();
        fs::create_dir_all(tree.join("boot")).unwrap();
        fs::write(overlay.join("overlay.ko.xz"), "module").unwrap();
        for (name, contents) in [("vmlinuz", release), ("config", "CONFIG_SMP=y")] {
            let path = if in_parts {
                modules.join(name)
            } else {
                tree.join(format!("boot/{name}-{release}"))
            };
            fs::write(path, contents).unwrap();
        }
        tree
    }

    #[test]
    fn only_proven_kernels_are_found_and_by_their_series() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path().join("store"));
        assert!(store.list().unwrap().is_empty());
        assert!(matches!(store.find(None), Err(StoreError::None(_))));
        for (name, in_parts) in [("6.18.15+deb13", false), ("7.2.13+deb14", true)] {
            let release = Release::named(name);
            let tree = tree(directory.path(), name, in_parts);
            let kernel = store.stage(&release, &tree).unwrap();
            assert!(matches!(store.find(Some(name)), Err(StoreError::None(_))));
            store.keep(&kernel).unwrap();
            assert_eq!(store.find(Some(name)).unwrap(), kernel);
            assert_eq!(fs::read(&kernel.files.config).unwrap(), b"CONFIG_SMP=y");
            assert_eq!(fs::read(kernel.files.overlay_module()).unwrap(), b"module");
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
    fn a_kernel_with_a_changed_or_an_added_file_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path().join("store"));
        let tree = tree(directory.path(), "7.1", true);
        let kernel = store.stage(&Release::named("7.1"), &tree).unwrap();
        store.keep(&kernel).unwrap();
        let is_refused = |file: &Path| {
            let found = store.find(None);
            assert!(matches!(found, Err(StoreError::Changed(path)) if path == *file));
        };
        for file in [&kernel.image, &kernel.files.overlay_module()] {
            let before = fs::read(file).unwrap();
            fs::write(file, "other").unwrap();
            is_refused(file);
            fs::write(file, before).unwrap();
            store.find(None).unwrap();
        }
        let added = kernel.files.modules.join("added.ko.xz");
        fs::write(&added, "module").unwrap();
        is_refused(&added);
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
