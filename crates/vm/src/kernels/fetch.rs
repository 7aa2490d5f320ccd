//! Fetches kernels and proves them.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::apt::{Apt, AptError};
use super::release::Release;
use super::store::{Kernel, Store, StoreError};

/// How many kernels of a series are tried, the newest first.
const TRIES: usize = 4;

/// Why there is no kernel.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages explain the variants")]
pub enum FetchError {
    #[error(transparent)]
    Apt(#[from] AptError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the Debian mirror has no kernel {0}: name a series of kernels that it has")]
    NoneOf(String),
    #[error("no kernel {series} was proven; the last one, {release}: {why}")]
    NoneProven {
        series: String,
        release: Release,
        why: String,
    },
}

/// Fetches and keeps the newest kernel of each series that `prove` finds fit.
/// `say` gets the progress, line by line.
pub fn fetch(
    store: &Store,
    series: &[&str],
    prove: &mut dyn FnMut(&Kernel) -> Result<(), String>,
    say: &mut dyn FnMut(&str),
) -> Result<Vec<Kernel>, FetchError> {
    let directory = store.directory();
    let disk = |source| StoreError::Disk {
        path: directory.to_owned(),
        source,
    };
    fs::create_dir_all(directory).map_err(disk)?;
    let scratch = tempfile::Builder::new()
        .prefix("fetch-")
        .tempdir_in(directory)
        .map_err(disk)?;
    say("fetching lists of packages from this machine's Debian mirror");
    let apt = Apt::new(&scratch.path().join("apt"))?;
    let mut releases = apt.releases()?;
    Release::sort(&mut releases);
    let mut kept = Vec::new();
    for &series in series {
        let of_series = releases.iter().filter(|release| release.is_of(series));
        let mut last = None;
        let mut proven = None;
        for release in of_series.take(TRIES) {
            say(&format!("fetching kernel {release}"));
            let tree = scratch.path().join(release.to_string());
            apt.unpack(release, &tree)?;
            if !index_modules(release, &tree) {
                say("depmod (package kmod) failed: machines find no modules by modprobe");
            }
            let kernel = store.stage(release, &tree)?;
            say(&format!("proving kernel {release}"));
            match prove(&kernel) {
                Ok(()) => {
                    store.keep(&kernel)?;
                    say(&format!("kernel {release} is proven and kept"));
                    proven = Some(kernel);
                    break;
                }
                Err(why) => {
                    say(&format!("kernel {release} is not fit: {why}"));
                    store.remove(release)?;
                    last = Some((release.clone(), why));
                }
            }
        }
        let series = series.to_owned();
        kept.push(proven.ok_or(match last {
            Some((release, why)) => FetchError::NoneProven {
                series,
                release,
                why,
            },
            None => FetchError::NoneOf(series),
        })?);
    }
    Ok(kept)
}

/// Writes the index that `modprobe` needs, as the packages' own scripts do.
fn index_modules(release: &Release, tree: &Path) -> bool {
    // Not every user has the directory in PATH.
    ["depmod", "/sbin/depmod"].into_iter().any(|program| {
        let mut depmod = Command::new(program);
        depmod
            .arg("-b")
            .arg(tree.join("usr"))
            .arg(release.to_string());
        depmod.output().is_ok_and(|output| output.status.success())
    })
}
