//! The conformance suite on the kernel engine, with the assertions of the simulator
//! and the user engine. Needs a kernel with sched_ext and without another scheduler:
//! `make vm-test` runs it in micro-VMs.
//!
//! All files share one scheduler, because loading takes seconds there.

#[path = "../../../stage/tests/conformance/suite.rs"]
mod suite;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, OnceLock};

use libtest_mimic::{Arguments, Failed, Trial};
use prorata_control::{
    Engine, EngineError, EngineSetup, KeptScheduler, KernelOptions, kernel_engine_over,
};
use prorata_core::dispatcher::Dispatcher;
use prorata_kernel::scheduler::{Options, Policy};
use prorata_scenario::Scenario;
use prorata_stage::{KERNEL, ProcessEngine, check, run};

/// Files that the engine must refuse, with the place and the reason.
const REFUSED: [(&str, &str); 1] = [("herd", ":10:1: machine.policy: ")];

/// The files for a short run.
const IN_SHORT: [&str; 3] = [
    "nested-currencies.toml",
    "three-two-one.toml",
    "transfer-by-call.toml",
];

fn main() -> ExitCode {
    prorata_user::guardian_entry();
    prorata_stage::client_entry();
    let mut arguments = Arguments::from_args();
    // Only one scheduler can be loaded at a time.
    arguments.test_threads = Some(1);
    let mut files = suite::files();
    if std::env::var_os("SHORT_TESTS").is_some() {
        files.retain(|file| IN_SHORT.iter().any(|&name| file.ends_with(name)));
        assert_eq!(
            files.len(),
            IN_SHORT.len(),
            "a file of the short run is gone"
        );
    }
    let trials = files.into_iter().map(|file| {
        let name = file.file_stem().expect("it has a name").to_string_lossy();
        let name = format!("{name} on the kernel engine");
        Trial::test(name, move || conforms(&file))
    });
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    // The end of the process unloads the scheduler.
    conclusion.exit_code()
}

/// The kernel engine over the shared scheduler.
static OVER_ONE: ProcessEngine = ProcessEngine {
    start: over_one,
    ..KERNEL
};

fn over_one(
    dispatcher: Arc<Mutex<Dispatcher>>,
    directory: PathBuf,
    cpus: Vec<u32>,
) -> Result<Box<dyn Engine>, EngineError> {
    static SCHEDULER: OnceLock<Arc<KeptScheduler>> = OnceLock::new();
    let options = KernelOptions::for_clients();
    let scheduler = match SCHEDULER.get() {
        Some(scheduler) => scheduler,
        None => {
            let loaded = Arc::new(KeptScheduler::load(&Options {
                policy: Policy::Stride,
                quantum_ns: 20_000_000,
                scope: options.scope,
                queues: options.queues,
                hybrid: options.hybrid(),
            })?);
            SCHEDULER.get_or_init(|| loaded)
        }
    };
    let setup = EngineSetup::without_daemon(dispatcher, directory, cpus);
    kernel_engine_over(scheduler, setup, options)
}

fn conforms(file: &Path) -> Result<(), Failed> {
    let name = file.file_stem().expect("it has a name").to_string_lossy();
    let read = Scenario::read_for(file, |scenario| check(scenario, &OVER_ONE));
    if let Some((_, place)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
        return match read {
            Err(error) if error.to_string().contains(place) => Ok(()),
            other => Err(format!("{other:?} instead of a refusal at {place}").into()),
        };
    }
    let scenario = read?;
    let report = run(&scenario, scenario.seed.into(), &OVER_ONE, &mut ())?;
    println!(
        "    {name}: {:.1} s took {:.1}",
        report.duration_ns as f64 / 1e9,
        report.took_ns.unwrap_or(0) as f64 / 1e9
    );
    let missed: Vec<_> = report
        .verdicts
        .iter()
        .filter(|verdict| !verdict.holds || !verdict.judged)
        .collect();
    let is_proper = report.engine == "kernel" && report.refused.is_empty();
    if is_proper && report.verdicts.len() > 1 && missed.is_empty() {
        return Ok(());
    }
    let refused = &report.refused;
    Err(format!("missed {missed:?}, refused {refused:?}").into())
}
