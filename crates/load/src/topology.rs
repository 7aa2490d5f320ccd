//! The topology of this machine, as the kernel tells it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use prorata_core::cpu_list::{self, CpuListError};
use prorata_core::topology::{CpuPlace, Topology, TopologyError};
use rustix::thread::{CpuSet, sched_getaffinity};

/// Where the kernel describes CPUs and NUMA nodes: `cpu` and `node` are below.
pub const DEVICES: &str = "/sys/devices/system";

/// A description that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A file is not to be had.
    #[error("cannot read {}: {cause}", .path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// The system's reason.
        cause: io::Error,
    },
    /// A file does not hold what it should.
    #[error("{} should hold a list of CPUs: {cause}", .path.display())]
    List {
        /// Which one.
        path: PathBuf,
        /// What is wrong with it.
        cause: CpuListError,
    },
    /// A file does not hold what it should.
    #[error("{} should hold a number and holds {text:?}", .path.display())]
    Number {
        /// Which one.
        path: PathBuf,
        /// What it holds.
        text: String,
    },
    /// The kernel does not say where this thread may run.
    #[error("cannot read which CPUs may be used: {0}")]
    Affinity(io::Error),
    /// It is all there and is no machine.
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

/// The CPUs that are online, by what `devices` ([`DEVICES`] or a tree like it)
/// says of them. Where a machine tells no caches, a package counts as one; where
/// it tells no nodes, there is one.
///
/// # Errors
/// What is missing or wrong in the tree.
pub fn read(devices: &Path) -> Result<Topology, ReadError> {
    let nodes = nodes(devices)?;
    let online = list(&devices.join("cpu/online"))?;
    let place = |cpu: u32| {
        let about = devices.join(format!("cpu/cpu{cpu}"));
        let package = package(&about)?;
        let cache = last_level_cache(&about)?;
        let node = nodes.iter().find(|(_, cpus)| cpus.contains(&cpu));
        Ok(CpuPlace {
            cpu,
            last_level_cache: cache.unwrap_or(package),
            package,
            node: node.map_or(0, |(node, _)| *node),
        })
    };
    let places: Result<Vec<_>, ReadError> = online.into_iter().map(place).collect();
    Ok(Topology::new(places?)?)
}

/// Those of this machine's CPUs that the calling thread may run on.
///
/// # Errors
/// What cannot be read, or CPUs that the kernel does not describe.
pub fn of_this_thread() -> Result<Topology, ReadError> {
    let machine = read(Path::new(DEVICES))?;
    let allowed = sched_getaffinity(None).map_err(|errno| ReadError::Affinity(errno.into()))?;
    let may_run = |place: &&CpuPlace| {
        let cpu = place.cpu as usize;
        cpu < CpuSet::MAX_CPU && allowed.is_set(cpu)
    };
    let usable = machine.cpus().iter().filter(may_run).copied();
    Ok(Topology::new(usable.collect())?)
}

/// The first CPU of the package: the kernel's own number of it is -1 on some
/// machines.
fn package(about: &Path) -> Result<u32, ReadError> {
    first(&about.join("topology/package_cpus_list"))
}

/// The first CPU of those that share the cache of the highest level that holds
/// data, if there is any.
fn last_level_cache(about: &Path) -> Result<Option<u32>, ReadError> {
    let mut last = None;
    for cache in numbered(&about.join("cache"), "index")? {
        let (_, path) = cache;
        let level = number(&path.join("level"))?;
        if last.as_ref().is_none_or(|(highest, _)| level > *highest) {
            last = Some((level, path.join("shared_cpu_list")));
        }
    }
    last.map(|(_, path)| first(&path)).transpose()
}

/// The CPUs of each NUMA node, by its number.
fn nodes(devices: &Path) -> Result<Vec<(u32, Vec<u32>)>, ReadError> {
    let nodes = numbered(&devices.join("node"), "node")?;
    let cpus = |(node, path): (u32, PathBuf)| Ok((node, list(&path.join("cpulist"))?));
    nodes.into_iter().map(cpus).collect()
}

/// The entries of a directory that are `prefix` and a number, in its order;
/// none of a directory that is not there.
fn numbered(directory: &Path, prefix: &str) -> Result<Vec<(u32, PathBuf)>, ReadError> {
    let failed = |cause| ReadError::File {
        path: directory.to_owned(),
        cause,
    };
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let number = name.and_then(|name| name.strip_prefix(prefix)?.parse().ok());
        found.extend(number.map(|number: u32| (number, path)));
    }
    found.sort_unstable();
    Ok(found)
}

fn text(path: &Path) -> Result<String, ReadError> {
    fs::read_to_string(path).map_err(|cause| ReadError::File {
        path: path.to_owned(),
        cause,
    })
}

fn list(path: &Path) -> Result<Vec<u32>, ReadError> {
    cpu_list::parse(&text(path)?).map_err(|cause| ReadError::List {
        path: path.to_owned(),
        cause,
    })
}

/// The first CPU of a list that names one.
fn first(path: &Path) -> Result<u32, ReadError> {
    list(path)?.first().copied().ok_or_else(|| ReadError::List {
        path: path.to_owned(),
        cause: CpuListError::Part(String::new()),
    })
}

fn number(path: &Path) -> Result<u32, ReadError> {
    let text = text(path)?;
    text.trim().parse().map_err(|_| ReadError::Number {
        path: path.to_owned(),
        text: text.trim().to_owned(),
    })
}
