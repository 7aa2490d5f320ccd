//! Messages that the server has received from a user and not yet sent on.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::room::Message;

/// Most messages that wait. The thread that receives one more waits, too.
const CAPACITY: usize = 64;

/// Messages on their way from the thread that receives to the one that sends.
#[derive(Debug)]
pub struct Relay {
    state: Mutex<State>,
    /// There is a message, or none will come.
    filled: Condvar,
    /// There is space, or none is needed.
    emptied: Condvar,
}

#[derive(Debug)]
struct State {
    messages: VecDeque<Message>,
    /// Whether more may come.
    is_open: bool,
    /// Whether a thread sends them.
    is_served: bool,
}

impl Relay {
    /// An empty relay.
    pub fn new() -> Self {
        Self {
            state: Mutex::new(State {
                messages: VecDeque::with_capacity(CAPACITY),
                is_open: true,
                is_served: true,
            }),
            filled: Condvar::new(),
            emptied: Condvar::new(),
        }
    }

    /// Adds a message when there is space. Drops the message if no thread sends any
    /// more.
    pub fn push(&self, message: Message) {
        let mut state = self.state();
        while state.messages.len() == CAPACITY && state.is_served {
            let woken = self.emptied.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
        if state.is_served {
            state.messages.push_back(message);
            self.filled.notify_one();
        }
    }

    /// Takes the first message when there is one; none if no more will come.
    pub fn pop(&self) -> Option<Message> {
        let mut state = self.state();
        while state.messages.is_empty() && state.is_open {
            let woken = self.filled.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
        let message = state.messages.pop_front();
        self.emptied.notify_one();
        message
    }

    /// No more will come.
    pub fn close(&self) {
        self.state().is_open = false;
        self.filled.notify_one();
    }

    /// No thread will take more messages.
    pub fn abandon(&self) {
        self.state().is_served = false;
        self.emptied.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::thread::scope;

    use super::*;

    #[test]
    fn messages_come_out_in_order_and_then_none() {
        let relay = Relay::new();
        let count = 10 * CAPACITY as u32;
        scope(|scope| {
            scope.spawn(|| {
                (0..count).for_each(|number| relay.push(Message::new(1, number)));
                relay.close();
            });
            for number in 0..count {
                assert!(relay.pop() == Some(Message::new(1, number)));
            }
            assert!(relay.pop().is_none());
        });
    }

    #[test]
    fn a_thread_that_waits_for_space_goes_on_when_no_thread_sends() {
        let relay = Relay::new();
        scope(|scope| {
            scope.spawn(|| (0..2 * CAPACITY as u32).for_each(|n| relay.push(Message::new(0, n))));
            relay.pop();
            relay.abandon();
        });
    }
}
