//! Clients, and the order in which their threads wait.

use prorata_core::dispatcher::Dispatcher;
use prorata_core::prefetch::prefetch;
use prorata_scenario::plan::client_id;
use prorata_scenario::threads::Thread;

use super::{Due, MANY_CLIENTS, NONE};

/// One client: 20 bytes.
#[derive(Clone, Debug)]
pub(super) struct Client {
    /// Threads that can run but have no CPU, first come first.
    pub(super) ready: Fifo,
    /// Threads that have not exited.
    pub(super) threads: u32,
    /// Runnable threads: ready or running.
    pub(super) runnable: u32,
    /// Its turn, by number; [`NONE`] while it has none. It has CPUs only in a
    /// turn.
    pub(super) turn: u32,
}

impl Client {
    /// One without threads.
    pub(super) const NEW: Client = Client {
        ready: Fifo::EMPTY,
        threads: 0,
        runnable: 0,
        turn: NONE,
    };
}

/// A queue of threads, linked through [`Thread::next`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Fifo {
    pub(super) first: u32,
    last: u32,
}

impl Fifo {
    const EMPTY: Fifo = Fifo {
        first: NONE,
        last: NONE,
    };

    pub(super) fn push(&mut self, threads: &mut [Thread], thread: u32) {
        threads[thread as usize].next = NONE;
        match self.last {
            NONE => self.first = thread,
            last => threads[last as usize].next = thread,
        }
        self.last = thread;
    }

    pub(super) fn pop(&mut self, threads: &[Thread]) -> Option<u32> {
        let thread = self.first;
        if thread == NONE {
            return None;
        }
        self.first = threads[thread as usize].next;
        if self.first == NONE {
            self.last = NONE;
        }
        Some(thread)
    }

    /// O(length).
    pub(super) fn remove(&mut self, threads: &mut [Thread], thread: u32) {
        let mut kept = Fifo::EMPTY;
        while let Some(first) = self.pop(threads) {
            if first != thread {
                kept.push(threads, first);
            }
        }
        *self = kept;
    }
}

/// Has the memory of a thread that is about to wake fetched: first its own,
/// later its client's, which can be known then without waiting for it.
#[inline]
pub(super) fn prefetch_due(
    threads: &[Thread],
    clients: &[Client],
    dispatcher: &Dispatcher,
    due: Due,
    nearest: bool,
) {
    if clients.len() < MANY_CLIENTS {
        return;
    }
    let Due::Wake { thread } = due else { return };
    if nearest {
        let client = threads[thread as usize].client;
        prefetch(clients, client as usize);
        dispatcher.prefetch(client_id(client));
    } else {
        prefetch(threads, thread as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_small() {
        assert!(size_of::<Client>() <= 20);
    }
}
