//! A task's scheduling policy.

use std::io;

/// Linux's number for tasks of the scheduler that is loaded.
const SCHED_EXT: u32 = 7;
const SCHED_OTHER: u32 = 0;

/// `struct sched_attr` of sched_setattr(2), in its first version.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Puts a task under the loaded scheduler. The task keeps its nice value.
pub fn join(tid: u32) -> io::Result<()> {
    let attributes = attributes(tid)?;
    if attributes.policy == SCHED_EXT {
        return Ok(());
    }
    change(tid, attributes, SCHED_EXT)
}

/// Returns a task to the kernel's own scheduler.
pub fn part(tid: u32) -> io::Result<()> {
    let attributes = attributes(tid)?;
    if attributes.policy != SCHED_EXT {
        return Ok(());
    }
    change(tid, attributes, SCHED_OTHER)
}

fn change(tid: u32, mut attributes: Attributes, policy: u32) -> io::Result<()> {
    attributes.policy = policy;
    attributes.priority = 0;
    // SAFETY: the kernel reads `size` bytes of a struct that lives.
    done(unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &raw const attributes, 0u32) })
}

fn attributes(tid: u32) -> io::Result<Attributes> {
    let size = size_of::<Attributes>() as u32;
    let mut attributes = Attributes {
        size,
        ..Attributes::default()
    };
    // SAFETY: the kernel writes no more than `size` bytes into a struct that
    // lives and is ours.
    done(unsafe {
        libc::syscall(
            libc::SYS_sched_getattr,
            tid,
            &raw mut attributes,
            size,
            0u32,
        )
    })?;
    Ok(attributes)
}

fn done(result: libc::c_long) -> io::Result<()> {
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
