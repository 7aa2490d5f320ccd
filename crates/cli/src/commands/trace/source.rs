//! Whose decisions are traced: those of the daemon's scheduler, or of one that is
//! loaded for that.

use anyhow::{Context as _, Result, bail, ensure};
use prorata_kernel::KernelError;
use prorata_kernel::scheduler::Trace as Decisions;
use prorata_kernel::scheduler::{Options, Policy, Queues, Scheduler, Scope, Tap};
use prorata_protocol::{PolicyName, StatusReport};

use crate::args::WrongUsage;
use crate::args::trace::{KernelPolicy, Trace};
use crate::caller::{self, Caller};

/// The daemon's state, if one runs whose scheduler is in the kernel.
pub fn daemon(caller: &Caller) -> Result<Option<StatusReport>> {
    let Some(mut connection) = caller.open_running()? else {
        return Ok(None);
    };
    let status = caller::status(&mut connection)?;
    Ok((status.engine == "kernel").then_some(status))
}

/// How decisions are made.
pub struct Settings {
    policy: Policy,
    quantum_ns: u64,
    is_daemon: bool,
}

impl Settings {
    /// The daemon's, if it has the kernel engine, or those that are asked for.
    pub fn new(daemon: Option<&StatusReport>, args: &Trace) -> Result<Self> {
        let settings = match daemon {
            Some(daemon) => {
                if args.policy.is_some() || args.quantum.is_some() {
                    return Err(WrongUsage(
                        "the daemon's scheduler is traced, with settings of its own: leave out \
                         --policy and --quantum (`prorata configure` changes them)"
                            .to_owned(),
                    )
                    .into());
                }
                if let ("none", Some(trouble)) = (daemon.mechanism.as_str(), &daemon.trouble) {
                    bail!("nothing is decided in the kernel any more: {trouble}");
                }
                ensure!(daemon.traced, KernelError::NotTraced);
                Self {
                    policy: match daemon.policy {
                        PolicyName::Lottery => Policy::Lottery,
                        _ => Policy::Stride,
                    },
                    quantum_ns: daemon.quantum_ns,
                    is_daemon: true,
                }
            }
            None => Self {
                policy: match args.policy {
                    Some(KernelPolicy::Lottery) => Policy::Lottery,
                    Some(KernelPolicy::Stride) | None => Policy::Stride,
                },
                quantum_ns: args.quantum.map_or(QUANTUM_NS, |quantum| {
                    u64::try_from(quantum.as_nanos()).unwrap_or(u64::MAX)
                }),
                is_daemon: false,
            },
        };
        if args.check && settings.policy == Policy::Lottery {
            let only = "a lottery may pick anybody: give --check with stride scheduling (--policy \
                        stride, or `prorata configure --policy stride` where the daemon decides)";
            return Err(WrongUsage(only.to_owned()).into());
        }
        Ok(settings)
    }
}

/// The quantum of a scheduler of our own.
const QUANTUM_NS: u64 = 20_000_000;

/// Where decisions come from.
pub enum Source {
    /// A scheduler of our own.
    Own(Box<Scheduler>),
    /// The daemon's.
    Daemon(Tap),
}

impl Source {
    /// Decisions come from now on.
    pub fn open(settings: &Settings) -> Result<Self, KernelError> {
        if settings.is_daemon {
            return Tap::open().map(Self::Daemon);
        }
        let options = Options {
            policy: settings.policy,
            quantum_ns: settings.quantum_ns,
            scope: Scope::All,
            queues: Queues::One,
            abbreviated: false,
        };
        let scheduler = Scheduler::load_traced(&options)?;
        Ok(Self::Own(Box::new(scheduler)))
    }

    /// What was decided since the last time.
    pub fn take(&self) -> Result<Decisions> {
        match self {
            Self::Own(scheduler) => {
                let decisions = scheduler.take_decisions()?;
                scheduler.failure().map_or(Ok(decisions), Err)
            }
            Self::Daemon(tap) => tap.take_decisions(),
        }
        .context("decisions cannot be traced any more")
    }
}
