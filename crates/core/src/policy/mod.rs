//! Policies: which client runs next, in proportion to tickets.
//!
//! Every policy implements [`Policy`]. A policy knows a client as a dense index
//! and a number of tickets; the ledger knows what a ticket is worth. A
//! randomised policy owns its generator, given at construction.

pub mod baseline;
pub mod credit;
mod hierarchical;
mod hierarchical_tree;
pub mod inverse;
pub mod lottery;
mod name;
mod queue;
mod queue_chunks;
mod queue_fifos;
mod queue_front;
mod queue_wheel;
mod race;
mod race_exponential;
mod stride;
mod stride_ahead;
mod stride_out_of_order;
mod stride_position;
mod stride_service;

use alloc::vec::Vec;

use crate::hybrid::Nice;
pub use crate::ids::ClientIndex;
pub use hierarchical::HierarchicalStride;
pub use name::{PolicyName, UnknownPolicy};
pub use race::{Exponential, Race};
pub use stride::{Exact, PassPolicy, Stride, Wait};
pub use stride_service::{LONGEST_WAIT, MAX_SERVICE, STRIDE1};

/// A request that a policy refuses; nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PolicyError {
    /// `join` of a client that competes already.
    #[error("{0} competes already: leave before joining again")]
    AlreadyJoined(ClientIndex),
    /// Any other call for a client that does not compete.
    #[error("{0} does not compete: join first")]
    NotJoined(ClientIndex),
    /// A quantum of zero.
    #[error("{0} was charged against a quantum of zero: a quantum lasts at least one unit")]
    ZeroQuantum(ClientIndex),
    /// An index past the limit of [`MAX_CLIENTS`].
    #[error("{0} is past the limit of {MAX_CLIENTS} clients")]
    TooManyClients(ClientIndex),
}

/// Client indexes are below this number, so that tables stay bounded.
pub const MAX_CLIENTS: u32 = 1 << 24;

/// Picks the client that runs next (1994, 4.2; 1995, 2).
///
/// `pick` names the winner without removing it. On a machine with one CPU the
/// caller picks, runs the client, and charges it. On several CPUs it `take`s
/// each winner before picking the next; `charge` puts a taken client back.
///
/// Units of `used` and `quantum` are the caller's, the same in both
/// (nanoseconds in the engines).
pub trait Policy {
    /// Makes room for clients with indices below `clients`, and for no more.
    /// Without this, room doubles as clients come.
    fn reserve(&mut self, _clients: usize) {}

    /// Lets `client` compete with `tickets`. A client that competed before
    /// takes up what remained of its wait (1995, 2.2), adjusted if its tickets
    /// changed meanwhile (1995, 2.3). Zero tickets are legal: the client is not
    /// picked until it has some (1995, 3.1).
    fn join(&mut self, client: ClientIndex, tickets: u32) -> Result<(), PolicyError>;

    /// Takes `client` out of the competition and remembers what remains of its
    /// wait. Legal for a taken client too.
    fn leave(&mut self, client: ClientIndex) -> Result<(), PolicyError>;

    /// Forgets what `leave` remembered (and leaves first if need be), so that
    /// the index can be given to a new client. Unknown clients are ignored.
    fn forget(&mut self, client: ClientIndex);

    /// Changes the tickets of a competing client, keeping the fraction of its
    /// wait that remains (1995, 2.3 and Figure 5). Zero is legal.
    fn set_tickets(&mut self, client: ClientIndex, tickets: u32) -> Result<(), PolicyError>;

    /// The client that is to run next, among those that compete, hold tickets
    /// and are not taken. A second `pick` without another call in between may
    /// differ only in a randomised policy.
    fn pick(&mut self) -> Option<ClientIndex>;

    /// Marks `client` as running: it is not picked until it is charged. Its
    /// tickets still count.
    fn take(&mut self, client: ClientIndex) -> Result<(), PolicyError>;

    /// Undoes `take` for a client that is not to run after all: it waits again
    /// where it stood.
    fn untake(&mut self, client: ClientIndex) -> Result<(), PolicyError>;

    /// Picks and takes the first client that `fits`. The others before it are
    /// passed over: they wait where they stood. Allocates if there are any.
    ///
    /// Cost: a `pick`, a `take` and an `untake` for each of them.
    fn take_first(&mut self, fits: &mut dyn FnMut(ClientIndex) -> bool) -> Option<ClientIndex> {
        pass_over(self, fits)
    }

    /// Accounts for `used` of a `quantum` by any competing client, picked or
    /// not, and puts it back if it was taken. Using less than the quantum
    /// brings the next turn nearer (1994, 3.4; 1995, 2.4); using more puts it
    /// off.
    fn charge(&mut self, client: ClientIndex, used: u64, quantum: u64) -> Result<(), PolicyError>;

    /// As `charge` and then `leave`, for a client that used CPU time and
    /// blocks. A policy need not put the client back in between.
    fn charge_and_leave(
        &mut self,
        client: ClientIndex,
        used: u64,
        quantum: u64,
    ) -> Result<(), PolicyError> {
        self.charge(client, used, quantum)?;
        self.leave(client)
    }

    /// Accounts for `used` of a turn of which `before` is charged already: so that the
    /// two pieces count as one turn (1999, 3.1 and Figure 1).
    fn charge_more(
        &mut self,
        client: ClientIndex,
        _before: u64,
        used: u64,
        quantum: u64,
    ) -> Result<(), PolicyError> {
        self.charge(client, used, quantum)
    }

    /// The clients that run have used `uncharged` of a `quantum` in all for which they are not
    /// charged yet. Time passes by as much for the clients that compete now; the charges to come
    /// do not count it again. To be called before clients join or leave, or tickets change, while
    /// others run (1995, Figure 3: `global_pass_update`).
    fn pass_time(&mut self, _uncharged: u64, _quantum: u64) {}

    /// Whether a client that used so much of its turn is due to run before another one that
    /// used so much, by at least `gain`. A policy that draws lots holds a new lottery.
    fn precedes(
        &self,
        _client: (ClientIndex, u64),
        _other: (ClientIndex, u64),
        _gain: u64,
        _quantum: u64,
    ) -> bool {
        true
    }

    /// A client that is away comes back behind the present by no more than what `lead`
    /// of a quantum moves it. It owes no more: the rest of the time that it used out of
    /// order was due to it while it was away (1999).
    fn run_off(&mut self, _client: ClientIndex, _lead: u64, _quantum: u64) {}

    /// From now on and until its next charge a competing client's tickets count `boost` times,
    /// in units of 1 / [`BOOST_ONE`](crate::hybrid::BOOST_ONE), instead of with its
    /// compensation; without a boost they count with its compensation (1999, 4.1). Only
    /// lotteries with seats know boosts.
    fn set_boost(&mut self, _client: ClientIndex, _boost: Option<u32>) {}

    /// A client has another nice value, whether it competes or not. Its tickets follow nice
    /// values before a policy is told of them; only 4.4BSD's scheduler has a use of its own.
    fn set_nice(&mut self, _client: ClientIndex, _nice: Nice) {}

    /// Whether the policy has to know the time: then [`Policy::advance`] comes before a pick.
    fn keeps_time(&self) -> bool {
        false
    }

    /// The time is `now_ns`. It never goes back.
    fn advance(&mut self, _now_ns: u64) {}

    /// Whether two charges equal one charge for the sum. They do not where each
    /// charge counts as a turn, as for compensation tickets (1994, 3.4). Time
    /// used outside a turn must then be charged with the next turn.
    fn charges_add_up(&self) -> bool {
        true
    }

    /// Whether a charge outside a turn puts off the client's next turn by as much as it is. A lottery
    /// without memory has no place for that: there, slots of a timetable come on top of tickets.
    fn carries_debt(&self) -> bool {
        true
    }

    /// The client that is likely to be picked after so many others, if that is
    /// cheap to say. It may be wrong: callers only fetch memory ahead.
    fn likely_after(&self, _picks: usize) -> Option<ClientIndex> {
        None
    }

    /// Fetches the memory of a client that is about to join, leave or be
    /// charged.
    fn prefetch(&self, _client: ClientIndex) {}

    /// Sum of the tickets of all competing clients, taken ones included.
    fn total_tickets(&self) -> u64;

    /// Number of competing clients, taken ones and those without tickets
    /// included.
    fn len(&self) -> usize;

    /// Whether no client competes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// As [`Policy::take_first`], where a pick that is not taken has no effect.
fn pass_over<P: Policy + ?Sized>(
    policy: &mut P,
    fits: &mut dyn FnMut(ClientIndex) -> bool,
) -> Option<ClientIndex> {
    const COMPETES: &str = "a client that was picked competes";
    let mut passed_over = Vec::new();
    let first = loop {
        let Some(client) = policy.pick() else {
            break None;
        };
        policy.take(client).expect(COMPETES);
        if fits(client) {
            break Some(client);
        }
        passed_over.push(client);
    };
    for client in passed_over {
        policy.untake(client).expect(COMPETES);
    }
    first
}
