//! Stride scheduling with dynamic participation, dynamic tickets, nonuniform
//! quanta and several CPUs (1995, 2), and what it shares with the race.
//!
//! The client with the smallest pass runs next. Having used a part of a quantum,
//! it moves back by that part of its stride. A [`Stride`] is the paper's
//! algorithm; a [`Race`](super::Race) multiplies each step by a random number
//! and so becomes a lottery. All else is written once, in [`PassPolicy`].
//!
//! # What the paper leaves open
//!
//! * Equal passes: the lower client index first.
//! * There is no clock: the global pass moves with every charge, by the use
//!   charged (elapsed time is time used), and before that by what the caller
//!   says was used. On several CPUs it moves with every CPU's use.
//! * A client that leaves with credit or debt finds it again when it comes
//!   back, however long it was away, as in the paper's Figure 3: nothing is
//!   gained or shed by sleeping.
//!
//! # Limits
//!
//! Clients whose position differs from the global pass by more than
//! [`LONGEST_WAIT`] passes, 2^17 quanta at one ticket and in proportion at
//! more, are held there. A charge counts for at most 2^16 quanta.

use alloc::vec::Vec;

use crate::prefetch::prefetch;

use super::queue::{Entry, PassQueue, before};
use super::stride_position::{GlobalPass, Participation, Position, Remain};
use super::stride_service::{LONGEST_WAIT, MAX_SERVICE, STRIDE1};
use super::{ClientIndex, MAX_CLIENTS, Policy, PolicyError, pass_over};

/// How long a client waits for its next turn: all that tells stride
/// scheduling from the race.
pub trait Wait {
    /// Whether the global pass is the pass of the latest winner (an earlier
    /// rule of the paper's, 1995, 7.1) instead of moving smoothly with time.
    const GLOBAL_FOLLOWS_WINNER: bool;

    /// Whether the wait is the service, so that clients with equal tickets
    /// run in turns.
    const IS_EXACT: bool;

    /// The wait after having used `service`, both in units of
    /// `1 / STRIDE1` quantum: a ticket's passes.
    fn wait(&mut self, service: u64) -> u64;

    /// The same for a piece of a turn, or of several early turns with the selected one,
    /// `begins` for its first: all pieces together wait as one would (1999, Figure 1).
    fn wait_in_pieces(&mut self, _client: ClientIndex, _begins: bool, service: u64) -> u64 {
        self.wait(service)
    }
}

/// Stride scheduling's wait: exactly the service used.
#[derive(Clone, Copy, Default, Debug)]
pub struct Exact;

impl Wait for Exact {
    const GLOBAL_FOLLOWS_WINNER: bool = false;
    const IS_EXACT: bool = true;

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
    pub(super) positions: Vec<Position>,
    /// Holds exactly the clients that are waiting, at their pass.
    queue: PassQueue,
    pub(super) global: GlobalPass,
    /// The global pass when clients were last held within [`LONGEST_WAIT`].
    pub(super) held_at: u64,
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
            positions: Vec::new(),
            queue: PassQueue::starting_at(pass),
            global: GlobalPass::starting_at(pass),
            held_at: pass,
            joined: 0,
            wait,
        }
    }

    /// The pass of a client that competes with tickets, counted from 0 in
    /// strides of a single ticket: 1 is a whole quantum for it. To look at
    /// (1995, Figures 2 and 4); rounded to the precision of the number.
    pub fn pass(&self, client: ClientIndex) -> Option<f64> {
        let position = self.positions.get(client.0 as usize)?;
        let passes = position.exact_pass()?;
        Some(passes / STRIDE1 as f64)
    }

    /// The global pass (1995, 2.2), in the same units.
    pub fn global_pass(&self) -> f64 {
        self.global.pass as f64 / STRIDE1 as f64
    }

    /// The position of a client that has joined.
    #[inline]
    fn joined(&self, client: ClientIndex) -> Result<&Position, PolicyError> {
        self.positions
            .get(client.0 as usize)
            .filter(|position| position.participation.joined())
            .ok_or(PolicyError::NotJoined(client))
    }

    /// Changes a client's participation; `remain` is what remains of its wait.
    /// This is the one way in which tickets change (1995, Figures 3 and 5).
    /// `tickets` matter only where the new participation has some.
    fn stand(
        &mut self,
        client: ClientIndex,
        participation: Participation,
        tickets: u32,
        remain: Remain,
    ) {
        let position = &mut self.positions[client.0 as usize];
        if position.participation == Participation::Waiting {
            self.queue.remove(position.entry(client));
        }
        if W::IS_EXACT && position.participation.has_tickets() {
            self.queue.dismiss(position.fifo, position.tickets());
        }
        let before = position.tickets();
        if participation.has_tickets() {
            position.compete(participation, tickets, remain, &self.global);
            if W::IS_EXACT {
                position.fifo = self.queue.admit(tickets);
            }
        } else {
            position.withdraw(participation, remain);
        }
        self.global.change_tickets(before, position.tickets());
        if participation == Participation::Waiting {
            self.queue.insert(position.entry(client));
        }
        self.renew_worn_queue();
    }

    /// Accounts for use by a client that has joined. The client moves back and
    /// counts as taken: it is not in the queue. Returns the service used.
    #[inline]
    fn use_service(
        &mut self,
        client: ClientIndex,
        used: u64,
        quantum: u64,
    ) -> Result<u64, PolicyError> {
        self.use_service_by(client, used, quantum, W::wait)
    }

    /// The same, where `wait` says how long the client waits for its service.
    #[inline(always)]
    fn use_service_by(
        &mut self,
        client: ClientIndex,
        used: u64,
        quantum: u64,
        wait: impl FnOnce(&mut W, u64) -> u64,
    ) -> Result<u64, PolicyError> {
        let participation = self.joined(client)?.participation;
        if quantum == 0 {
            return Err(PolicyError::ZeroQuantum(client));
        }
        let service = if used == quantum {
            STRIDE1
        } else {
            let position = &mut self.positions[client.0 as usize];
            position.part_unit.service(used, quantum)
        };
        let wait = wait(&mut self.wait, service);
        if !W::GLOBAL_FOLLOWS_WINNER {
            self.global.charge(service);
        }
        let position = &mut self.positions[client.0 as usize];
        if participation == Participation::Waiting {
            self.queue.remove(position.entry(client));
        }
        position.participation = participation.taken();
        if participation.has_tickets() {
            self.put_off(client, wait);
        } else {
            self.put_off_ticketless(client, wait);
        }
        self.hold_within_reach();
        Ok(service)
    }

    /// Moves a taken client with tickets back by its `wait`.
    #[inline]
    fn put_off(&mut self, client: ClientIndex, wait: u64) {
        let position = &mut self.positions[client.0 as usize];
        if W::GLOBAL_FOLLOWS_WINNER && position.lead(&self.global) < 0 {
            position.set_lead(0, &self.global);
        }
        position.advance(wait);
        if position.lead(&self.global) > LONGEST_WAIT {
            position.set_lead(LONGEST_WAIT, &self.global);
        }
    }

    /// A taken client that used `service` waits for its next turn.
    #[inline]
    fn put_back(&mut self, client: ClientIndex, service: u64) {
        let position = &mut self.positions[client.0 as usize];
        position.participation = Participation::untaken(position.tickets());
        if position.participation != Participation::Waiting {
            return;
        }
        let entry = position.entry(client);
        if W::IS_EXACT && service == STRIDE1 {
            self.queue
                .insert_behind_equals(position.fifo, position.tickets(), entry);
        } else {
            self.queue.insert(entry);
        }
        self.renew_worn_queue();
    }

    /// Adds `wait` to what remains for a client without tickets.
    #[cold]
    fn put_off_ticketless(&mut self, client: ClientIndex, wait: u64) {
        let position = &mut self.positions[client.0 as usize];
        let remain = position.remain(&self.global).0 + i128::from(wait);
        position.withdraw(Participation::TicketlessTaken, Remain(remain));
    }

    /// A client with this pass wins.
    #[inline]
    fn follow(&mut self, pass: u64) {
        if W::GLOBAL_FOLLOWS_WINNER && before(self.global.pass, pass) {
            self.global.follow(pass);
            self.hold_within_reach();
        }
    }

    /// Holds all clients within [`LONGEST_WAIT`] behind the global pass, before
    /// a pass could wrap out of comparison. That happens once in 2^16 quanta for
    /// each ticket in the competition, so visiting all clients costs nothing on
    /// average.
    #[inline]
    fn hold_within_reach(&mut self) {
        if self.global.pass.wrapping_sub(self.held_at) >= MAX_SERVICE {
            self.hold_all_within_reach();
        }
    }

    #[cold]
    fn hold_all_within_reach(&mut self) {
        self.held_at = self.global.pass;
        for position in &mut self.positions {
            if position.participation.has_tickets() && position.lead(&self.global) < -LONGEST_WAIT {
                position.set_lead(-LONGEST_WAIT, &self.global);
            }
        }
        self.renew_queue();
    }

    #[inline]
    fn renew_worn_queue(&mut self) {
        if self.queue.is_worn(self.positions.len()) {
            self.renew_queue();
        }
    }

    #[cold]
    fn renew_queue(&mut self) {
        let waiting = |position: &&Position| position.participation == Participation::Waiting;
        let leads = self
            .positions
            .iter()
            .filter(waiting)
            .map(|position| position.lead(&self.global));
        let first = self
            .global
            .pass
            .wrapping_add_signed(leads.min().unwrap_or(0));
        self.queue.restart_at(first);
        for (index, position) in self.positions.iter().enumerate() {
            if position.participation == Participation::Waiting {
                self.queue.insert(position.entry(ClientIndex(index as u32)));
            }
        }
    }
}

/// Cost of each call: that of the queue's operation. `join` allocates when an
/// index is higher than all before it.
impl<W: Wait> Policy for PassPolicy<W> {
    fn reserve(&mut self, clients: usize) {
        let more = clients.saturating_sub(self.positions.len());
        self.positions.reserve_exact(more);
    }

    fn join(&mut self, client: ClientIndex, tickets: u32) -> Result<(), PolicyError> {
        if client.0 >= MAX_CLIENTS {
            return Err(PolicyError::TooManyClients(client));
        }
        let index = client.0 as usize;
        if index >= self.positions.len() {
            self.positions.resize(index + 1, Position::UNKNOWN);
        }
        let position = &self.positions[index];
        let remain = match position.participation {
            Participation::Unknown => Remain(self.wait.wait(STRIDE1).into()),
            Participation::Left => position.remain(&self.global),
            _ => return Err(PolicyError::AlreadyJoined(client)),
        };
        self.joined += 1;
        self.stand(client, Participation::untaken(tickets), tickets, remain);
        Ok(())
    }

    fn leave(&mut self, client: ClientIndex) -> Result<(), PolicyError> {
        let remain = self.joined(client)?.remain(&self.global);
        self.joined -= 1;
        self.stand(client, Participation::Left, 0, remain);
        Ok(())
    }

    fn forget(&mut self, client: ClientIndex) {
        // A refusal means that the client does not compete: nothing to leave.
        let _ = self.leave(client);
        let index = client.0 as usize;
        if index < self.positions.len() {
            self.positions[index] = Position::UNKNOWN;
        }
    }

    fn set_tickets(&mut self, client: ClientIndex, tickets: u32) -> Result<(), PolicyError> {
        let position = self.joined(client)?;
        if position.tickets() != tickets {
            let remain = position.remain(&self.global);
            let participation = Participation::untaken(tickets);
            let participation = if position.participation.is_taken() {
                participation.taken()
            } else {
                participation
            };
            self.stand(client, participation, tickets, remain);
        }
        Ok(())
    }

    fn pick(&mut self) -> Option<ClientIndex> {
        let positions = &self.positions;
        let live = |entry: Entry| {
            let position = &positions[entry.client.0 as usize];
            position.pass == entry.pass && position.participation == Participation::Waiting
        };
        let fetch = |client: ClientIndex| prefetch(positions, client.0 as usize);
        let first = self.queue.first(live, fetch)?;
        self.follow(first.pass);
        Some(first.client)
    }

    fn take(&mut self, client: ClientIndex) -> Result<(), PolicyError> {
        let position = self.joined(client)?;
        let participation = position.participation.taken();
        if position.participation == Participation::Waiting {
            self.queue.remove(position.entry(client));
        }
        self.positions[client.0 as usize].participation = participation;
        self.renew_worn_queue();
        Ok(())
    }

    fn take_first(&mut self, fits: &mut dyn FnMut(ClientIndex) -> bool) -> Option<ClientIndex> {
        let global = self.global;
        let first = pass_over(self, fits);
        if W::GLOBAL_FOLLOWS_WINNER {
            // It follows no client that was passed over.
            self.global = global;
            if let Some(ClientIndex(index)) = first {
                self.follow(self.positions[index as usize].pass);
            }
        }
        first
    }

    fn untake(&mut self, client: ClientIndex) -> Result<(), PolicyError> {
        if self.joined(client)?.participation.is_taken() {
            self.put_back(client, 0);
        }
        Ok(())
    }

    fn charge(&mut self, client: ClientIndex, used: u64, quantum: u64) -> Result<(), PolicyError> {
        let service = self.use_service(client, used, quantum)?;
        self.put_back(client, service);
        Ok(())
    }

    fn charge_and_leave(
        &mut self,
        client: ClientIndex,
        used: u64,
        quantum: u64,
    ) -> Result<(), PolicyError> {
        self.use_service(client, used, quantum)?;
        self.leave(client)
    }

    fn charge_more(
        &mut self,
        client: ClientIndex,
        before: u64,
        used: u64,
        quantum: u64,
    ) -> Result<(), PolicyError> {
        let wait = |wait: &mut W, service| wait.wait_in_pieces(client, before == 0, service);
        let service = self.use_service_by(client, used, quantum, wait)?;
        self.put_back(client, service);
        Ok(())
    }

    fn pass_time(&mut self, uncharged: u64, quantum: u64) {
        if !W::GLOBAL_FOLLOWS_WINNER {
            self.global.pass_time(uncharged, quantum);
            self.hold_within_reach();
        }
    }

    fn precedes(
        &self,
        client: (ClientIndex, u64),
        other: (ClientIndex, u64),
        gain: u64,
        quantum: u64,
    ) -> bool {
        self.is_due_before(client, other, gain, quantum)
    }

    fn run_off(&mut self, client: ClientIndex, lead: u64, quantum: u64) {
        self.forgive(client, lead, quantum);
    }

    fn charges_add_up(&self) -> bool {
        // In the race each charge is multiplied by a number of its own.
        !W::GLOBAL_FOLLOWS_WINNER
    }

    #[inline]
    fn likely_after(&self, picks: usize) -> Option<ClientIndex> {
        self.queue.likely_after(picks)
    }

    #[inline]
    fn prefetch(&self, client: ClientIndex) {
        prefetch(&self.positions, client.0 as usize);
    }

    fn total_tickets(&self) -> u64 {
        self.global.tickets()
    }

    fn len(&self) -> usize {
        self.joined
    }
}
