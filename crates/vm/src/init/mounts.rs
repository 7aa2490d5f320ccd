//! File systems: the host's files, with a layer in memory that takes all writes.

use std::ffi::CStr;
use std::fs::{self, File};
use std::os::fd::AsRawFd as _;

use rustix::io::Errno;
use rustix::mount::{MountFlags, mount, mount_move};
use rustix::process::{chdir, chroot};

use super::{Result, step};
use crate::initramfs::{HOST, OVERLAY_MODULE, ROOT, WRITTEN};
use crate::machine::HOST_TAG;

/// `MODULE_INIT_COMPRESSED_FILE` of `linux/module.h`.
const COMPRESSED: libc::c_int = 4;

/// Mounts the file systems that show the port.
pub fn devices() -> Result<()> {
    mount_new("devtmpfs", "/dev")?;
    mount_new("proc", "/proc")?;
    mount_new("sysfs", "/sys")
}

/// Makes the host's files the root, with the kernel's file systems mounted
/// over the host's own.
pub fn root() -> Result<()> {
    let read_only = mount(
        HOST_TAG,
        HOST,
        "virtiofs",
        MountFlags::RDONLY,
        None::<&CStr>,
    );
    step("mount the host's files (CONFIG_VIRTIO_FS)", read_only)?;
    overlay()?;
    step("enter the root", chdir(ROOT))?;
    for (kind, place) in [
        ("proc", "proc"),
        ("sysfs", "sys"),
        ("devtmpfs", "dev"),
        ("devpts", "dev/pts"),
        ("tmpfs", "dev/shm"),
        ("tmpfs", "run"),
        ("cgroup2", "sys/fs/cgroup"),
        ("bpf", "sys/fs/bpf"),
        ("tracefs", "sys/kernel/tracing"),
    ] {
        if kind == "devpts" || place == "dev/shm" {
            step(place, fs::create_dir_all(place))?;
        }
        mount_new(kind, place)?;
    }
    // As switch_root(8) does: this is the only way to leave the first file system.
    step("move the root", mount_move(".", "/"))?;
    step("change the root", chroot("."))?;
    step("enter the root", chdir("/"))
}

/// Mounts the host's files with a layer in memory over them. Under a kernel
/// without overlays the host's files are read-only, and `/tmp` is empty.
fn overlay() -> Result<()> {
    load_module()?;
    mount_new("tmpfs", WRITTEN)?;
    let (upper, work) = (format!("{WRITTEN}/upper"), format!("{WRITTEN}/work"));
    step("make the upper layer", fs::create_dir(&upper))?;
    step("make the working directory", fs::create_dir(&work))?;
    let options = format!("lowerdir={HOST},upperdir={upper},workdir={work}\0");
    let options = CStr::from_bytes_with_nul(options.as_bytes()).expect("one zero, at the end");
    match mount("overlay", ROOT, "overlay", MountFlags::empty(), options) {
        Err(Errno::NODEV) => {
            step("move the host's files", mount_move(HOST, ROOT))?;
            mount_new("tmpfs", &format!("{ROOT}/tmp"))
        }
        result => step("mount the overlay", result),
    }
}

fn load_module() -> Result<()> {
    let Ok(module) = File::open(OVERLAY_MODULE) else {
        return Ok(());
    };
    // SAFETY: plain numbers and a string that outlives the call; the kernel
    // checks the module.
    let result = unsafe {
        libc::syscall(
            libc::SYS_finit_module,
            module.as_raw_fd(),
            c"".as_ptr(),
            COMPRESSED,
        )
    };
    let result = if result == 0 {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error())
    };
    step("load the module for overlays", result)
}

fn mount_new(kind: &str, place: &str) -> Result<()> {
    let flags = MountFlags::NOSUID;
    step(
        &format!("mount {kind} on {place}"),
        mount(kind, place, kind, flags, None::<&CStr>),
    )
}
