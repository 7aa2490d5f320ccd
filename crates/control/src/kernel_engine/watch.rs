//! The thread that waits for news from the kernel.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use prorata_user::{outrank_slots, wake_as_others};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Shared;

/// Longest time until the engine notices that the scheduler was unloaded. A
/// look takes microseconds.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// Looks after the scheduler until the engine ends.
pub(super) fn watch(shared: &Shared) {
    let mut looked = Instant::now();
    let mut outranks = false;
    let longest = Timespec {
        tv_sec: 0,
        tv_nsec: LOOK_AGAIN.subsec_nanos().into(),
    };
    loop {
        // Another scheduler may take the place of this one meanwhile.
        let exits = shared.side().exits();
        let mut ready = vec![PollFd::new(&shared.end, PollFlags::IN)];
        let exits = exits.as_ref().map(AsFd::as_fd);
        ready.extend(
            exits
                .as_ref()
                .map(|exits| PollFd::new(exits, PollFlags::IN)),
        );
        // Interrupted or not, there may be news.
        let _ = poll(&mut ready, Some(&longest));
        if ready[0].revents().contains(PollFlags::IN) {
            return;
        }
        let mut side = shared.side();
        // The threads that tell the kernel of slots wait for this one.
        if std::mem::replace(&mut outranks, side.slots.is_some()) != outranks {
            match outranks {
                true => outrank_slots(),
                false => wake_as_others(),
            }
        }
        side.look_after(&shared.dispatcher);
        // News may come more often.
        let is_due = looked.elapsed() >= LOOK_AGAIN;
        if is_due {
            looked = Instant::now();
        }
        if is_due && side.has_confined() {
            side.look_and_account(&shared.dispatcher, &shared.cpus);
        }
        shared.tell_exits(&side);
    }
}
