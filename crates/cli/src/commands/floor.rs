//! `floor`: runs a command under the minimal scheduler. `vm fetch` tests
//! kernels with it, and the benches compare with it.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, ensure};
use prorata_kernel::Floor;

use crate::args::vm;

pub fn floor(args: &vm::FloorArgs) -> Result<ExitCode> {
    let floor = Floor::load()?;
    let (program, arguments) = args.command.split_first().context("no command")?;
    let status = Command::new(program)
        .args(arguments)
        .status()
        .with_context(|| format!("cannot run {}", program.display()))?;
    // Without an enabled task the kernel rejected the scheduler.
    let report = floor.report()?;
    ensure!(
        report.tasks_enabled > 0,
        "no task ran under the scheduler: the kernel did not enable it (see dmesg)"
    );
    let code = status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)))
}
