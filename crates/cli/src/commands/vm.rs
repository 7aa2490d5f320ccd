//! `vm`: micro-VMs and their kernels.

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use nix::sys::signal::Signal;
use prorata_kernel::KernelError;
use prorata_vm::channel;
use prorata_vm::job::{Job, KernelFiles};
use prorata_vm::kernels::{Kernel, SERIES, Store, fetch};
use prorata_vm::machine::VirtualMachine;
use prorata_vm::run::{RunError, Sinks, run};

use crate::args::vm::{VmArgs, VmCommand, VmFetchArgs, VmListArgs, VmRunArgs};
use crate::output;
use crate::terminal;
use crate::wrapper::ending::Ending;

/// Memory of the micro-VM that tests a fetched kernel.
const PROOF_MEMORY_MIB: u32 = 512;

pub fn vm(args: &VmArgs) -> Result<ExitCode> {
    match &args.command {
        VmCommand::Run(args) => run_command(args),
        VmCommand::Fetch(args) => fetch_kernels(args).map(|()| ExitCode::SUCCESS),
        VmCommand::List(args) => list(args).map(|()| ExitCode::SUCCESS),
    }
}

fn run_command(args: &VmRunArgs) -> Result<ExitCode> {
    let store = Store::of_user()?;
    let (kernel, kernel_files) = match &args.kernel {
        Some(file) if file.components().count() > 1 => (file.clone(), None),
        series => {
            let series = series.as_ref().map(|series| series.to_string_lossy());
            let kernel = store.find(series.as_deref())?;
            (kernel.image, Some(kernel.files))
        }
    };
    let machine = VirtualMachine {
        kernel,
        cpus: args.cpus,
        sockets: args.sockets,
        memory_mib: args.memory,
        instruction_ns: args.icount,
    };
    let job = job(args.command.clone(), kernel_files)?;
    let mut sinks = Sinks {
        output: &mut io::stdout().lock(),
        errors: &mut io::stderr().lock(),
    };
    let limit = args
        .limit
        .map(|seconds| Duration::from_secs(seconds.into()));
    let ending = run(&machine, &job, limit, store.directory(), &mut sinks).inspect_err(tell_log)?;
    Ok(match ending {
        channel::Ending::Exited(code) => Ending::Exited(code).pass_on(),
        channel::Ending::Killed(number) => match Signal::try_from(i32::from(number)) {
            Ok(signal) => Ending::Killed(signal).pass_on(),
            // Signal has no real-time signals.
            Err(_) => ExitCode::from(128_u8.saturating_add(number)),
        },
    })
}

/// Prints what the machine said last, before the error: its sentence is to stay on the screen.
fn tell_log(error: &RunError) {
    if let Some(log) = error.last_words() {
        output::say(format_args!("the machine last said:\n{log}"));
    }
}

/// The command with the caller's environment and directory. Variables that
/// name the host's daemon or its run-time directory stay out: the micro-VM has
/// neither.
fn job(command: Vec<OsString>, kernel_files: Option<KernelFiles>) -> Result<Job> {
    let outside = |name: &OsString| {
        let name = name.to_string_lossy();
        name.starts_with("PRORATA_") || name == "XDG_RUNTIME_DIR"
    };
    let terminal = terminal::remote().map(|size| (terminal::REMOTE.into(), size.into()));
    let environment = env::vars_os().filter(|(name, _)| !outside(name));
    Ok(Job {
        command,
        environment: environment.chain(terminal).collect(),
        directory: env::current_dir().context("cannot tell the current directory")?,
        kernel_files,
    })
}

fn fetch_kernels(args: &VmFetchArgs) -> Result<()> {
    if !prorata_kernel::BUILT_IN {
        bail!(KernelError::NotBuiltIn);
    }
    let store = Store::of_user()?;
    let notes = store.directory().to_owned();
    let mut series: Vec<&str> = args.series.iter().map(String::as_str).collect();
    if series.is_empty() {
        series.extend(SERIES);
    }
    fetch(
        &store,
        &series,
        &mut |kernel| prove(kernel, &notes),
        &mut |line| output::remark(line),
    )?;
    Ok(())
}

/// Accepts a kernel if a program runs under a loaded scheduler.
fn prove(kernel: &Kernel, notes: &Path) -> Result<(), String> {
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let command = vec![program.into(), "floor".into(), "true".into()];
    let job = job(command, Some(kernel.files.clone())).map_err(|error| format!("{error:#}"))?;
    let machine = VirtualMachine {
        kernel: kernel.image.clone(),
        cpus: 1,
        sockets: 1,
        memory_mib: PROOF_MEMORY_MIB,
        instruction_ns: None,
    };
    let (mut output, mut errors) = (Vec::new(), Vec::new());
    let mut sinks = Sinks {
        output: &mut output,
        errors: &mut errors,
    };
    match run(&machine, &job, None, notes, &mut sinks) {
        Ok(channel::Ending::Exited(0)) => Ok(()),
        Ok(_) => Err(String::from_utf8_lossy(&errors).trim_end().to_owned()),
        Err(error) => {
            tell_log(&error);
            Err(error.to_string())
        }
    }
}

fn list(args: &VmListArgs) -> Result<()> {
    let kernels = Store::of_user()?.list()?;
    if args.format.json {
        let names: Vec<_> = kernels
            .iter()
            .map(|kernel| {
                serde_json::json!({
                    "release": kernel.release.to_string(),
                    "image": kernel.image,
                })
            })
            .collect();
        return output::json(&names);
    }
    let lines: Vec<String> = kernels
        .iter()
        .map(|kernel| format!("{}  {}\n", kernel.release, kernel.image.display()))
        .collect();
    output::write(&lines.concat())
}
