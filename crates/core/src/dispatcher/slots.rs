//! Service in slots of a timetable (2005), and what it costs in tickets.
//!
//! Tokens pay for a slot; tickets do not. Yet slot time is charged to the schedulee's client like
//! any other (2005, 3.2: a client that runs in slots is less likely to run in empty ones), so that the
//! timetable moves service in time and nobody's share. The charge ends where the client would be
//! further ahead of the global pass than one period of the table and two quanta: what it uses
//! beyond that is outside the economy. Neither the client's pass moves then, nor the global pass,
//! nor anybody's due. So
//!
//! ```text
//!   claims that are no more than tickets give     shares are those of the tickets
//!   claims that are more                          the claims, and the rest in proportion
//!   all claims freed                              the next turn at most a period and two quanta
//!                                                 later than without them
//! ```
//!
//! The bound is a wait, not a service: with few tickets even a little service ahead is a long
//! wait. A stranger's gift charges nothing, or anybody could push a victim's pass ahead.
//!
//! Policies without memory hold no debt: there, slots come on top of tickets.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use super::{Dispatcher, Usage};
use crate::ids::{ClientId, ClientIndex};

/// The clients that have run in slots.
#[derive(Debug)]
pub(super) struct Slots {
    /// Of the table.
    period_ns: u64,
    clients: BTreeMap<ClientIndex, InSlots>,
}

#[derive(Clone, Copy, Default, Debug)]
struct InSlots {
    /// Its threads that run in slots now.
    threads: u32,
    /// CPU time received in slots.
    received_ns: u64,
    /// What of it was not charged.
    uncharged_ns: u64,
}

impl Dispatcher {
    /// From now on clients may run in slots of a table with this period. What they received in slots
    /// of an earlier table stays in their accounts.
    pub fn open_slots(&mut self, period_ns: u64) {
        let clients = match self.slots.take() {
            Some(before) => before.clients,
            None => BTreeMap::new(),
        };
        self.slots = Some(Box::new(Slots { period_ns, clients }));
    }

    /// A waiting thread of a client has a CPU by the timetable from now on: a free one, of the
    /// only pool. The client's other threads compete as before. No mechanism of 1999 is in force.
    ///
    /// An engine under which the slot preempts what the policy chose for the CPU only charges
    /// ([`Dispatcher::charge_slot`]): the client that lost the CPU uses less of its turn.
    pub fn begin_slot(&mut self, client: ClientId) {
        debug_assert!(self.hybrid.is_none());
        if let [chooser] = self.choosers.as_mut_slice() {
            chooser.lend_cpu();
        }
        self.change_in_slots(client, |threads| threads + 1);
    }

    /// The thread leaves the CPU; what it used is charged before.
    pub fn end_slot(&mut self, client: ClientId) {
        if let [chooser] = self.choosers.as_mut_slice() {
            chooser.take_cpu_back();
        }
        self.change_in_slots(client, |threads| threads - 1);
    }

    fn change_in_slots(&mut self, client: ClientId, change: impl FnOnce(u32) -> u32) {
        let index = ClientIndex(client.index());
        if let Some(slots) = &mut self.slots {
            let in_slots = slots.clients.entry(index).or_default();
            in_slots.threads = change(in_slots.threads);
        }
        let threads = self.entitlements.threads(client);
        self.set_waiting_threads(client, threads);
    }

    /// A client has so many runnable threads; those in slots do not wait for a CPU. Without one
    /// that does it is passed over, and loses its turn.
    pub(super) fn set_waiting_threads(&mut self, client: ClientId, threads: u32) {
        let index = ClientIndex(client.index());
        let in_slots = self.in_slots(index).threads;
        let is_paused = self.is_paused(client);
        let Some(chooser) = self.chooser_of(client) else {
            return;
        };
        let none_waits = in_slots > 0 && in_slots >= threads;
        if threads > 0 {
            chooser.set_threads(index, threads.saturating_sub(in_slots).max(1));
        }
        if none_waits {
            chooser.end_turn(index);
        }
        chooser.pass_over(index, none_waits || is_paused);
    }

    fn in_slots(&self, client: ClientIndex) -> InSlots {
        let slots = self.slots.as_ref();
        let known = slots.and_then(|slots| slots.clients.get(&client));
        known.copied().unwrap_or_default()
    }

    /// Accounts for CPU time that a runnable client used in a slot; a gift is a slot that a
    /// stranger claimed for it.
    pub fn charge_slot(&mut self, client: ClientId, used_ns: u64, is_gift: bool) {
        let charged_ns = match is_gift {
            true => 0,
            false => used_ns.min(self.chargeable_ns(client)),
        };
        if used_ns == 0 || !self.entitlements.charge(client, charged_ns) {
            return;
        }
        let index = ClientIndex(client.index());
        if let Some(slots) = &mut self.slots {
            let in_slots = slots.clients.entry(index).or_default();
            in_slots.received_ns += used_ns;
            in_slots.uncharged_ns += used_ns - charged_ns;
        }
        self.allowances.charge(index, used_ns);
        if charged_ns > 0 && self.hybrid.is_some() {
            self.charge_hybrid(client, charged_ns);
        }
        if charged_ns > 0
            && let Some(chooser) = self.chooser_of(client)
        {
            chooser.charge_slot(index, charged_ns);
        }
    }

    /// How much a client may be charged before it is as far ahead as it may be.
    fn chargeable_ns(&mut self, client: ClientId) -> u64 {
        let Some(period_ns) = self.slots.as_ref().map(|slots| slots.period_ns) else {
            return 0;
        };
        let chooser = self.chooser_of(client);
        if !chooser.is_some_and(|chooser| chooser.carries_debt()) {
            return 0;
        }
        let wait_ns = period_ns.saturating_add(self.quantum_ns.saturating_mul(2));
        self.entitlements.room_ahead_ns(client, wait_ns)
    }

    /// A client that is destroyed has no account any more.
    pub(super) fn forget_slots(&mut self, client: ClientIndex) {
        if let Some(slots) = &mut self.slots {
            slots.clients.remove(&client);
        }
    }

    /// An account of what was charged, with the service in slots.
    pub(super) fn with_slots(&self, client: ClientId, charged: Usage) -> Usage {
        let in_slots = self.in_slots(ClientIndex(client.index()));
        Usage {
            received_ns: charged.received_ns + in_slots.uncharged_ns,
            in_slots_ns: in_slots.received_ns,
            uncharged_ns: in_slots.uncharged_ns,
            ..charged
        }
    }
}
