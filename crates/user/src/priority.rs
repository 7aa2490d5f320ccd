//! Real-time priorities, where they are permitted.
//!
//! ```text
//!   4  the guardian: it must get the machine back from all below
//!   3  keepers: none waits for another thread of the engine at a boundary
//!   2  decision thread, and the daemon's control thread: claims are made and freed although
//!      all slots are taken (2005, Figure 3.2: the resource manager is above the slots)
//!   1  the schedulee of a slot
//!   0  all others
//! ```

use std::io;
use std::sync::mpsc;

use libc::sched_attr;

use crate::scheduler::Policy;

/// Of a schedulee in its slot.
pub(crate) const SLOT: u32 = 1;
/// Of the engine's other threads.
pub(crate) const ENGINE: u32 = 2;
/// Of keepers.
pub(crate) const KEEPER: u32 = 3;
/// Of the guardian.
pub(crate) const GUARDIAN: u32 = 4;

const FIFO: Policy = Policy(libc::SCHED_FIFO as u32);

/// How schedulees are raised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Raise {
    /// With `SCHED_RESET_ON_FORK` where that can be cleared again.
    pub(crate) policy: Policy,
}

impl Raise {
    /// Finds out by a trial on an own thread, which only sleeps. `None`: nothing may be raised,
    /// because this user may not put a thread, or the guardian, above it.
    pub(crate) fn by_trial() -> io::Result<Option<Raise>> {
        let (tell, told) = mpsc::sync_channel(1);
        let (end, ended) = mpsc::channel::<()>();
        let sleep = move || {
            let _ = tell.send(rustix::thread::gettid().as_raw_pid() as u32);
            // Fails when the trial is over.
            let _ = ended.recv();
        };
        let thread = std::thread::Builder::new()
            .name("raise-trial".into())
            .spawn(sleep)?;
        let there_and_back = |tid: u32, policy: Policy| {
            let before = Policy::of(tid)?;
            policy.set_at(tid, GUARDIAN)?;
            before.set(tid)
        };
        let raise = told.recv().ok().and_then(|tid| {
            there_and_back(tid, FIFO).ok()?;
            let may_clear = there_and_back(tid, FIFO.reset_on_fork()).is_ok();
            let policy = if may_clear {
                FIFO.reset_on_fork()
            } else {
                FIFO
            };
            Some(Raise { policy })
        });
        drop(end);
        let _ = thread.join();
        Ok(raise)
    }

    /// Whether a thread with this policy and priority was raised, or inherited that.
    pub(crate) fn is_of_slot(policy: Policy, priority: u32) -> bool {
        policy.class() == FIFO.class() && priority == SLOT
    }
}

const RESET_ON_FORK: u64 = libc::SCHED_FLAG_RESET_ON_FORK as u64;

/// Of the policy `SCHED_OTHER`, and otherwise all zero.
fn no_attributes() -> sched_attr {
    // SAFETY: all bits zero are attributes.
    let mut attributes: sched_attr = unsafe { std::mem::zeroed() };
    attributes.size = size_of::<sched_attr>() as u32;
    attributes
}

/// A thread's policy and real-time priority. Cost: about 0.3 us.
pub(crate) fn of(tid: u32) -> io::Result<(Policy, u32)> {
    let mut attributes = no_attributes();
    let size = attributes.size;
    // SAFETY: `attributes` outlives the call, which writes at most `size` bytes.
    let result = unsafe {
        libc::syscall(
            libc::SYS_sched_getattr,
            tid,
            &raw mut attributes,
            size,
            0u32,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let policy = Policy(attributes.sched_policy);
    let policy = match attributes.sched_flags & RESET_ON_FORK {
        0 => policy,
        _ => policy.reset_on_fork(),
    };
    Ok((policy, attributes.sched_priority))
}

/// Has the calling thread run before the schedulees of slots, where this user may do so. The
/// daemon's thread that takes claims needs that: all slots may be taken.
pub fn outrank_slots() {
    wake_promptly(ENGINE);
}

/// Undoes [`outrank_slots`] for the calling thread. One that may not give a priority up keeps it.
pub fn wake_as_others() {
    if let Ok(tid) = u32::try_from(rustix::thread::gettid().as_raw_pid())
        && Policy::of(tid).is_ok_and(|policy| policy.class() == FIFO.class())
    {
        // Clearing the flag needs a right; the policy with it is ordinary, too.
        let _ = Policy::OTHER
            .set(tid)
            .or_else(|_| Policy::OTHER.reset_on_fork().set(tid));
    }
}

/// Has this thread run as soon as it wakes: with this real-time priority or the highest below that
/// is permitted, else with the shortest slice, which gives it an early deadline (Linux 6.12 and
/// later).
pub(crate) fn wake_promptly(priority: u32) {
    let mut permitted = (1..=priority).rev();
    if permitted.any(|priority| FIFO.reset_on_fork().set_at(0, priority).is_ok()) {
        return;
    }
    // SAFETY: takes and returns plain numbers; 0 is this process.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    let attributes = sched_attr {
        sched_policy: libc::SCHED_OTHER as u32,
        sched_nice: nice,
        // The length of a slice.
        sched_runtime: 100_000,
        ..no_attributes()
    };
    // SAFETY: `attributes` outlives the call, has the size that it states and
    // is only read. Older kernels ignore the slice.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZero::new(1));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trial_changes_nothing_and_repeats_its_answer() {
        let me = rustix::thread::gettid().as_raw_pid() as u32;
        let before = of(me).expect("we exist");
        assert_eq!(before.0, Policy::of(me).expect("we exist"));
        let first = Raise::by_trial().expect("threads can be had");
        assert_eq!(Raise::by_trial().expect("threads can be had"), first);
        assert_eq!(of(me).expect("we exist"), before);
    }
}
