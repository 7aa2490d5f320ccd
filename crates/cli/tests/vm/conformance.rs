//! The conformance suite on the kernel engine: every scenario file of it, by
//! `prorata sim FILE --engine kernel` in one machine, judged as everywhere.

use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::Failed;
use serde_json::Value;

use super::{Check, PRORATA, machine};

pub const CHECKS: [(&str, Check); 1] = [("the_conformance_suite_holds", conforms)];

/// What the engine cannot do, and must refuse, with the place and the reason.
const REFUSED: [(&str, &str); 1] = [("herd", ":10:1: machine.policy: ")];

/// Its clock counts instructions, so that a busy host makes nobody wait: 8 ns each.
/// The memory is for ten thousand threads.
const OPTIONS: [&str; 3] = ["--icount=8", "--memory", "4096"];

/// Runs the files that are its arguments. What each prints comes after a line with
/// its name, and its exit code after that.
const SCRIPT: &str = r#"
for file; do
    echo "=== $file"
    "$PRORATA" sim "$file" --engine kernel --json 2>&1
    echo "--- $?"
done
"#;

fn conforms(series: &str) -> Result<(), Failed> {
    let files = files()?;
    let names: Vec<&str> = files.iter().filter_map(|file| file.to_str()).collect();
    let script = format!("PRORATA='{PRORATA}'\n{SCRIPT}");
    let mut command = vec!["sh", "-c", &script, "sh"];
    command.extend(&names);
    let output = machine(series, &OPTIONS, &command)?;
    let text = String::from_utf8(output.stdout.clone())?;
    let mut wrong = Vec::new();
    for file in &names {
        let part = text.split("=== ").find_map(|part| part.strip_prefix(*file));
        let judged = match part.and_then(|part| part.trim().rsplit_once("\n--- ")) {
            Some((printed, code)) => judge(file, printed.trim(), code),
            None => Err(format!("it did not run: {output:?}")),
        };
        if let Err(why) = judged {
            wrong.push(format!("{file}: {why}"));
        }
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(wrong.join("\n").into()),
    }
}

/// What is wrong with what a file's run printed.
fn judge(file: &str, printed: &str, code: &str) -> Result<(), String> {
    let name = Path::new(file).file_stem().unwrap_or_default();
    if let Some((_, place)) = REFUSED.iter().find(|(refused, _)| name == *refused) {
        let is_refused = code == "1" && printed.contains(place);
        return is_refused.then_some(()).ok_or_else(|| printed.to_owned());
    }
    let report: Value = serde_json::from_str(printed).map_err(|_| printed.to_owned())?;
    let verdicts = report["verdicts"].as_array().map_or(&[][..], Vec::as_slice);
    let missed: Vec<&Value> = verdicts
        .iter()
        .filter(|verdict| verdict["holds"] != true)
        .collect();
    let proper = report["engine"] == "kernel" && report["refused"] == serde_json::json!([]);
    if code == "0" && proper && verdicts.len() > 1 && missed.is_empty() {
        return Ok(());
    }
    Err(format!("exit code {code}, missed {missed:?} of {report}"))
}

/// The suite, by name.
fn files() -> Result<Vec<PathBuf>, Failed> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/conformance");
    let mut files = Vec::new();
    for entry in fs::read_dir(directory.canonicalize()?)? {
        files.push(entry?.path());
    }
    files.sort();
    if files.len() < 14 {
        return Err(format!("only {files:?}").into());
    }
    Ok(files)
}
