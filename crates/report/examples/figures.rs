//! Prints the figures that benches left in a directory as one table.
//! Ends with 1 if a target was missed, with 2 if there is nothing to print.

use std::path::PathBuf;
use std::process::ExitCode;

use prorata_report::figures;

fn main() -> ExitCode {
    let Some(directory) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: figures DIRECTORY");
        return ExitCode::from(2);
    };
    let benches = match figures::read_directory(&directory) {
        Ok(benches) => benches,
        Err(error) => {
            eprintln!("figures: {error}");
            return ExitCode::from(2);
        }
    };
    let table = figures::table(&benches);
    if table.is_empty() {
        eprintln!(
            "figures: {} holds no figures: run the benches first",
            directory.display()
        );
        return ExitCode::from(2);
    }
    for line in table.lines(None) {
        println!("{line}");
    }
    let missed = benches
        .iter()
        .flat_map(|(_, figures)| figures)
        .filter(|figure| figure.target.is_some() && !figure.ok)
        .count();
    println!("\n{} figures, {missed} targets missed", table.len());
    ExitCode::from(u8::from(missed > 0))
}
