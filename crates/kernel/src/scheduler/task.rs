//! A task's scheduling policy.

use std::io;

use libc::sched_attr;

/// Linux's number for tasks of the scheduler that is loaded.
const SCHED_EXT: u32 = 7;
const SCHED_OTHER: u32 = 0;

/// Puts a task under the loaded scheduler. The task keeps its nice value.
pub fn join(tid: u32) -> io::Result<()> {
    let attributes = attributes(tid)?;
    if attributes.sched_policy == SCHED_EXT {
        return Ok(());
    }
    change(tid, attributes, SCHED_EXT)
}

/// Returns a task to the kernel's own scheduler.
pub fn part(tid: u32) -> io::Result<()> {
    let attributes = attributes(tid)?;
    if attributes.sched_policy != SCHED_EXT {
        return Ok(());
    }
    change(tid, attributes, SCHED_OTHER)
}

fn change(tid: u32, mut attributes: sched_attr, policy: u32) -> io::Result<()> {
    attributes.sched_policy = policy;
    attributes.sched_priority = 0;
    // SAFETY: the kernel reads `size` bytes of a struct that lives.
    done(unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &raw const attributes, 0u32) })
}

fn attributes(tid: u32) -> io::Result<sched_attr> {
    let size = size_of::<sched_attr>() as u32;
    // SAFETY: all bits zero are attributes, and the kernel writes some.
    let mut attributes: sched_attr = unsafe { std::mem::zeroed() };
    attributes.size = size;
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
