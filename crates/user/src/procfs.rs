//! What `/proc` tells about processes and threads. Nothing here allocates
//! except [`environment_variable`], `children_of`, [`all_processes`] and [`sleeping_place`].

mod children;
mod environment;
mod idle_times;
mod last_born;
mod schedstat;
mod stat;
mod status;

use std::ffi::CStr;
use std::fmt;
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, RawDir};

pub(crate) use children::{are_children_listed, children_of};
pub use environment::environment_variable;
pub(crate) use idle_times::IdleTimes;
pub use last_born::LastBorn;
pub(crate) use schedstat::SchedStatFile;
pub use stat::{Stat, stat, thread_stat};
pub(crate) use stat::{StatFile, TICK_NS};
pub(crate) use status::{SignalSets, Status, StatusFile, signal_sets};
pub use status::{effective_uid, process_of_thread, real_uid};

/// A short path, built in place.
struct ProcPath {
    bytes: [u8; 64],
}

impl ProcPath {
    fn new(path: fmt::Arguments<'_>) -> Self {
        let mut bytes = [0; 64];
        // The last byte stays zero and ends the string.
        (&mut bytes[..63])
            .write_fmt(path)
            .expect("paths in /proc are short");
        Self { bytes }
    }

    fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).expect("the last byte is zero")
    }

    fn open(&self, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        rustix::fs::open(self.as_c_str(), flags | OFlags::CLOEXEC, Mode::empty())
    }
}

/// The function of the kernel in which a process's first thread sleeps. None if it does not sleep,
/// or if this user may not know.
pub fn sleeping_place(pid: u32) -> Option<Box<str>> {
    let path = ProcPath::new(format_args!("/proc/{pid}/wchan"));
    let file = path.open(OFlags::RDONLY).ok()?;
    let mut buffer = [0; 128];
    let length = rustix::io::pread(&file, &mut buffer, 0).ok()?;
    let name = std::str::from_utf8(&buffer[..length]).ok()?.trim_end();
    (!matches!(name, "" | "0")).then(|| name.into())
}

/// Calls `visit` with every process of the system.
pub fn for_each_process(visit: impl FnMut(u32)) -> io::Result<()> {
    for_each_number(c"/proc", visit)
}

/// Calls `visit` with every thread of a process.
pub fn for_each_thread(pid: u32, visit: impl FnMut(u32)) -> io::Result<()> {
    let path = ProcPath::new(format_args!("/proc/{pid}/task"));
    for_each_number(path.as_c_str(), visit)
}

/// All processes of the system, oldest first. Cost: 5 us each.
pub fn all_processes() -> Vec<(u32, Stat)> {
    let mut all = Vec::new();
    let _ = for_each_process(|pid| {
        if let Ok(stat) = stat(pid) {
            all.push((pid, stat));
        }
    });
    all.sort_by_key(|(pid, stat)| (stat.start_time_ticks, *pid));
    all
}

fn for_each_number(path: &CStr, mut visit: impl FnMut(u32)) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(path, flags, Mode::empty())?;
    let mut buffer = [MaybeUninit::uninit(); 8192];
    let mut entries = RawDir::new(directory, &mut buffer);
    while let Some(entry) = entries.next() {
        if let Some(entry) = number(entry?.file_name().to_bytes()) {
            visit(entry);
        }
    }
    Ok(())
}

fn number<T: std::str::FromStr>(field: &[u8]) -> Option<T> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_found() {
        let me = std::process::id();
        let stat = stat(me).expect("we exist");
        assert!(!stat.is_kernel_thread() && !stat.is_secondary_thread());
        let mut found = false;
        for_each_process(|pid| found |= pid == me).expect("/proc is readable");
        assert!(found);
        let mut threads = 0;
        for_each_thread(me, |_| threads += 1).expect("/proc is readable");
        assert!(threads >= 1);
    }
}
