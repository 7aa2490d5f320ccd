//! What TCP of Linux 2.4 adds to a pipe: the lock of a socket, and segments.
//!
//! **The lock** is `lock_sock()`. A thread holds the lock of its socket while it writes. The
//! soft interrupt that wakes the reader runs after the release, as the system call returns
//! (`ret_from_sys_call` until Linux 2.4.5). Another thread that wants to write sleeps. The
//! release wakes the first waiter that sleeps and hands nothing over: a third thread may take
//! the lock before, and the woken thread then sleeps again.
//!
//! **Segments** follow Nagle's algorithm. A message leaves at once if the reader has taken
//! and acknowledged all before it. Otherwise messages gather until the reader has read what
//! had arrived; its acknowledgement then brings all of them as one segment, which the CPU of
//! the reader carries.

use std::collections::VecDeque;

use prorata_scenario::threads::NO_THREAD;

/// All sockets of a machine, by the number of their pipe.
#[derive(Debug, Default)]
pub(crate) struct Sockets(Vec<Socket>);

#[derive(Clone, Debug)]
struct Socket {
    /// The thread that holds the lock; [`NO_THREAD`] while it is free.
    writer: u32,
    /// Threads that want the lock, first come first.
    waiters: VecDeque<Waiter>,
    /// Messages written and not read.
    unread: u32,
    /// Of these, the messages that have reached the reader's end.
    arrived: u32,
    /// Readers that wait.
    awaited: u32,
    /// A segment is on its way, or the reader has not come back for more.
    unacknowledged: bool,
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    thread: u32,
    /// It has not been woken since it last found the lock held.
    sleeps: bool,
}

impl Sockets {
    fn at(&mut self, pipe: u32) -> &mut Socket {
        let place = pipe as usize;
        if place >= self.0.len() {
            self.0.resize(place + 1, Socket::NEW);
        }
        &mut self.0[place]
    }

    /// A thread wants to write. Returns whether it has the lock. Otherwise it sleeps.
    pub(crate) fn lock(&mut self, pipe: u32, thread: u32) -> bool {
        let socket = self.at(pipe);
        let place = socket.waiters.iter().position(|w| w.thread == thread);
        if socket.writer == NO_THREAD {
            socket.writer = thread;
            place.map(|place| socket.waiters.remove(place));
            return true;
        }
        match place {
            Some(place) => socket.waiters[place].sleeps = true,
            None => socket.waiters.push_back(Waiter {
                thread,
                sleeps: true,
            }),
        }
        false
    }

    /// The writer releases the lock. Returns the thread to wake.
    pub(crate) fn release(&mut self, pipe: u32) -> Option<u32> {
        let socket = self.at(pipe);
        socket.writer = NO_THREAD;
        let waiter = socket.waiters.iter_mut().find(|waiter| waiter.sleeps)?;
        waiter.sleeps = false;
        Some(waiter.thread)
    }

    /// A thread begins to write a message. Returns whether the message leaves at once.
    pub(crate) fn begin_write(&mut self, pipe: u32) -> bool {
        let socket = self.at(pipe);
        let leaves = socket.unread == 0 && !socket.unacknowledged;
        socket.unacknowledged |= leaves;
        leaves
    }

    /// A message has been written.
    pub(crate) fn wrote(&mut self, pipe: u32, left_at_once: bool) {
        let socket = self.at(pipe);
        if socket.awaited > 0 {
            socket.awaited -= 1;
            return;
        }
        socket.unread += 1;
        socket.arrived += u32::from(left_at_once);
    }

    /// A thread begins to read: it acknowledges what it has read before. Returns whether that
    /// brings a segment.
    pub(crate) fn begin_read(&mut self, pipe: u32) -> bool {
        let socket = self.at(pipe);
        socket.unacknowledged = false;
        let brings = socket.arrived == 0 && socket.unread > 0;
        if brings {
            socket.arrived = socket.unread;
        }
        brings
    }

    /// A thread has read a message, or waits for one.
    pub(crate) fn read(&mut self, pipe: u32, waits: bool) {
        let socket = self.at(pipe);
        if waits {
            socket.awaited += 1;
            return;
        }
        socket.unread -= 1;
        // A message written meanwhile may be read before its segment is counted.
        socket.arrived = socket.arrived.saturating_sub(1);
    }
}

impl Socket {
    const NEW: Socket = Socket {
        writer: NO_THREAD,
        waiters: VecDeque::new(),
        unread: 0,
        arrived: 0,
        awaited: 0,
        unacknowledged: false,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_wakes_the_first_writer_that_sleeps_and_hands_nothing_over() {
        let mut sockets = Sockets::default();
        assert!(sockets.lock(7, 1));
        assert!(!sockets.lock(7, 2));
        assert!(!sockets.lock(7, 3));
        assert!(sockets.lock(8, 4), "another socket");
        assert_eq!(sockets.release(7), Some(2));
        // A thread that did not wait takes the lock before the woken one runs.
        assert!(sockets.lock(7, 1));
        assert_eq!(sockets.release(7), Some(3), "the other one is awake");
        assert!(sockets.lock(7, 1));
        assert!(!sockets.lock(7, 2));
        assert_eq!(sockets.release(7), Some(2), "it sleeps at its old place");
        assert!(sockets.lock(7, 2));
        assert_eq!(sockets.release(7), None);
        assert!(sockets.lock(7, 3));
        assert_eq!(sockets.release(7), None);
    }

    /// Writes a message. Returns whether it left at once.
    fn write(sockets: &mut Sockets) -> bool {
        let leaves = sockets.begin_write(0);
        sockets.wrote(0, leaves);
        leaves
    }

    /// Reads a message. Returns whether the acknowledgement before brought a segment.
    fn read(sockets: &mut Sockets) -> bool {
        let brings = sockets.begin_read(0);
        sockets.read(0, false);
        brings
    }

    #[test]
    fn messages_that_wait_for_an_acknowledgement_share_a_segment() {
        let mut sockets = Sockets::default();
        assert!(write(&mut sockets));
        assert_eq!([write(&mut sockets), write(&mut sockets)], [false, false]);
        assert!(!read(&mut sockets), "it had arrived");
        assert!(read(&mut sockets), "the two others come together");
        assert!(!write(&mut sockets), "the third is unread");
        assert!(!read(&mut sockets));
        assert!(read(&mut sockets));
        assert!(!sockets.begin_read(0));
        sockets.read(0, true);
        assert!(write(&mut sockets), "all is read and acknowledged");
    }

    #[test]
    fn a_message_that_wakes_its_reader_is_unacknowledged_until_the_reader_runs() {
        let mut sockets = Sockets::default();
        assert!(!sockets.begin_read(0));
        sockets.read(0, true);
        assert!(write(&mut sockets), "it is handed to the reader");
        assert!(!write(&mut sockets));
        assert!(read(&mut sockets), "the reader comes back for more");
        assert!(!sockets.begin_read(0), "nothing is left");
    }
}
