//! Processes of a run.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};

use prorata_control::ProcessId;
use prorata_user::procfs::stat;
use prorata_user::{EngineError, cpu_time_ns};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use rustix::thread::{CpuSet, sched_setaffinity};

/// A process that never outlives this.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// CPU time before it was ready, which does not count.
    before_ns: u64,
}

impl Process {
    /// Starts our own program under another name, which tells it its part; `configure` adds
    /// arguments. The process is bound to these CPUs, and in a process group of its own:
    /// the terminal's signals are for us.
    pub(crate) fn start(
        name: &str,
        cpus: &[u32],
        configure: impl FnOnce(&mut Command),
    ) -> io::Result<Process> {
        // The link finds our program even if the file was replaced.
        let mut command = Command::new("/proc/self/exe");
        command.arg0(name).process_group(0);
        configure(&mut command);
        let process = Process {
            child: command.spawn()?,
            before_ns: 0,
        };
        let mut set = CpuSet::new();
        cpus.iter().for_each(|&cpu| set.set(cpu as usize));
        sched_setaffinity(Some(Pid::from_child(&process.child)), &set)?;
        Ok(process)
    }

    pub(crate) fn id(&self) -> Result<ProcessId, EngineError> {
        ProcessId::of(self.child.id())
    }

    /// Number, state and CPU time of the process, for an error.
    pub(crate) fn describe(&self) -> String {
        describe(self.child.id())
    }

    /// CPU time counts from now on.
    pub(crate) fn is_ready(&mut self) {
        self.before_ns = cpu_time_ns(self.child.id()).unwrap_or(0);
    }

    /// CPU time that it has used since it was ready.
    pub(crate) fn received_ns(&self) -> u64 {
        let used_ns = cpu_time_ns(self.child.id()).unwrap_or(0);
        used_ns.saturating_sub(self.before_ns)
    }

    /// Ends it soon.
    pub(crate) fn kill(&mut self) {
        // It may have ended by itself; then there is nothing to kill.
        let _ = self.child.kill();
    }

    /// Whether it has ended. Its CPU time can still be read.
    pub(crate) fn has_ended(&self) -> bool {
        let pid = WaitId::Pid(Pid::from_child(&self.child));
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        // It cannot be waited for any more once nothing is left of it.
        !matches!(waitid(pid, options), Ok(None))
    }

    /// How it ended, if it has; nothing is left of it then.
    pub(crate) fn reap(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn describe(pid: u32) -> String {
    let state = stat(pid).map_or("unknown".to_owned(), |stat| {
        char::from(stat.state).to_string()
    });
    let used_ms = cpu_time_ns(pid).unwrap_or(0) / 1_000_000;
    format!("number {pid}, state {state}, {used_ms} ms of CPU time")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_tells_the_state_of_a_process() {
        let own = describe(std::process::id());
        assert!(
            own.contains(", state ") && !own.contains("unknown"),
            "{own}"
        );
        // Beyond the highest number of a process.
        let none = describe(1 << 22);
        assert!(none.ends_with("state unknown, 0 ms of CPU time"), "{none}");
    }
}
