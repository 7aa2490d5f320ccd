//! The job of a machine. Host and guest run the same program, so the job's
//! written form has no versions.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A command and its surroundings. Its standard input is empty.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Job {
    /// The command and its arguments: at least one.
    pub command: Vec<OsString>,
    /// The command's whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The directory that the command starts in.
    pub directory: PathBuf,
    /// What the kernel's packages hold beside its image, if that is known.
    pub kernel_files: Option<KernelFiles>,
}

/// Files of a kernel that the guest finds where a distribution puts them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KernelFiles {
    /// The host's directory with the modules, `/lib/modules/RELEASE` in the guest.
    pub modules: PathBuf,
    /// The kernel's configuration on the host, `/boot/config-RELEASE` in the guest.
    pub config: PathBuf,
}

impl KernelFiles {
    /// The module for overlays. The guest needs it before it sees the host's files.
    pub fn overlay_module(&self) -> PathBuf {
        self.modules.join("kernel/fs/overlayfs/overlay.ko.xz")
    }
}

/// Where the guest finds its job.
pub const PATH: &str = "/job.json";

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    #[test]
    fn a_job_survives_its_written_form() {
        let job = Job {
            command: vec!["printf".into(), OsString::from_vec(vec![0xff, b'"'])],
            environment: vec![("LANG".into(), "C".into())],
            directory: "/tmp".into(),
            kernel_files: Some(KernelFiles {
                modules: "/cache/modules".into(),
                config: "/cache/config".into(),
            }),
        };
        let written = serde_json::to_vec(&job).unwrap();
        assert_eq!(serde_json::from_slice::<Job>(&written).unwrap(), job);
    }
}
