//! The thread that waits for news from the kernel.

use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Shared;

/// Longest time until the engine notices that the scheduler was unloaded. A
/// look takes microseconds.
const LOOK_AGAIN: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 250_000_000,
};

/// Looks after the scheduler until the engine ends.
pub(super) fn watch(shared: &Shared) {
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
        let _ = poll(&mut ready, Some(&LOOK_AGAIN));
        if ready[0].revents().contains(PollFlags::IN) {
            return;
        }
        let mut side = shared.side();
        side.look_after(&shared.dispatcher);
        if side.has_confined() {
            side.look_and_account(&shared.dispatcher, &shared.cpus);
        }
        if side.has_exited() {
            shared.exits.ring();
        }
    }
}
