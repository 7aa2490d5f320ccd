//! The conformance suite on real processes: every scenario file of it, judged as on the
//! simulator. And checks that a run leaves nothing behind.
//!
//! Time passes in a scenario as the machine has time for it, so other load only
//! makes it take longer. What a scenario misses while the machine kept threads
//! waiting that are to run as promptly as the engine is judged again.

mod actions;
mod endings;
mod suite;
#[path = "../../../user/tests/support/witness.rs"]
mod witness;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use prorata_scenario::Scenario;
use prorata_stage::{StageError, USER, check, run};
use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, waitid};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

fn main() -> ExitCode {
    prorata_user::guardian_entry();
    prorata_stage::client_entry();
    let mut arguments = Arguments::from_args();
    // All share one CPU.
    arguments.test_threads = Some(1);
    let mut trials = Vec::new();
    for file in suite::files() {
        let name = file.file_stem().expect("it has a name").to_string_lossy();
        let name = format!("{name} on the user engine");
        trials.push(Trial::test(name, move || conforms(&file)));
    }
    actions::list(&mut trials);
    endings::list(&mut trials);
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Scenarios that the engine must refuse, with the place.
const REFUSED: [(&str, &str); 2] = [
    ("compensation-yielding", ":12:51: "),
    ("latency", ":15:51: "),
];

/// The scenario with more threads than the engine manages.
const TOO_MANY_THREADS: &str = "ten-thousand-tasks";

fn conforms(file: &Path) -> Result<(), Failed> {
    let name = file.file_stem().expect("it has a name").to_string_lossy();
    let read = Scenario::read_for(file, |scenario| check(scenario, &USER));
    if let Some((_, place)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
        let error = read.expect_err("it is refused").to_string();
        assert!(error.contains(place), "{error}");
        assert!(error.contains("this engine cannot see"), "{error}");
        return Ok(());
    }
    let scenario = read?;
    if name == TOO_MANY_THREADS {
        let ended = run(&scenario, scenario.seed.into(), &USER, &mut ());
        assert!(
            matches!(ended, Err(StageError::TooManyThreads { number: 4097, .. })),
            "{ended:?}"
        );
        assert_no_child();
        return Ok(());
    }
    // Tolerances are counted in quanta: half of one is an excuse.
    let excuse = Duration::from_nanos(scenario.machine.quantum.0 / 2);
    witness::judge(excuse, || {
        let report = run(&scenario, scenario.seed.into(), &USER, &mut ())
            .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(report.engine, "user");
        assert_eq!(report.refused, [""; 0]);
        assert!(report.verdicts.len() > 1, "{report:?}");
        assert!(report.verdicts.iter().all(|verdict| verdict.judged));
        assert_no_child();
        match report.verdicts.iter().find(|verdict| !verdict.holds) {
            None => Ok(()),
            Some(missed) => Err(format!("{missed:?}")),
        }
    });
    Ok(())
}

/// Runs `body` with this thread, and all that it starts, bound to CPUs.
fn bound_to<T>(cpus: &[usize], body: impl FnOnce() -> T) -> T {
    let before = sched_getaffinity(None).expect("we have an affinity");
    let mut mask = CpuSet::new();
    cpus.iter().for_each(|&cpu| mask.set(cpu));
    sched_setaffinity(None, &mask).expect("these CPUs are usable");
    let result = body();
    sched_setaffinity(None, &before).expect("they were usable before");
    result
}

/// Nothing of a run that is over is left.
fn assert_no_child() {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    assert_eq!(waitid(WaitId::All, options).err(), Some(Errno::CHILD));
}

/// A scenario written down in a test.
fn parse(text: &str) -> Scenario {
    Scenario::parse("test.toml".as_ref(), text.to_owned()).unwrap_or_else(|error| panic!("{error}"))
}
