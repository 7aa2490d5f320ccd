//! The rules by which threads and clients lock, call, send, signal and lend tickets. They
//! hold for simulated threads and for real processes alike. A [`World`] knows its threads,
//! blocks them and wakes them; this module decides which threads wait, and which tickets
//! are lent meanwhile.
//!
//! Threads and clients are small numbers that the world assigns.

mod deeds;
mod objects;
mod rights;
mod rules;
pub mod slots;
mod waiting;

use prorata_core::ids::ClientId;
use prorata_core::ledger::{Ledger, Operation, Outcome};

pub use deeds::Deeds;
pub use objects::Objects;
pub use rights::Rights;
pub use rules::{Change, Rules};
pub use waiting::{Onwards, Waiting};

use crate::event::{Event, Why};
use crate::plan::{Instruction, client_id};

/// Where threads live.
pub trait World {
    /// Whether all waiting senders of a pipe wake once it has room, and each sends anew.
    /// Otherwise the sender that has waited longest gets the room.
    const WAKES_ALL_SENDERS: bool = false;

    /// Whether waiting senders of a pipe wake, after a receive has left so many messages
    /// in it. Only where [`World::WAKES_ALL_SENDERS`].
    fn wakes_senders(&self, capacity: u32, messages: u32) -> bool {
        messages < capacity
    }

    /// The objects at which threads meet; at first [`Objects::new`].
    fn objects(&mut self) -> &mut Objects;

    /// The ledger of all rights.
    fn ledger(&self) -> &Ledger;

    /// Applies an operation as the super-user. If the ledger refuses it, nothing changes,
    /// and an [`Event::Refused`] is told.
    fn apply(&mut self, operation: Operation) -> Option<Outcome>;

    /// The client of a thread.
    fn client_of(&self, thread: u32) -> u32;

    /// How many threads a client has.
    fn threads_of(&self, client: u32) -> u32;

    /// The instruction in which a thread waits.
    fn waits_in(&self, thread: u32) -> Instruction;

    /// For how long a waiting thread has waited.
    fn waited_ns(&self, thread: u32) -> u64;

    /// Blocks a running thread until [`World::ready`].
    fn block(&mut self, thread: u32, why: Why);

    /// Wakes a waiting thread.
    fn ready(&mut self, thread: u32);

    /// Wakes a waiting thread, which takes the step in which it waited anew. Only where
    /// [`World::WAKES_ALL_SENDERS`].
    fn repeat(&mut self, thread: u32) {
        unreachable!("thread {thread} goes on with the next step");
    }

    /// Tells of an event.
    fn tell(&mut self, event: Event<'_>);

    /// A client's identifier in the ledger.
    fn client_id(&self, client: u32) -> ClientId {
        client_id(client)
    }
}
