//! States our numbers anew in scenario files, after a change of a model. `scripts/restate` runs it.
//!
//! Only a number whose file has a reason for it gets new digits, and only if it stays on the same
//! side of the paper's. A reason of a number that is reproduced now is dropped. All other failures
//! stay failures, and the exit code is 1.

mod stated;

use std::error::Error;
use std::process::ExitCode;

use prorata_reproduce::{Engine, Settings, find, reproduce};

use stated::{Change, restate};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let (options, files): (Vec<String>, Vec<String>) = std::env::args()
        .skip(1)
        .partition(|argument| argument.starts_with("--"));
    let full = match &options[..] {
        [] => false,
        [option] if option == "--full" => true,
        _ => return Err("write at most --full before the scenario files".into()),
    };
    if files.is_empty() || files.iter().any(|file| !file.ends_with(".toml")) {
        return Err("write the scenario files to restate, such as scenarios/2001/*.toml".into());
    }
    let settings = Settings {
        engine: Engine::Sim,
        full,
        seed: None,
        beyond: false,
    };
    let mut needs_a_person = false;
    for figure in find(&files)?.iter().filter(|figure| figure.by_simulation()) {
        let file = format!("{}.toml", figure.id);
        let metrics = reproduce(figure, settings, &mut ())?.metrics;
        let text = std::fs::read_to_string(&file)?;
        let restated = restate(&text, &metrics);
        for (metric, change) in &restated.changes {
            match change {
                Change::Restated { from, to } => {
                    println!("{file}: {metric}: {from} is now {to:.4}")
                }
                Change::Dropped { from } => {
                    println!("{file}: {metric}: reproduced, without the reason for {from}");
                }
                Change::Refused { to, why } => println!("{file}: {metric}: FAILED, {to:.4}: {why}"),
            }
        }
        for (metric, ours) in &restated.without_reason {
            println!("{file}: {metric}: FAILED, {ours:.4}: it has no reason");
        }
        needs_a_person |= restated.needs_a_person();
        if restated.text != text {
            std::fs::write(&file, &restated.text)?;
        }
    }
    Ok(ExitCode::from(u8::from(needs_a_person)))
}
