//! The kernel's configuration and modules, where programs expect them:
//! `modprobe` under `/lib/modules`, loaders of BPF under `/boot`.

use std::fs;

use rustix::mount::mount_bind;
use rustix::system::uname;

use super::{Result, step};
use crate::job::KernelFiles;

/// Puts the files in place. The root is the final one.
pub fn place(files: &KernelFiles) -> Result<()> {
    let name = uname();
    let release = name.release().to_string_lossy();
    let modules = format!("/lib/modules/{release}");
    step("make the modules' directory", fs::create_dir_all(&modules))?;
    step("mount the modules", mount_bind(&files.modules, &modules))?;
    let config = format!("/boot/config-{release}");
    step("make /boot", fs::create_dir_all("/boot"))?;
    let copied = fs::copy(&files.config, config);
    step("copy the kernel's configuration", copied.map(|_| ()))
}
