//! Packages of kernels from the Debian mirror of the host's own apt. This apt has
//! its own directories, so that the host's does not change, and checks packages
//! by the keys of the Debian archive.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::release::{PACKAGE, Release};

/// The suites of Debian whose kernels are new enough.
const SUITES: [&str; 2] = ["trixie-backports", "sid"];

/// The keys that sign packages.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// How much of a program's messages an error repeats.
const LAST_WORDS_CHARS: usize = 600;

/// Why there are no packages.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages explain the variants")]
pub enum AptError {
    #[error(
        "this machine's apt has no Debian mirror: bring a kernel with sched_ext by --kernel FILE"
    )]
    NoMirror,
    #[error("there is no {KEYS} to check packages by: install the package debian-archive-keyring")]
    NoKeys,
    #[error("cannot run {program}: {source}; bring a kernel with sched_ext by --kernel FILE")]
    NoProgram {
        program: &'static str,
        source: io::Error,
    },
    #[error("{program} failed, perhaps for want of the network: {last_words}")]
    Failed {
        program: &'static str,
        last_words: String,
    },
    #[error("cannot write to {path}: {source}")]
    Write { path: PathBuf, source: io::Error },
}

#[derive(Debug)]
pub struct Apt {
    directory: PathBuf,
}

impl Apt {
    /// Sets up an apt in an empty directory, and fetches the lists of packages.
    pub fn new(directory: &Path) -> Result<Self, AptError> {
        if !Path::new(KEYS).is_file() {
            return Err(AptError::NoKeys);
        }
        let apt = Self {
            directory: directory.to_owned(),
        };
        for part in ["lists/partial", "cache/archives/partial", "packages"] {
            let path = directory.join(part);
            fs::create_dir_all(&path).map_err(|source| AptError::Write { path, source })?;
        }
        let mut last = AptError::NoMirror;
        for mirror in mirrors()? {
            let path = apt.sources();
            fs::write(&path, sources_of(&mirror))
                .map_err(|source| AptError::Write { path, source })?;
            match output("apt-get", apt.get().args(["-qq", "update"])) {
                Ok(_) => return Ok(apt),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// All kernels of the mirror.
    pub fn releases(&self) -> Result<Vec<Release>, AptError> {
        let mut command = self.command("apt-cache");
        let names = output("apt-cache", command.args(["pkgnames", PACKAGE]))?;
        Ok(names.lines().filter_map(Release::of_package).collect())
    }

    /// Downloads a kernel's packages and unpacks them into a new directory.
    pub fn unpack(&self, release: &Release, into: &Path) -> Result<(), AptError> {
        let image = format!("{PACKAGE}{release}");
        let mut command = self.command("apt-cache");
        let depends = output("apt-cache", command.args(["depends", &image]))?;
        let packages = self.directory.join("packages");
        let mut get = self.get();
        get.current_dir(&packages).args(["-qq", "download", &image]);
        output("apt-get", get.args(parts(&depends, release)))?;
        let files = fs::read_dir(&packages).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let failed = |source| AptError::Write {
            path: packages.clone(),
            source,
        };
        for file in files.map_err(failed)? {
            let mut unpack = Command::new("dpkg-deb");
            output("dpkg-deb", unpack.arg("-x").arg(file.path()).arg(into))?;
            fs::remove_file(file.path()).map_err(failed)?;
        }
        Ok(())
    }

    fn get(&self) -> Command {
        self.command("apt-get")
    }

    fn sources(&self) -> PathBuf {
        self.directory.join("sources.list")
    }

    /// All other settings of the host's apt hold, such as a proxy.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let mut set = |name: &str, value: PathBuf| {
            command.arg("-o").arg(format!("{name}={}", value.display()));
        };
        set("Dir::Etc::SourceList", self.sources());
        set("Dir::Etc::SourceParts", "/dev/null".into());
        set("Dir::State::Lists", self.directory.join("lists"));
        set("Dir::State::Status", "/dev/null".into());
        set("Dir::Cache", self.directory.join("cache"));
        set("APT::Architecture", "amd64".into());
        set("APT::Architectures", "amd64".into());
        set("Acquire::Languages", "none".into());
        set("Acquire::AllowInsecureRepositories", "false".into());
        command.env("LC_ALL", "C");
        command
    }
}

fn sources_of(mirror: &str) -> String {
    SUITES
        .iter()
        .map(|suite| format!("deb [signed-by={KEYS}] {mirror} {suite} main\n"))
        .collect()
}

/// The addresses in the host's apt that are known to be Debian's. All of them if
/// the host has no lists yet: the keys tell them apart.
fn mirrors() -> Result<BTreeSet<String>, AptError> {
    let list = |more: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args([
            "indextargets",
            "--format",
            "$(REPO_URI)",
            "Created-By: Packages",
        ]);
        output("apt-get", command.args(more))
            .map(|lines| lines.lines().map(str::to_owned).collect::<BTreeSet<_>>())
    };
    let known = list(&["Origin: Debian", "Label: Debian"])?;
    if known.is_empty() {
        list(&["--no-release-info"])
    } else {
        Ok(known)
    }
}

/// The packages with the parts of a newer kernel, from the output of `apt-cache
/// depends`.
fn parts(depends: &str, release: &Release) -> Vec<String> {
    let wanted = ["base", "binary", "modules"].map(|part| format!("linux-{part}-{release}"));
    let words = depends.split_whitespace();
    let found: BTreeSet<_> = words
        .filter(|&word| wanted.iter().any(|part| part == word))
        .collect();
    found.into_iter().map(str::to_owned).collect()
}

fn output(program: &'static str, command: &mut Command) -> Result<String, AptError> {
    let output = command
        .output()
        .map_err(|source| AptError::NoProgram { program, source })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim();
    let skipped = said.chars().count().saturating_sub(LAST_WORDS_CHARS);
    Err(AptError::Failed {
        program,
        last_words: said.chars().skip(skipped).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_in_parts_are_fetched_whole() {
        let release = Release::named("7.2.13+deb14-cloud-amd64");
        let depends = "\
linux-image-7.2.13+deb14-cloud-amd64
  PreDepends: linux-base
 |Depends: dracut
  Depends: linux-base-7.2.13+deb14-cloud-amd64
  Depends: linux-binary-7.2.13+deb14-cloud-amd64
  Depends: linux-modules-7.2.13+deb14-cloud-amd64
  Suggests: linux-modules-7.2.12+deb14-cloud-amd64
";
        assert_eq!(
            parts(depends, &release),
            [
                "linux-base-7.2.13+deb14-cloud-amd64",
                "linux-binary-7.2.13+deb14-cloud-amd64",
                "linux-modules-7.2.13+deb14-cloud-amd64"
            ]
        );
        assert!(parts("  Depends: kmod\n", &release).is_empty());
    }
}
