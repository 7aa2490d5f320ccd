//! What the machine is to run. Host and guest are the same program, so its
//! written form has no versions.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A command with all that it starts from. Its standard input is empty.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Job {
    /// The command and its arguments: at least one.
    pub command: Vec<OsString>,
    /// Its environment, and nothing else.
    pub environment: Vec<(OsString, OsString)>,
    /// The directory that it starts in.
    pub directory: PathBuf,
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
        };
        let written = serde_json::to_vec(&job).unwrap();
        assert_eq!(serde_json::from_slice::<Job>(&written).unwrap(), job);
    }
}
