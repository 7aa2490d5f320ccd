//! Stride scheduling with dynamic participation, dynamic tickets, nonuniform
//! quanta and several CPUs (1995, 2), and what it shares with the race.
//!
//! Whoever has the smallest pass runs next; having used a part of a quantum,
//! it moves back by that part of its stride. A [`Stride`] is the paper's
//! algorithm; a [`Race`](super::Race) multiplies each step by a random number
//! and so becomes a lottery. All else is written once, in [`PassPolicy`].
//!
//! # What the paper leaves open
//!
//! * Equal passes: the lower client index first.
//! * There is no clock: the global pass moves with every charge, by the use
//!   charged (elapsed time is time used). On several CPUs it moves with every
//!   CPU's charges.
//! * A client that leaves with credit or debt finds it again when it comes
//!   back, however long it was away, as in the paper's Figure 3: nothing is
//!   gained or shed by sleeping.
//!
//! # Limits
//!
//! Clients whose place differs from the global pass by more than
//! [`LONGEST_WAIT`] passes, 2^17 quanta at one ticket and in proportion at
//! more, are held there. A charge counts for at most 2^16 quanta.

use alloc::vec::Vec;

use super::queue::{Entry, PassQueue};
use super::stride_place::{GlobalPass, Place, Remain, Standing};
use super::stride_service::{LONGEST_WAIT, MAX_SERVICE, PartUnit, STRIDE1};
use super::{ClientIndex, MAX_CLIENTS, Policy, PolicyError};

/// How long a client waits for its next turn: all that tells stride
/// scheduling from the race.
pub trait Wait {
    /// Whether the global pass is the pass of the latest winner (an earlier
    /// rule of the paper's, 1995, 7.1) instead of moving smoothly with time.
    const GLOBAL_FOLLOWS_WINNER: bool;

    /// The wait after having used `service`, both in units of
    /// `1 / STRIDE1` quantum: a ticket's passes.
    fn wait(&mut self, service: u64) -> u64;
}

/// Stride scheduling's wait: exactly the service used.
#[derive(Clone, Copy, Default, Debug)]
pub struct Exact;

impl Wait for Exact {
    const GLOBAL_FOLLOWS_WINNER: bool = false;

    #[inline]
    fn wait(&mut self, service: u64) -> u64 {
        service
    }
}

/// Stride scheduling (1995, 2): deterministic, pairwise error below one
/// quantum.
pub type Stride = PassPolicy<Exact>;

/// A policy that picks the client with the smallest pass.
#[derive(Clone, Debug)]
pub struct PassPolicy<W> {
    /// By client index.
    places: Vec<Place>,
    /// By client index; apart from the places because charges of whole quanta
    /// need no look at it.
    part_units: Vec<PartUnit>,
    /// Holds exactly the clients whose place is `queued`, at their pass.
    queue: PassQueue,
    global: GlobalPass,
    /// The global pass when clients were last held within [`LONGEST_WAIT`].
    held_at: u64,
    joined: usize,
    wait: W,
}

impl Stride {
    /// A scheduler without clients.
    pub fn new() -> Self {
        Self::with_wait(Exact, 0)
    }

    /// A scheduler whose global pass starts at `pass` instead of 0. Decisions
    /// do not depend on it; tests of wrap-around start near the end.
    pub fn starting_at(pass: u64) -> Self {
        Self::with_wait(Exact, pass)
    }
}

impl Default for Stride {
    fn default() -> Self {
        Self::new()
    }
}

impl<W: Wait> PassPolicy<W> {
    pub(super) fn with_wait(wait: W, pass: u64) -> Self {
        Self {
            places: Vec::new(),
            part_units: Vec::new(),
            queue: PassQueue::default(),
            global: GlobalPass::starting_at(pass),
            held_at: pass,
            joined: 0,
            wait,
        }
    }

    /// The place of a client that has joined.
    #[inline]
    fn joined(&self, client: ClientIndex) -> Result<&Place, PolicyError> {
        self.places
            .get(client.0 as usize)
            .filter(|place| place.joined())
            .ok_or(PolicyError::NotJoined(client))
    }

    /// Takes a client that stands anywhere to a new standing with `remain`;
    /// the one way in which tickets change (1995, Figures 3 and 5).
    fn stand(&mut self, client: ClientIndex, tickets: Option<u32>, remain: Remain) {
        let place = &mut self.places[client.0 as usize];
        let before = place.tickets();
        if place.queued() {
            self.queue.remove(Entry {
                pass: place.pass,
                client,
            });
        }
        self.global.change_tickets(before, 0);
        match tickets {
            None => place.withdraw(Standing::Left, remain),
            Some(0) => place.withdraw(Standing::Ticketless, remain),
            Some(tickets) => {
                place.compete(tickets, remain, &self.global);
                self.global.change_tickets(0, tickets);
            }
        }
        if place.queued() {
            self.queue.insert(Entry {
                pass: place.pass,
                client,
            });
        }
    }

    /// Moves a client back by `wait`, and puts it into the queue again.
    #[inline]
    fn put_off(&mut self, client: ClientIndex, wait: u64) {
        let place = &mut self.places[client.0 as usize];
        if place.queued() {
            self.queue.remove(Entry {
                pass: place.pass,
                client,
            });
        }
        place.taken = false;
        if place.standing == Standing::Competing {
            if W::GLOBAL_FOLLOWS_WINNER && place.lead(&self.global) < 0 {
                place.set_lead(0, &self.global);
            }
            place.advance(wait);
            if place.lead(&self.global) > LONGEST_WAIT {
                place.set_lead(LONGEST_WAIT, &self.global);
            }
            self.queue.insert(Entry {
                pass: place.pass,
                client,
            });
        } else {
            let remain = place.remain(&self.global);
            place.withdraw(Standing::Ticketless, Remain(remain.0 + i128::from(wait)));
        }
    }

    /// Holds everybody within [`LONGEST_WAIT`] behind the global pass, once
    /// it has moved so far that somebody could get out of comparison. That
    /// takes at least 2^16 quanta for each ticket in the competition, so the
    /// visit to all clients costs nothing on average.
    #[inline]
    fn hold_within_reach(&mut self) {
        if self.global.pass.wrapping_sub(self.held_at) >= MAX_SERVICE {
            self.hold_all_within_reach();
        }
    }

    #[cold]
    fn hold_all_within_reach(&mut self) {
        self.held_at = self.global.pass;
        self.queue.clear();
        for (index, place) in self.places.iter_mut().enumerate() {
            if place.standing == Standing::Competing && place.lead(&self.global) < -LONGEST_WAIT {
                place.set_lead(-LONGEST_WAIT, &self.global);
            }
            if place.queued() {
                self.queue.insert(Entry {
                    pass: place.pass,
                    client: ClientIndex(index as u32),
                });
            }
        }
    }
}

/// Cost of each call: that of the queue's operation. `join` allocates when an
/// index is higher than all before it.
impl<W: Wait> Policy for PassPolicy<W> {
    fn join(&mut self, client: ClientIndex, tickets: u32) -> Result<(), PolicyError> {
        if client.0 >= MAX_CLIENTS {
            return Err(PolicyError::TooManyClients(client));
        }
        let index = client.0 as usize;
        if index >= self.places.len() {
            self.places.resize(index + 1, Place::UNKNOWN);
            self.part_units.resize(index + 1, PartUnit::NONE);
        }
        let place = &self.places[index];
        let remain = match place.standing {
            Standing::Unknown => Remain(self.wait.wait(STRIDE1).into()),
            Standing::Left => place.remain(&self.global),
            _ => return Err(PolicyError::AlreadyJoined(client)),
        };
        self.joined += 1;
        self.stand(client, Some(tickets), remain);
        Ok(())
    }

    fn leave(&mut self, client: ClientIndex) -> Result<(), PolicyError> {
        let remain = self.joined(client)?.remain(&self.global);
        self.joined -= 1;
        self.stand(client, None, remain);
        self.places[client.0 as usize].taken = false;
        Ok(())
    }

    fn forget(&mut self, client: ClientIndex) {
        // Refused only for who does not compete, which is as well.
        let _ = self.leave(client);
        let index = client.0 as usize;
        if index < self.places.len() {
            self.places[index] = Place::UNKNOWN;
            self.part_units[index] = PartUnit::NONE;
        }
    }

    fn set_tickets(&mut self, client: ClientIndex, tickets: u32) -> Result<(), PolicyError> {
        let place = self.joined(client)?;
        if place.tickets() != tickets {
            let remain = place.remain(&self.global);
            self.stand(client, Some(tickets), remain);
        }
        Ok(())
    }

    fn pick(&mut self) -> Option<ClientIndex> {
        let first = self.queue.first()?;
        if W::GLOBAL_FOLLOWS_WINNER {
            let ahead = first.pass.wrapping_sub(self.global.pass) as i64;
            if ahead > 0 {
                self.global.follow(first.pass);
                self.hold_within_reach();
            }
        }
        Some(first.client)
    }

    fn take(&mut self, client: ClientIndex) -> Result<(), PolicyError> {
        let place = self.joined(client)?;
        if place.queued() {
            self.queue.remove(Entry {
                pass: place.pass,
                client,
            });
        }
        self.places[client.0 as usize].taken = true;
        Ok(())
    }

    fn charge(&mut self, client: ClientIndex, used: u64, quantum: u64) -> Result<(), PolicyError> {
        self.joined(client)?;
        if quantum == 0 {
            return Err(PolicyError::ZeroQuantum(client));
        }
        let service = self.part_units[client.0 as usize].service(used, quantum);
        let wait = self.wait.wait(service);
        if !W::GLOBAL_FOLLOWS_WINNER {
            self.global.advance(service);
        }
        self.put_off(client, wait);
        self.hold_within_reach();
        Ok(())
    }

    fn charges_add_up(&self) -> bool {
        // In the race each charge is multiplied by a number of its own.
        !W::GLOBAL_FOLLOWS_WINNER
    }

    fn total_tickets(&self) -> u64 {
        self.global.tickets()
    }

    fn len(&self) -> usize {
        self.joined
    }
}
