//! The nice values of clients (1999, 3.4): a client's base tickets follow those of its processes.
//!
//! A process counts with the nice value of its first thread, if it used CPU time or wanted to when
//! its client was last seen to run. So a shell that waits for a nice program does not count, and the
//! processes of a client that is held down count as they did before. Each look follows `renice`.

use prorata_core::dispatcher::Dispatcher;
use prorata_core::hybrid::{FACTOR_ONE, Nice, NiceLaw, NiceMean};

use crate::client::Client;
use crate::process::Process;
use crate::procfs::Stat;

/// The nice value of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NiceValue {
    factor: u32,
    /// Whether the process wanted to run, if it was looked at lately.
    wants: bool,
    /// Whether it ran, or wanted to, when its client last ran.
    counts: bool,
}

impl NiceValue {
    /// Of a new process.
    pub(crate) fn of(stat: &Stat) -> Self {
        Self {
            factor: factor(stat.nice),
            wants: stat.is_runnable(),
            counts: false,
        }
    }

    /// The process is looked at.
    pub(crate) fn look(&mut self, stat: &Stat) {
        self.factor = factor(stat.nice);
        self.wants = stat.is_runnable();
    }
}

fn factor(nice: i32) -> u32 {
    let nice = i8::try_from(nice).ok().and_then(Nice::new);
    NiceLaw::Linux.factor(nice.unwrap_or_default())
}

/// The factor of a client's nice values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NiceFactor {
    now: u32,
    told: u32,
}

impl Default for NiceFactor {
    fn default() -> Self {
        Self {
            now: FACTOR_ONE,
            told: FACTOR_ONE,
        }
    }
}

impl NiceFactor {
    /// Whether the dispatcher knows it.
    pub(crate) fn is_told(self) -> bool {
        self.now == self.told
    }
}

impl Client {
    /// To be called after a look at its processes.
    pub(crate) fn find_nice_factor(&mut self) {
        let ran = |process: &Process| process.progressed || process.nice.wants;
        let any_ran = self.processes.iter().any(ran);
        let mut mean = NiceMean::default();
        for process in &mut self.processes {
            if any_ran {
                process.nice.counts = ran(process);
            }
            if process.nice.counts {
                mean.add(process.nice.factor);
            }
            process.nice.wants = false;
        }
        // A client whose processes have all ended keeps the factor for what it still is charged.
        self.nice.now = mean.factor().unwrap_or(self.nice.now);
    }

    /// Tells the dispatcher.
    pub(crate) fn tell_nice_factor(&mut self, dispatcher: &mut Dispatcher) {
        if !self.nice.is_told() {
            self.nice.told = self.nice.now;
            dispatcher.set_nice_factor(self.id, self.nice.now);
        }
    }
}
