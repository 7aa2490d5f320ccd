//! The file of results: a head, and a line of JSON for each run.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, Write};
use std::path::Path;

use prorata_scenario::Report;
use serde::{Deserialize, Serialize};

use super::{GridPoint, SweepError};

#[derive(Serialize)]
pub(super) struct Line<'a> {
    #[serde(flatten)]
    pub(super) point: &'a GridPoint,
    /// The source of the run, see [`super::fingerprint`].
    pub(super) scenario: &'a str,
    pub(super) report: &'a Report,
}

/// The part of a line that names the run and its end.
#[derive(Deserialize)]
struct Kept {
    #[serde(flatten)]
    point: GridPoint,
    scenario: String,
    report: KeptReport,
}

#[derive(Deserialize)]
struct KeptReport {
    verdicts: Vec<KeptVerdict>,
}

#[derive(Deserialize)]
struct KeptVerdict {
    holds: bool,
}

impl Kept {
    fn holds(&self) -> bool {
        self.report.verdicts.iter().all(|verdict| verdict.holds)
    }
}

#[derive(Serialize, Deserialize)]
struct Head {
    scenario: String,
}

/// A run whose line is there.
pub(super) struct Earlier {
    pub(super) scenario: String,
    /// Whether its assertions held.
    pub(super) holds: bool,
}

/// By which a run is known in the results.
pub(super) fn key(point: &GridPoint) -> String {
    serde_json::to_string(point).expect("text and numbers are JSON")
}

/// Opens the results of a scenario, and finds which runs are there and whether their
/// assertions held. A last line that was not written to its end is cut off.
/// Nothing changes in a file whose first line is not ours.
pub(super) fn take_up(
    path: &Path,
    fingerprint: &str,
) -> Result<(File, BTreeMap<String, Earlier>), SweepError> {
    let file_error = |error| SweepError::File {
        path: path.to_owned(),
        error,
    };
    let open = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path);
    let mut file = open.map_err(file_error)?;
    let scenario = fingerprint.to_owned();
    let our_head = serde_json::to_string(&Head { scenario }).expect("text is JSON");
    let (mut done, mut end) = (BTreeMap::new(), 0);
    let mut reader = BufReader::new(&file);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).map_err(file_error)? > 0 && line.ends_with(b"\n") {
        if end == 0 {
            let head: Head = serde_json::from_slice(&line)
                .map_err(|_| SweepError::NoResults(path.to_owned()))?;
            if head.scenario != fingerprint {
                return Err(SweepError::OtherScenario(path.to_owned()));
            }
        } else if let Ok(kept) = serde_json::from_slice::<Kept>(&line) {
            let holds = kept.holds();
            let scenario = kept.scenario;
            done.insert(key(&kept.point), Earlier { scenario, holds });
        }
        end += line.len() as u64;
        line.clear();
    }
    // What is left has no end: of a line of ours only if it begins like one.
    if end == 0 && !our_head.as_bytes().starts_with(&line) {
        return Err(SweepError::NoResults(path.to_owned()));
    }
    file.set_len(end).map_err(file_error)?;
    file.seek(io::SeekFrom::End(0)).map_err(file_error)?;
    if end == 0 {
        writeln!(file, "{our_head}").map_err(file_error)?;
    }
    Ok((file, done))
}
