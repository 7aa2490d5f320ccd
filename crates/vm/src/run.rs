//! Starts a machine, passes on what its command says, and ends it.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use crate::channel::{ChannelError, Ending, Frame};
use crate::initramfs::{self, InitramfsError};
use crate::job::Job;
use crate::kvm;
use crate::machine::{Accelerator, Machine, MachineError};
use crate::process::{Processes, StartError};

/// How long a machine may take until it runs its command. Software emulation
/// takes 3 s on a quiet machine.
const UP_LIMIT: Duration = Duration::from_secs(120);

/// How long one with KVM may take that was never seen to work. One that works
/// takes less than a second.
const KVM_TRIAL_LIMIT: Duration = Duration::from_secs(5);

/// Why a job was not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is no such machine.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// What the machine needs could not be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Its first file system could not be built.
    #[error(transparent)]
    Initramfs(#[from] InitramfsError),
    /// It did not get as far as the command in time.
    #[error("the machine was not up after {} s: its kernel may need more memory; it last said:\n{last_words}", UP_LIMIT.as_secs())]
    NotUp {
        /// The end of the kernel's log.
        last_words: String,
    },
    /// It ended before the command did.
    #[error(
        "the machine ended before its command, perhaps for want of memory; it last said:\n{last_words}"
    )]
    Died {
        /// The end of QEMU's messages and of the kernel's log.
        last_words: String,
    },
    /// Its init could not bring it up.
    #[error("the machine could not be brought up: {0}")]
    Init(String),
    /// It said something that is not in the protocol.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// Nobody reads the command's output any more.
    #[error("cannot pass on the command's output: {0}")]
    Output(#[source] io::Error),
}

/// Where a command's output goes.
pub struct Sinks<'a> {
    /// Its standard output.
    pub output: &'a mut dyn Write,
    /// Its standard error.
    pub errors: &'a mut dyn Write,
}

/// Runs a job to its end in a machine of its own. `notes` is a directory where
/// it is kept in mind whether KVM works.
///
/// The machine ends with the calling thread, however that ends.
pub fn run(
    machine: &Machine,
    job: &Job,
    notes: &Path,
    sinks: &mut Sinks<'_>,
) -> Result<Ending, RunError> {
    machine.check()?;
    let initramfs = initramfs::build(job, machine.overlay_module.as_deref())?;
    // Only software counts instructions.
    if machine.instruction_ns.is_none() && kvm::is_there() {
        let works = kvm::recall(notes);
        let limit = works.map_or(KVM_TRIAL_LIMIT, |_| UP_LIMIT);
        if works != Some(false) {
            let processes = Processes::start(machine, Accelerator::Kvm, &initramfs)?;
            let up = wait_until_up(processes, limit);
            kvm::note(notes, up.is_ok());
            if let Ok(processes) = up {
                return attend(processes, sinks);
            }
        }
    }
    let processes = Processes::start(machine, Accelerator::Software, &initramfs)?;
    attend(wait_until_up(processes, UP_LIMIT)?, sinks)
}

/// Waits for the first frame.
fn wait_until_up(mut processes: Processes, limit: Duration) -> Result<Processes, RunError> {
    if !processes
        .wait_for_channel(limit)
        .map_err(ChannelError::from)?
    {
        let last_words = processes.last_words();
        return Err(RunError::NotUp { last_words });
    }
    match Frame::read(processes.channel())? {
        Some(Frame::Ready) => Ok(processes),
        Some(Frame::Failed(why)) => Err(RunError::Init(why)),
        Some(_) => Err(RunError::Init("it began without saying so".to_owned())),
        None => Err(died(processes)),
    }
}

/// Passes on what the command says until it ends.
fn attend(mut processes: Processes, sinks: &mut Sinks<'_>) -> Result<Ending, RunError> {
    while let Some(frame) = Frame::read(processes.channel())? {
        match frame {
            Frame::Output(bytes) => pass_on(sinks.output, &bytes)?,
            Frame::Errors(bytes) => pass_on(sinks.errors, &bytes)?,
            Frame::Ended(ending) => return Ok(ending),
            Frame::Failed(why) => return Err(RunError::Init(why)),
            Frame::Ready => {}
        }
    }
    Err(died(processes))
}

fn pass_on(sink: &mut dyn Write, bytes: &[u8]) -> Result<(), RunError> {
    sink.write_all(bytes)
        .and_then(|()| sink.flush())
        .map_err(RunError::Output)
}

fn died(mut processes: Processes) -> RunError {
    RunError::Died {
        last_words: processes.last_words(),
    }
}
