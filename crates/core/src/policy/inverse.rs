//! The inverse lottery (1994, 6.2): who gives up a unit of a resource.

use alloc::vec::Vec;
use core::ops::{Add, Sub};

use rand_core::Rng;

use super::lottery::{PartialSums, Roster, Seat, Standing};
use super::{ClientIndex, Policy, PolicyError};
use crate::rng::{below, below_wide};

/// Picks losers: with n clients and T tickets in all, a client that holds t
/// tickets is picked with probability exactly `(1 - t/T) / (n - 1)`
/// (1994, 6.2).
///
/// The trait [`Policy`] is read from the loser's side. `pick` names the client
/// that gives up a unit. A client without tickets is not spared: it is the
/// likeliest loser. A taken client (one that is giving up a unit just now) is
/// not picked; among the others the chances stay in proportion to `T - t`.
/// `charge` only puts it back: there is nothing to compensate.
///
/// Where the formula is 0/0 the choice is still made: a single client always
/// loses, and if nobody holds tickets all lose equally often.
///
/// `pick` costs O(1): a client is drawn uniformly and loses with probability
/// `1 - t/T`, else the draw is repeated; at most two draws are expected.
/// Changes and [`InverseLottery::pick_victim`] cost O(lg n). 60 to 90 bytes a
/// client.
#[derive(Clone, Debug)]
pub struct InverseLottery<R> {
    roster: Roster,
    /// The clients that compete and are not taken, in no order.
    waiting: Vec<ClientIndex>,
    /// By client index; the place in `waiting` means something only for
    /// clients that are in it.
    clients: Vec<Holder>,
    /// Leaf i is the holding of client i, zero unless it is in `waiting`.
    holdings: PartialSums<Holding>,
    rng: R,
}

#[derive(Clone, Copy, Debug, Default)]
struct Holder {
    /// Place in `waiting`.
    place: u32,
    /// Units of the resource held.
    units: u32,
}

/// Sums over clients: below 2^56 and 2^88.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Holding {
    units: u64,
    /// Units times the holder's tickets.
    unit_tickets: u128,
}

impl Add for Holding {
    type Output = Holding;

    fn add(self, other: Holding) -> Holding {
        Holding {
            units: self.units + other.units,
            unit_tickets: self.unit_tickets + other.unit_tickets,
        }
    }
}

impl Sub for Holding {
    type Output = Holding;

    fn sub(self, other: Holding) -> Holding {
        Holding {
            units: self.units - other.units,
            unit_tickets: self.unit_tickets - other.unit_tickets,
        }
    }
}

impl Holding {
    fn of(seat: Seat, units: u32) -> Holding {
        match seat.standing {
            Standing::Waiting => Holding {
                units: u64::from(units),
                unit_tickets: u128::from(units) * u128::from(seat.tickets),
            },
            Standing::Away | Standing::Taken => Holding::default(),
        }
    }

    /// The sum of `(T - t) * units`, below 2^112.
    fn at_stake(self, total_tickets: u64) -> u128 {
        u128::from(total_tickets) * u128::from(self.units) - self.unit_tickets
    }
}

impl<R: Rng> InverseLottery<R> {
    /// An empty inverse lottery that draws from `rng`.
    pub fn new(rng: R) -> Self {
        InverseLottery {
            roster: Roster::default(),
            waiting: Vec::new(),
            clients: Vec::new(),
            holdings: PartialSums::new(),
            rng,
        }
    }

    /// Says how many units of the resource `client` holds: pages, say. None
    /// until told; remembered by `leave`. O(lg n).
    ///
    /// # Errors
    /// [`PolicyError::NotJoined`].
    pub fn set_holding(&mut self, client: ClientIndex, units: u32) -> Result<(), PolicyError> {
        let seat = self.roster.seat(client);
        if !seat.competes() {
            return Err(PolicyError::NotJoined(client));
        }
        let holder = &mut self.clients[client.0 as usize];
        let from = Holding::of(seat, holder.units);
        holder.units = units;
        let to = Holding::of(seat, units);
        self.holdings.replace(client.0 as usize, from, to);
        Ok(())
    }

    /// The client from which a page, or any unit, is to be taken: with
    /// probability proportional to both `1 - t/T` and the fraction of all units
    /// that it holds (1994, 6.2). None if nobody holds any. O(lg n).
    ///
    /// If that leaves no client a chance (the only holder has all tickets, or
    /// nobody has tickets), by holding alone.
    pub fn pick_victim(&mut self) -> Option<ClientIndex> {
        let total_tickets = self.roster.total_tickets();
        let total = self.holdings.total();
        let stake = |holding: Holding| match total.at_stake(total_tickets) {
            0 => u128::from(holding.units),
            _ => holding.at_stake(total_tickets),
        };
        if total.units == 0 {
            return None;
        }
        let losing = below_wide(&mut self.rng, stake(total));
        Some(self.victim(losing, stake))
    }

    /// The client at unit `losing` of the stakes, counted from zero in the
    /// order of the clients' indexes.
    fn victim(&self, mut losing: u128, stake: impl Fn(Holding) -> u128) -> ClientIndex {
        let leaf = self.holdings.find(|left| {
            let left = stake(left);
            let goes_right = losing >= left;
            if goes_right {
                losing -= left;
            }
            goes_right
        });
        ClientIndex(leaf as u32)
    }

    /// Brings the tables in line with a changed seat.
    fn follow(&mut self, client: ClientIndex, from: Seat, to: Seat) {
        let index = client.0 as usize;
        if index >= self.clients.len() {
            self.clients.resize(index + 1, Holder::default());
        }
        let was_waiting = from.standing == Standing::Waiting;
        let is_waiting = to.standing == Standing::Waiting;
        if is_waiting && !was_waiting {
            self.clients[index].place = self.waiting.len() as u32;
            self.waiting.push(client);
        }
        if was_waiting && !is_waiting {
            let place = self.clients[index].place;
            self.waiting.swap_remove(place as usize);
            if let Some(moved) = self.waiting.get(place as usize) {
                self.clients[moved.0 as usize].place = place;
            }
        }
        let units = self.clients[index].units;
        let (from, to) = (Holding::of(from, units), Holding::of(to, units));
        if from != to {
            self.holdings.replace(index, from, to);
        }
    }
}

impl<R: Rng> Policy for InverseLottery<R> {
    fn join(&mut self, client: ClientIndex, tickets: u32) -> Result<(), PolicyError> {
        let change = self.roster.join(client, tickets)?;
        self.follow(client, change.from, change.to);
        Ok(())
    }

    fn leave(&mut self, client: ClientIndex) -> Result<(), PolicyError> {
        let change = self.roster.leave(client)?;
        self.follow(client, change.from, change.to);
        Ok(())
    }

    /// Forgets the holding too.
    fn forget(&mut self, client: ClientIndex) {
        if let Some(change) = self.roster.forget(client) {
            self.follow(client, change.from, change.to);
            self.clients[client.0 as usize].units = 0;
        }
    }

    fn set_tickets(&mut self, client: ClientIndex, tickets: u32) -> Result<(), PolicyError> {
        let change = self.roster.set_tickets(client, tickets)?;
        self.follow(client, change.from, change.to);
        Ok(())
    }

    fn pick(&mut self) -> Option<ClientIndex> {
        let total_tickets = self.roster.total_tickets();
        match self.waiting[..] {
            [] => None,
            [only] => Some(only),
            ref waiting => loop {
                let drawn = waiting[below(&mut self.rng, waiting.len() as u64) as usize];
                let tickets = u64::from(self.roster.seat(drawn).tickets);
                if total_tickets == 0 || below(&mut self.rng, total_tickets) >= tickets {
                    return Some(drawn);
                }
            },
        }
    }

    fn take(&mut self, client: ClientIndex) -> Result<(), PolicyError> {
        let change = self.roster.take(client)?;
        self.follow(client, change.from, change.to);
        Ok(())
    }

    fn charge(&mut self, client: ClientIndex, used: u64, quantum: u64) -> Result<(), PolicyError> {
        let change = self.roster.charge(client, used, quantum)?;
        self.follow(client, change.from, change.to);
        Ok(())
    }

    fn total_tickets(&self) -> u64 {
        self.roster.total_tickets()
    }

    fn len(&self) -> usize {
        self.roster.len()
    }
}
