//! Runs a job in a machine: starts the machine, passes on the command's output,
//! and ends the machine.

use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::channel::{ChannelError, Ending, Frame};
use crate::initramfs::{self, InitramfsError};
use crate::job::Job;
use crate::kvm;
use crate::machine::{Accelerator, MachineError, VirtualMachine};
use crate::process::{Processes, StartError};

/// How much CPU time a machine may take until it runs its command. Software
/// emulation takes 6 s. On a busy host that is a long time on the clock.
const UP_CPU_LIMIT: Duration = Duration::from_secs(60);

/// How long a machine may take until it runs its command.
const UP_LIMIT: Duration = Duration::from_secs(900);

/// How often the CPU time is compared with its limit.
const LOOK: Duration = Duration::from_secs(1);

/// How long the first machine with KVM may take. With a working KVM it takes less
/// than a second.
const KVM_TRIAL_LIMIT: Duration = Duration::from_secs(5);

/// How often a machine boots at most, see [`why_it_died`].
const BOOTS: u32 = 3;

/// Why a job did not run to its end.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages explain the variants")]
pub enum RunError {
    #[error(transparent)]
    Machine(#[from] MachineError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Initramfs(#[from] InitramfsError),
    #[error("the machine was not up after {} s of CPU time: its kernel may need more memory", .cpu_time.as_secs())]
    NotUp {
        cpu_time: Duration,
        last_words: String,
    },
    #[error("the machine ended before its command: {}", why_it_died(.last_words))]
    Died { last_words: String },
    #[error(
        "the command has not ended within {} s, in which QEMU used {} s of CPU time",
        .limit.as_secs(), .cpu_time.as_secs()
    )]
    Late {
        limit: Duration,
        cpu_time: Duration,
        last_words: String,
    },
    #[error("the machine could not be brought up: {0}")]
    Init(String),
    #[error(transparent)]
    Channel(#[from] ChannelError),
    #[error("cannot pass on the command's output: {0}")]
    Output(#[source] io::Error),
}

impl RunError {
    /// What the machine's kernel, QEMU and virtiofsd said last. The message
    /// leaves this out: print it before the message, which would scroll away.
    pub fn last_words(&self) -> Option<&str> {
        match self {
            RunError::NotUp { last_words, .. }
            | RunError::Died { last_words }
            | RunError::Late { last_words, .. } => Some(last_words),
            _ => None,
        }
    }

    fn is_stray_breakpoint(&self) -> bool {
        matches!(self, RunError::Died { last_words } if last_words.contains(STRAY_BREAKPOINT))
    }
}

/// The beginning of what Linux says when a CPU meets a breakpoint that nothing
/// set.
const STRAY_BREAKPOINT: &str = "Oops: int3: ";

/// The likely reason, and what to do.
///
/// Linux changes its own code under breakpoints. QEMU's software executes each CPU
/// in a thread of its own, and at times a thread translates such a breakpoint
/// while another thread removes it. The translation stays.
fn why_it_died(last_words: &str) -> &'static str {
    if last_words.contains(STRAY_BREAKPOINT) {
        "QEMU's software executed kernel code that another CPU had replaced; run the command \
         again, or with --cpus 1 or --icount, where this cannot happen"
    } else if last_words.contains("Kernel panic") {
        "its kernel panicked, for the reason above"
    } else {
        "perhaps it had too little memory; give it more with --memory"
    }
}

/// Where a command's output goes.
pub struct Sinks<'a> {
    /// The command's standard output.
    pub output: &'a mut dyn Write,
    /// The command's standard error.
    pub errors: &'a mut dyn Write,
}

/// Runs a job to its end in a machine of its own. `notes` is a directory that
/// keeps whether KVM works. `limit` is how long the command may take.
///
/// The machine ends with the calling thread, however that ends.
pub fn run(
    machine: &VirtualMachine,
    job: &Job,
    limit: Option<Duration>,
    notes: &Path,
    sinks: &mut Sinks<'_>,
) -> Result<Ending, RunError> {
    machine.check()?;
    let initramfs = initramfs::build(job)?;
    // Only software counts instructions.
    if machine.instruction_ns.is_none() && kvm::is_there() {
        let works = kvm::recall(notes);
        let up_limit = works.map_or(KVM_TRIAL_LIMIT, |_| UP_LIMIT);
        if works != Some(false) {
            let processes = Processes::start(machine, Accelerator::Kvm, &initramfs)?;
            let up = wait_until_up(processes, up_limit);
            kvm::note(notes, up.is_ok());
            if let Ok(processes) = up {
                return attend(processes, limit, sinks);
            }
        }
    }
    let start = || Processes::start(machine, Accelerator::Software, &initramfs);
    let processes = retry_boot(|| wait_until_up(start()?, UP_LIMIT))?;
    attend(processes, limit, sinks)
}

/// Boots until the kernel meets no stray breakpoint: its command has not begun, so
/// nothing is done twice.
fn retry_boot<T>(mut boot: impl FnMut() -> Result<T, RunError>) -> Result<T, RunError> {
    for _ in 1..BOOTS {
        match boot() {
            Err(error) if error.is_stray_breakpoint() => {}
            booted => return booted,
        }
    }
    boot()
}

/// Waits for the first frame.
fn wait_until_up(mut processes: Processes, limit: Duration) -> Result<Processes, RunError> {
    let begin = Instant::now();
    let is_silent = |processes: &Processes| {
        let wait = processes.wait_for_channel(LOOK.min(limit));
        wait.map(|has_data| !has_data).map_err(ChannelError::from)
    };
    while is_silent(&processes)? {
        let cpu_time = processes.cpu_time();
        if cpu_time > UP_CPU_LIMIT || begin.elapsed() > limit {
            let last_words = processes.last_words();
            return Err(RunError::NotUp {
                cpu_time,
                last_words,
            });
        }
    }
    match next(&mut processes)? {
        Frame::Ready => Ok(processes),
        Frame::Failed(why) => Err(RunError::Init(why)),
        _ => Err(RunError::Init("it began without saying so".to_owned())),
    }
}

/// Passes on the command's output until the command ends.
fn attend(
    mut processes: Processes,
    limit: Option<Duration>,
    sinks: &mut Sinks<'_>,
) -> Result<Ending, RunError> {
    let begin = Instant::now();
    loop {
        if let Some(limit) = limit {
            let left = limit.saturating_sub(begin.elapsed());
            if left.is_zero()
                || !processes
                    .wait_for_channel(left)
                    .map_err(ChannelError::from)?
            {
                let cpu_time = processes.cpu_time();
                let last_words = processes.last_words();
                return Err(RunError::Late {
                    limit,
                    cpu_time,
                    last_words,
                });
            }
        }
        match next(&mut processes)? {
            Frame::Output(bytes) => pass_on(sinks.output, &bytes)?,
            Frame::Errors(bytes) => pass_on(sinks.errors, &bytes)?,
            Frame::Ended(ending) => return Ok(ending),
            Frame::Failed(why) => return Err(RunError::Init(why)),
            Frame::Ready => {}
        }
    }
}

/// The next frame of a machine that lives.
fn next(processes: &mut Processes) -> Result<Frame, RunError> {
    match Frame::read(processes.channel()) {
        Ok(Some(frame)) => Ok(frame),
        Ok(None) | Err(ChannelError::Torn) => Err(RunError::Died {
            last_words: processes.last_words(),
        }),
        Err(error) => Err(error.into()),
    }
}

fn pass_on(sink: &mut dyn Write, bytes: &[u8]) -> Result<(), RunError> {
    sink.write_all(bytes)
        .and_then(|()| sink.flush())
        .map_err(RunError::Output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_names_the_reason_and_leaves_the_log_out() {
        let stray = "[    2.562953] Oops: int3: 0000 [#2] SMP NOPTI\n\
                     [    2.563593] Kernel panic - not syncing: Fatal exception in interrupt";
        let panic = "[    1.0] Kernel panic - not syncing: Out of memory";
        for (said, reason) in [
            (stray, "--cpus 1"),
            (panic, "its kernel panicked"),
            ("", "--memory"),
        ] {
            let died = RunError::Died {
                last_words: said.to_owned(),
            };
            let message = died.to_string();
            assert!(message.contains(reason), "{message}");
            assert_eq!(message.lines().count(), 1, "{message}");
            assert_eq!(died.last_words(), Some(said));
        }
    }

    #[test]
    fn a_machine_boots_again_only_after_a_stray_breakpoint() {
        let died = |said: &str| RunError::Died {
            last_words: said.to_owned(),
        };
        for (said, booted_after, boots) in [
            (STRAY_BREAKPOINT, 2, 2),
            (STRAY_BREAKPOINT, BOOTS, BOOTS),
            (STRAY_BREAKPOINT, BOOTS + 1, BOOTS),
            ("Kernel panic", 2, 1),
        ] {
            let mut count = 0;
            let outcome = retry_boot(|| {
                count += 1;
                (count >= booted_after).then_some(()).ok_or(died(said))
            });
            assert_eq!(count, boots);
            assert_eq!(outcome.is_ok(), count == booted_after);
        }
    }
}
