//! The parts of the demo.

use std::thread;

use prorata_load::DeadlineReservation;
use rustix::process::setpriority_process;
use rustix::thread::{CpuSet, sched_setaffinity};

/// The nice value of what must not wait.
pub const NICE: i32 = -20;

/// How Linux or prorata schedules the programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// As they are.
    Plain,
    /// Controller and gang have nice -20, the jobs of the second client 5.
    Nice,
    /// Controller and gang have `SCHED_DEADLINE`, the jobs of the second client nice 5.
    Deadline,
    /// Controller and gang have slots, and all are clients with tickets.
    Slots,
}

impl Part {
    pub const ALL: [Part; 4] = [Part::Plain, Part::Nice, Part::Deadline, Part::Slots];

    pub fn name(self) -> &'static str {
        match self {
            Part::Plain => "plain Linux",
            Part::Nice => "nice -20",
            Part::Deadline => "SCHED_DEADLINE",
            Part::Slots => "slots",
        }
    }

    /// Why this user may not run the part, by trial.
    pub fn refusal(self, cpus: &[u32]) -> Option<String> {
        let reservation = DeadlineReservation {
            time_ns: 1_000_000,
            period_ns: 100_000_000,
        };
        match self {
            Part::Plain | Part::Slots => None,
            Part::Nice => {
                let nicer = || Ok(setpriority_process(None, NICE)?);
                let refusal = trial(cpus, nicer)?;
                Some(format!(
                    "nice {NICE} needs root or CAP_SYS_NICE ({refusal})"
                ))
            }
            Part::Deadline => {
                let refusal = trial(cpus, move || reservation.take())?;
                Some(format!(
                    "SCHED_DEADLINE needs root or CAP_SYS_NICE, and all CPUs of the machine ({refusal})"
                ))
            }
        }
    }
}

/// What a thread of its own may not do, which ends with it.
fn trial(
    cpus: &[u32],
    attempt: impl FnOnce() -> std::io::Result<()> + Send,
) -> Option<std::io::Error> {
    let bound = || {
        let mut set = CpuSet::new();
        cpus.iter().for_each(|&cpu| set.set(cpu as usize));
        sched_setaffinity(None, &set)?;
        attempt()
    };
    thread::scope(|scope| match scope.spawn(bound).join() {
        Ok(tried) => tried.err(),
        Err(panic) => std::panic::resume_unwind(panic),
    })
}
