//! Support of the benches in micro-VMs.

use std::process::{Command, Stdio};

use prorata_kernel::scheduler::{Options, Scheduler};

/// The output of the bench with these arguments in a micro-VM with these options; `None`
/// without a kernel for it.
pub fn said_in(options: &[&str], measure: &[&str]) -> Option<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_prorata"))
        .args(["vm", "run"])
        .args(options)
        .arg("--")
        .arg(std::env::current_exe().ok()?)
        .args(measure)
        .stderr(Stdio::inherit())
        .output()
        .ok()?;
    String::from_utf8(output.stdout).ok()
}

/// Measures under our scheduler, and checks that it stayed loaded.
pub fn under(options: &Options, measure: impl FnOnce(&Scheduler)) {
    let scheduler = Scheduler::load(options);
    let scheduler = scheduler.unwrap_or_else(|error| panic!("{error}"));
    measure(&scheduler);
    if let Some(failure) = scheduler.failure() {
        panic!("{failure}");
    }
}
