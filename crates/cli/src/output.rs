//! Standard output: lines, JSON and tables, and the format of values.

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context as _, Result};
use prorata_protocol::{NiceReport, OutsideReport};
use prorata_report::table::{Column, Table};
use serde::Serialize;

use crate::args::Format;

/// Writes a line to standard output. A closed pipe is an error, not a panic.
pub fn line(text: &str) -> Result<()> {
    write(&format!("{text}\n"))
}

pub fn write(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Writes JSON to standard output.
pub fn json(value: &impl Serialize) -> Result<()> {
    line(&serde_json::to_string_pretty(value)?)
}

/// Writes a line to standard error, in one piece. A closed pipe is no reason to end: the command
/// that this process looks after goes on.
pub fn remark(text: impl Display) {
    let _ = io::stderr()
        .lock()
        .write_all(format!("{text}\n").as_bytes());
}

/// Tells the user something in the name of this program.
pub fn say(text: impl Display) {
    remark(format_args!("prorata: {text}"));
}

/// Prints `items` as JSON, or as a table with a row for each item.
pub fn list<T: Serialize>(
    format: Format,
    items: &[T],
    columns: &[Column<T>],
    nothing: &str,
) -> Result<()> {
    if format.json {
        return json(&items);
    }
    table(&Table::of(items, columns), nothing)
}

/// Writes a table to standard output, cut to the width of a terminal. For a
/// table without rows, prints `nothing` on standard error and leaves standard
/// output empty.
pub fn table(table: &Table, nothing: &str) -> Result<()> {
    if table.is_empty() {
        remark(nothing);
        return Ok(());
    }
    let limit = crate::terminal::columns();
    table.lines(limit).iter().try_for_each(|text| line(text))
}

pub fn create(path: &Path) -> Result<BufWriter<File>> {
    let file = File::create(path).with_context(|| cannot_write(path))?;
    Ok(BufWriter::new(file))
}

/// Writes a document to a file, or to standard output for `-`.
pub fn document(path: &Path, document: &str) -> Result<()> {
    if path == Path::new("-") {
        return write(document);
    }
    fs::write(path, document).with_context(|| cannot_write(path))
}

/// Checks that a document can be written there, without changing what is there now: the
/// document may take minutes.
pub fn check_writable(path: &Path) -> Result<()> {
    let there = fs::metadata(path);
    // A pipe's reader would take the end of the check for the end of the document.
    let is_other = matches!(&there, Ok(found) if !found.is_file() && !found.is_dir());
    if path == Path::new("-") || is_other {
        return Ok(());
    }
    let mut options = fs::File::options();
    let opened = options.write(true).create(true).truncate(false).open(path);
    opened.with_context(|| cannot_write(path))?;
    if there.is_err() {
        // Where a link led to nothing, the file that it leads to goes and the link stays.
        let made = fs::canonicalize(path);
        let removed = made.and_then(fs::remove_file);
        removed.with_context(|| cannot_write(path))?;
    }
    Ok(())
}

/// The message for a file that cannot be written.
pub fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

/// Prints the identifier of a new object.
pub fn created(format: Format, id: &str) -> Result<()> {
    if format.json {
        json(&serde_json::json!({ "created": id }))
    } else {
        line(id)
    }
}

/// A value in base units.
pub fn value(value: f64) -> String {
    format!("{value:.1}")
}

/// `1 slot`, `2 slots`.
pub fn count(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}

/// `12.3 %`.
pub fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

pub fn seconds(time_ns: u64) -> String {
    format!("{:.2} s", time_ns as f64 / 1e9)
}

/// `20 ms`.
pub fn milliseconds(time_ns: u64) -> String {
    format!("{} ms", time_ns as f64 / 1e6)
}

/// An upper bound of a time; `-` for zero.
pub fn shorter_than(time_ns: u64) -> String {
    match time_ns {
        0 => "-".to_owned(),
        1..1_000 => format!("<{time_ns} ns"),
        1_000..1_000_000 => format!("<{:.1} us", time_ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("<{:.1} ms", time_ns as f64 / 1e6),
        _ => format!("<{:.1} s", time_ns as f64 / 1e9),
    }
}

/// A boost, with one decimal below ten.
pub fn boost(boost: f64) -> String {
    match boost < 9.95 {
        true => format!("{boost:.1}"),
        false => format!("{boost:.0}"),
    }
}

/// `4.5 ms`.
pub fn tenths_of_ms(time_ns: u64) -> String {
    format!("{:.1} ms", time_ns as f64 / 1e6)
}

/// A nice value, or the least and the greatest.
pub fn nice(nice: NiceReport) -> String {
    match nice.least == nice.greatest {
        true => nice.least.to_string(),
        false => format!("{}..{}", nice.least, nice.greatest),
    }
}

/// A signed number of quanta.
pub fn quanta(error: f64) -> String {
    // Rounding must not leave a sign on zero.
    let rounded = (error * 10.0).round() / 10.0;
    format!("{:+.1}", if rounded == 0.0 { 0.0 } else { rounded })
}

/// `300.alice 20.batch`, as the papers write tickets; `-` for none.
pub fn tickets(tickets: &[(u32, String)]) -> String {
    let each = tickets.iter();
    let each = each.map(|(amount, currency)| format!("{amount}.{currency}"));
    joined(&each.collect::<Vec<_>>())
}

/// Load outside, such as `80 % of CPU 0`; nothing without any.
pub fn outside(loads: &[OutsideReport]) -> Option<String> {
    let loads = loads
        .iter()
        .map(|load| format!("{} % of CPU {}", load.percent, load.cpu));
    let loads: Vec<String> = loads.collect();
    (!loads.is_empty()).then(|| loads.join(", "))
}

/// Words with spaces between them; `-` for none.
pub fn joined(words: &[String]) -> String {
    if words.is_empty() {
        return "-".to_owned();
    }
    words.join(" ")
}

/// A word, or `-` for none.
pub fn or_dash(word: Option<&String>) -> String {
    word.cloned().unwrap_or_else(|| "-".to_owned())
}

/// Whether a ticket or a currency is active.
pub fn activity(active: bool) -> String {
    if active { "active" } else { "inactive" }.to_owned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_check_of_a_file_to_write_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("old"), "a page").unwrap();
        fs::create_dir(at("directory")).unwrap();
        symlink("old", at("link")).unwrap();
        symlink("nothing", at("dangling")).unwrap();
        symlink("nowhere/nothing", at("astray")).unwrap();
        symlink("loop", at("loop")).unwrap();
        let names = || {
            let entries = fs::read_dir(directory.path()).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let before = names();
        for name in ["old", "link", "new", "dangling"] {
            check_writable(&at(name)).unwrap();
        }
        for name in ["directory", "astray", "loop", "nowhere/new"] {
            let error = check_writable(&at(name)).unwrap_err();
            assert_eq!(error.to_string(), cannot_write(&at(name)));
        }
        assert_eq!(names(), before);
        let target = fs::read_link(at("dangling")).unwrap();
        assert_eq!(target, Path::new("nothing"));
        assert_eq!(fs::read_to_string(at("link")).unwrap(), "a page");
    }

    #[test]
    fn quanta_have_a_sign_but_never_minus_zero() {
        assert_eq!(
            [0.04, -0.04, 1.25, -3.0].map(quanta),
            ["+0.0", "+0.0", "+1.3", "-3.0"]
        );
    }

    #[test]
    fn boosts_have_a_decimal_where_it_matters() {
        assert_eq!(
            [1.0, 9.94, 9.96, 10_000.0].map(boost),
            ["1.0", "9.9", "10", "10000"]
        );
        let range = |least, greatest| nice(NiceReport { least, greatest });
        assert_eq!([range(-5, -5), range(0, 19)], ["-5", "0..19"]);
    }

    #[test]
    fn waits_have_the_unit_that_fits() {
        assert_eq!(
            [0, 512, 1 << 16, 1 << 24, 1 << 31].map(shorter_than),
            ["-", "<512 ns", "<65.5 us", "<16.8 ms", "<2.1 s"]
        );
    }

    #[test]
    fn tickets_are_written_as_in_the_papers() {
        assert_eq!(
            tickets(&[(300, "alice".into()), (20, "batch".into())]),
            "300.alice 20.batch"
        );
        assert_eq!(tickets(&[]), "-");
    }
}
