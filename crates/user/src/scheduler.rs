//! System calls of the kernel's scheduler: policies, affinities, CPU clocks.

use std::io;
use std::sync::mpsc;

use rustix::thread::{CpuSet, Pid};

/// In the kernel's `include/uapi/linux/sched.h`.
const SCHED_EXT: libc::c_int = 7;

/// A thread's scheduling policy as the kernel numbers them, with the flag
/// `SCHED_RESET_ON_FORK` where it is set.
///
/// `sched_setscheduler(2)` keeps the nice value and a custom slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy(pub u32);

impl Policy {
    /// The ordinary one.
    pub const OTHER: Policy = Policy(libc::SCHED_OTHER as u32);
    pub(crate) const IDLE: Policy = Policy(libc::SCHED_IDLE as u32);

    /// The policy of a thread. Cost: about 0.2 us.
    pub fn of(tid: u32) -> io::Result<Policy> {
        // SAFETY: takes and returns plain numbers.
        let policy = unsafe { libc::sched_getscheduler(tid as libc::pid_t) };
        u32::try_from(policy)
            .map(Policy)
            .map_err(|_| io::Error::last_os_error())
    }

    /// Gives a thread this policy. Cost: about 1 us.
    pub fn set(self, tid: u32) -> io::Result<()> {
        self.set_at(tid, 0)
    }

    /// The same with a real-time priority, which is zero for all but real-time policies.
    pub(crate) fn set_at(self, tid: u32, priority: u32) -> io::Result<()> {
        let parameter = libc::sched_param {
            sched_priority: priority as libc::c_int,
        };
        // SAFETY: `parameter` outlives the call, which only reads it.
        let result = unsafe {
            libc::sched_setscheduler(tid as libc::pid_t, self.0 as libc::c_int, &parameter)
        };
        if result == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// Whether it has real-time priorities.
    pub(crate) fn is_real_time(self) -> bool {
        matches!(
            self.class() as libc::c_int,
            libc::SCHED_FIFO | libc::SCHED_RR
        )
    }

    fn flags(self) -> u32 {
        self.0 & libc::SCHED_RESET_ON_FORK as u32
    }

    /// With the flag.
    pub(crate) fn reset_on_fork(self) -> Policy {
        Policy(self.0 | libc::SCHED_RESET_ON_FORK as u32)
    }

    /// Without the flag.
    pub fn class(self) -> u32 {
        self.0 & !(libc::SCHED_RESET_ON_FORK as u32)
    }

    /// `SCHED_IDLE` with this policy's flags, which may not be dropped
    /// without privilege.
    pub(crate) fn demoted(self) -> Policy {
        Policy(Self::IDLE.0 | self.flags())
    }

    pub(crate) fn is_idle(self) -> bool {
        self.class() == Self::IDLE.0
    }

    /// Whether an engine may demote it. Real-time and deadline policies outrank every decision of
    /// an engine, and to restore them needs more rights than to demote them. (`SCHED_EXT` is
    /// ordinary unless such a scheduler is loaded; the members of a killed kernel engine are
    /// still in it.)
    pub fn is_fair(self) -> bool {
        matches!(
            self.class() as libc::c_int,
            libc::SCHED_OTHER | libc::SCHED_BATCH | libc::SCHED_IDLE | SCHED_EXT
        )
    }
}

/// Whether threads can be brought back from `SCHED_IDLE`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Return {
    /// No thread can.
    Never,
    /// Threads of a process can if its nice limit permits nice 0.
    WithinNiceLimit,
    /// All threads can: this process has `CAP_SYS_NICE`.
    Always,
}

impl Return {
    /// Finds out by a trial on an own thread that only sleeps, and so does not wait for a CPU in
    /// `SCHED_IDLE`.
    pub(crate) fn by_trial() -> io::Result<Return> {
        let (tell, told) = mpsc::sync_channel(1);
        let (end, ended) = mpsc::channel::<()>();
        let idle = move || {
            let _ = tell.send(rustix::thread::gettid().as_raw_pid() as u32);
            // Fails when the trial is over.
            let _ = ended.recv();
        };
        let thread = std::thread::Builder::new()
            .name("idle-trial".into())
            .spawn(idle)?;
        let there_and_back = |tid| {
            let before = Policy::of(tid)?;
            before.demoted().set(tid)?;
            before.set(tid)
        };
        let came_back = told.recv().is_ok_and(|tid| there_and_back(tid).is_ok());
        drop(end);
        let _ = thread.join();
        Ok(match (came_back, nice_limit(std::process::id())) {
            (false, _) => Return::Never,
            // Within the own limit the trial does not prove a capability.
            (true, Some(limit)) if limit >= NICE_LIMIT_OF_ZERO => Return::WithinNiceLimit,
            (true, _) => Return::Always,
        })
    }

    /// Whether the threads of this process can.
    pub(crate) fn holds_for(self, pid: u32) -> bool {
        match self {
            Return::Never => false,
            Return::WithinNiceLimit => {
                nice_limit(pid).is_some_and(|limit| limit >= NICE_LIMIT_OF_ZERO)
            }
            Return::Always => true,
        }
    }
}

/// `RLIMIT_NICE` that permits nice 0, and with it any higher nice value
/// (`getrlimit(2)`: the ceiling is 20 less the limit).
const NICE_LIMIT_OF_ZERO: u64 = 20;

fn nice_limit(pid: u32) -> Option<u64> {
    limit_of(pid, libc::RLIMIT_NICE)
}

/// Whether the kernel ends a process that has a real-time policy for some time without sleeping.
pub(crate) fn is_real_time_limited(pid: u32) -> bool {
    limit_of(pid, libc::RLIMIT_RTTIME) != Some(libc::RLIM_INFINITY)
}

fn limit_of(pid: u32, resource: libc::__rlimit_resource_t) -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: a null new limit changes nothing; `limit` outlives the call.
    let result =
        unsafe { libc::prlimit(pid as libc::pid_t, resource, std::ptr::null(), &mut limit) };
    (result == 0).then_some(limit.rlim_cur)
}

/// CPU time that all threads of a process used, with ended threads and the running slice but
/// without children. `None` once it is gone.
/// Cost: about 0.2 us.
pub fn cpu_time_ns(pid: u32) -> Option<u64> {
    // clock_getcpuclockid(3): the complement of the pid, and 2 for the clock
    // that sums up `sum_exec_runtime`.
    let clock = (!(pid as libc::clockid_t) << 3) | 2;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` outlives the call, which writes it.
    let result = unsafe { libc::clock_gettime(clock, &mut time) };
    (result == 0).then_some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// CPUs that a thread may use.
pub(crate) fn affinity(tid: u32) -> io::Result<CpuSet> {
    Ok(rustix::thread::sched_getaffinity(Pid::from_raw(
        tid as i32,
    ))?)
}

/// Binds a thread to these CPUs.
pub(crate) fn set_affinity(tid: u32, cpus: &CpuSet) -> io::Result<()> {
    Ok(rustix::thread::sched_setaffinity(
        Pid::from_raw(tid as i32),
        cpus,
    )?)
}

pub(crate) fn members(cpus: &CpuSet) -> impl Iterator<Item = usize> {
    (0..CpuSet::MAX_CPU).filter(|&cpu| cpus.is_set(cpu))
}

pub(crate) fn intersection(one: &CpuSet, other: &CpuSet) -> CpuSet {
    let mut both = CpuSet::new();
    let common = members(one).filter(|&cpu| other.is_set(cpu));
    common.for_each(|cpu| both.set(cpu));
    both
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trial_changes_nothing_and_repeats_its_answer() {
        let me = rustix::thread::gettid().as_raw_pid() as u32;
        let before = Policy::of(me).expect("we exist");
        let first = Return::by_trial().expect("threads can be had");
        assert_eq!(Return::by_trial().expect("threads can be had"), first);
        assert_eq!(Policy::of(me).expect("we exist"), before);
    }

    #[test]
    fn cpu_time_advances_and_ends_with_the_process() {
        let me = std::process::id();
        let before = cpu_time_ns(me).expect("we exist");
        let mut sum = 0u64;
        for i in 0..100_000u64 {
            sum = std::hint::black_box(sum.wrapping_add(i));
        }
        assert!(cpu_time_ns(me).expect("we exist") > before);
        let mut child = std::process::Command::new("true").spawn().expect("spawns");
        child.wait().expect("ends");
        assert_eq!(cpu_time_ns(child.id()), None);
    }

    #[test]
    fn flags_survive_demotion() {
        let flagged = Policy(Policy::OTHER.0 | libc::SCHED_RESET_ON_FORK as u32);
        assert!(flagged.demoted().is_idle());
        assert_eq!(flagged.demoted().flags(), flagged.flags());
        assert!(!Policy(libc::SCHED_FIFO as u32).is_fair());
    }
}
