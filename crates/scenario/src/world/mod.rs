//! What threads and clients do to one another: lock, call, send, signal, lend
//! tickets. The same wherever they live, on the simulated machine or as real
//! processes on a stage: a [`World`] says who is there and lets threads wait
//! and go on; who waits for what, and whose tickets work for whom meanwhile, is
//! said here once.
//!
//! Threads and clients are small numbers, given away by the world.

mod deeds;
mod objects;
mod rights;
mod rules;
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
    /// Whether all who wait to send into a pipe are woken once it has room, and
    /// each sends anew. Else the room goes to who has waited longest.
    const WAKES_ALL_SENDERS: bool = false;

    /// What they meet at; at first [`Objects::new`].
    fn objects(&mut self) -> &mut Objects;

    /// Everybody's rights.
    fn ledger(&self) -> &Ledger;

    /// Applies an operation as the super-user. What the ledger refuses is
    /// told as an [`Event::Refused`], and nothing has changed.
    fn apply(&mut self, operation: Operation) -> Option<Outcome>;

    /// Whose a thread is.
    fn client_of(&self, thread: u32) -> u32;

    /// How many threads a client has.
    fn threads_of(&self, client: u32) -> u32;

    /// The instruction in which a thread waits.
    fn waits_in(&self, thread: u32) -> Instruction;

    /// For how long a thread that waits has done so.
    fn waited_ns(&self, thread: u32) -> u64;

    /// A thread that ran waits until [`World::ready`].
    fn block(&mut self, thread: u32, why: Why);

    /// A thread that waited can go on.
    fn ready(&mut self, thread: u32);

    /// A thread that waited takes the step in which it did anew. Only where
    /// [`World::WAKES_ALL_SENDERS`].
    fn repeat(&mut self, thread: u32) {
        unreachable!("thread {thread} goes on with the next step");
    }

    /// Something has happened.
    fn tell(&mut self, event: Event<'_>);

    /// A client's identifier in the ledger.
    fn client_id(&self, client: u32) -> ClientId {
        client_id(client)
    }
}
