//! The traced scheduler: the daemon's, or one loaded for the trace.

use anyhow::{Context as _, Result, bail, ensure};
use prorata_kernel::KernelError;
use prorata_kernel::scheduler::Trace as Decisions;
use prorata_kernel::scheduler::{Mechanisms, Options, Policy, Queues, Scheduler, Scope, Tap};
use prorata_protocol::{PolicyName, StatusReport};

use crate::args::WrongUsage;
use crate::args::trace::{KernelPolicy, TraceArgs};
use crate::caller::{self, Caller};

/// The state of a running daemon with the kernel engine.
pub fn daemon(caller: &Caller) -> Result<Option<StatusReport>> {
    let Some(mut connection) = caller.open_running()? else {
        return Ok(None);
    };
    let status = caller::status(&mut connection)?;
    Ok((status.engine == "kernel").then_some(status))
}

/// Policy and quantum of the traced scheduler.
pub struct TraceSettings {
    policy: Policy,
    quantum_ns: u64,
    is_daemon: bool,
}

impl TraceSettings {
    /// The daemon's settings if it has the kernel engine, otherwise those of the
    /// arguments.
    pub fn new(daemon: Option<&StatusReport>, args: &TraceArgs) -> Result<Self> {
        let settings = match daemon {
            Some(daemon) => {
                if args.policy.is_some() || args.quantum.is_some() {
                    return Err(WrongUsage(
                        "--policy and --quantum do not apply to the daemon's scheduler, which \
                         is traced: leave them out, or use `prorata configure`"
                            .to_owned(),
                    )
                    .into());
                }
                if let ("none", Some(trouble)) = (daemon.mechanism.as_str(), &daemon.trouble) {
                    bail!("the kernel unloaded the daemon's scheduler: {trouble}");
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
            let only = "--check needs stride scheduling, because a lottery may pick any client: add \
                        --policy stride, or run `prorata configure --policy stride`";
            return Err(WrongUsage(only.to_owned()).into());
        }
        Ok(settings)
    }
}

/// The default quantum of a scheduler loaded for the trace.
const QUANTUM_NS: u64 = 20_000_000;

pub enum DecisionSource {
    /// A scheduler loaded for the trace.
    Own(Box<Scheduler>),
    /// The daemon's scheduler.
    Daemon(Tap),
}

impl DecisionSource {
    pub fn open(settings: &TraceSettings) -> Result<Self, KernelError> {
        if settings.is_daemon {
            return Tap::open().map(Self::Daemon);
        }
        let options = Options {
            policy: settings.policy,
            quantum_ns: settings.quantum_ns,
            scope: Scope::All,
            queues: Queues::One,
            hybrid: Mechanisms::NONE,
        };
        let scheduler = Scheduler::load_traced(&options)?;
        Ok(Self::Own(Box::new(scheduler)))
    }

    /// The decisions since the last call.
    pub fn take(&self) -> Result<Decisions> {
        match self {
            Self::Own(scheduler) => {
                let decisions = scheduler.take_decisions()?;
                scheduler.failure().map_or(Ok(decisions), Err)
            }
            Self::Daemon(tap) => tap.take_decisions(),
        }
        .context("cannot read further decisions")
    }
}
