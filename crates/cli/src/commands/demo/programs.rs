//! The demo's program: a common program that only computes.

use std::path::Path;
use std::{env, fs};

use anyhow::{Context as _, Result};

/// Candidates; the demo takes the first that the host has.
const CANDIDATES: [(&str, &[&str]); 4] = [
    ("sha256sum", &["/dev/zero"]),
    ("md5sum", &["/dev/zero"]),
    ("cksum", &["/dev/zero"]),
    ("sh", &["-c", "while :; do :; done"]),
];

#[derive(Clone, Copy, Debug)]
pub struct Program {
    pub name: &'static str,
    pub arguments: &'static [&'static str],
}

impl Program {
    /// The first candidate on this host.
    pub fn find() -> Result<Self> {
        let path = env::var_os("PATH").unwrap_or_default();
        let present = |name: &str| {
            env::split_paths(&path).any(|directory| is_executable(&directory.join(name)))
        };
        let found = CANDIDATES.iter().find(|(name, _)| present(name));
        let names = CANDIDATES.map(|(name, _)| name).join(", ");
        found
            .map(|&(name, arguments)| Self { name, arguments })
            .with_context(|| {
                format!("no program to run was found: put one of {names} into a directory of PATH")
            })
    }

    /// The command line as typed.
    pub fn line(&self) -> String {
        format!("{} {}", self.name, self.arguments.join(" "))
    }
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
