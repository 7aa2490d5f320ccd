//! Hybrid lottery scheduling (1999) over any policy.
//!
//! The mechanisms need to know what time it is when something happens: call
//! [`Dispatcher::advance`] first. Charge what running clients used before a client wakes or
//! blocks, so that the time before it and the time after are shared out among the clients
//! that competed then.
//!
//! In the simulator an early client takes the next turn. An engine that only looks at clients
//! now and then cannot give turns to clients that run for a tenth of a millisecond: the CPU
//! would idle, or lose its winner, for the rest of the turn. There early clients run *beside*
//! the winners, which the policy alone picks: the engine does not hold them down
//! ([`Dispatcher::outlook`]).

use alloc::boxed::Box;

use super::Dispatcher;
use crate::choice::Chooser;
use crate::entitlement::Transition;
use crate::hybrid::{Accounts, Balance, FRACTION_ONE, Mechanisms, NiceLaw, Outlook, WakeClass};
use crate::ids::{ClientId, ClientIndex};

impl Dispatcher {
    /// From now on these mechanisms are in force, but for that of nice values
    /// ([`Dispatcher::set_nice_law`]). Call it before any client competes.
    ///
    /// While any is in force, each wake, block and charge costs O(1) more, and each change
    /// of an early client O(log early clients), with an allocation at times.
    pub fn set_mechanisms(&mut self, mechanisms: Mechanisms) {
        debug_assert!(self.choosers.iter().all(|chooser| chooser.is_empty()));
        if mechanisms.judges_wakes() {
            let accounts = Accounts::new(mechanisms, self.choosers.len());
            self.hybrid = Some(Box::new(accounts));
            self.choosers.iter_mut().for_each(Chooser::allow_early);
        }
    }

    /// From now on boosts multiply tickets, kernel priorities last for a quantum whatever the
    /// lead, and each wake preempts, as the paper prints them. Only lotteries with seats take
    /// boosts. Call it after [`Dispatcher::set_mechanisms`].
    pub fn set_as_printed(&mut self) {
        if let Some(accounts) = &mut self.hybrid {
            accounts.set_as_printed();
            self.choosers.iter_mut().for_each(Chooser::set_as_printed);
        }
    }

    /// A client waits for its next turn: the paper works its boost out in `setrunqueue()`
    /// (1999, 4.1).
    #[cold]
    pub(super) fn renew_boost(&mut self, client: ClientId) {
        if let Some(accounts) = &mut self.hybrid
            && let Some(standing) = self.entitlements.standing(client)
            && let Some(chooser) = self.choosers.get_mut(standing.pool)
            && standing.threads > 0
        {
            let boost = accounts.boost(client, &standing);
            chooser.set_boost(ClientIndex(client.index()), boost);
        }
    }

    /// From now on these mechanisms are in force, and early clients run beside the winners.
    /// Mechanisms may change at any time; as long as any needs accounts, they go on. Nice values
    /// follow Linux's law.
    pub fn set_mechanisms_beside(&mut self, mechanisms: Mechanisms) {
        debug_assert!(self.choosers.iter().all(|chooser| !chooser.allows_early()));
        self.set_nice_law(mechanisms.nice.then_some(NiceLaw::Linux));
        match (&mut self.hybrid, mechanisms.judges_wakes()) {
            (Some(accounts), true) => accounts.set_mechanisms(mechanisms),
            (None, true) => {
                let accounts = Accounts::new(mechanisms, self.choosers.len());
                self.hybrid = Some(Box::new(accounts));
            }
            (_, false) => self.hybrid = None,
        }
    }

    /// How a client stands that has no turn, when the dispatcher was told last what time it is.
    /// `class` says what it sleeps on if it sleeps. None unless a mechanism is in force.
    ///
    /// Cost: O(1), some 100 ns for a client that sleeps.
    pub fn outlook(&self, client: ClientId, class: WakeClass) -> Option<Outlook> {
        let accounts = self.hybrid.as_ref()?;
        let standing = self.entitlements.standing(client);
        let outlook = |standing| accounts.outlook(client, class, &standing, self.quantum_ns);
        Some(standing.map(outlook).unwrap_or_default())
    }

    /// A client's boost and lead at that time. None unless a mechanism is in force, and for a
    /// client that never competed since.
    pub fn balance(&self, client: ClientId) -> Option<Balance> {
        let accounts = self.hybrid.as_ref()?;
        let standing = self.entitlements.standing(client)?;
        accounts.balance(client, &standing, self.quantum_ns)
    }

    /// Whether a client competes.
    pub fn competes(&self, client: ClientId) -> bool {
        self.entitlements.threads(client) > 0
    }

    /// The mechanisms that are in force.
    pub fn mechanisms(&self) -> Mechanisms {
        let accounts = self.hybrid.as_ref();
        Mechanisms {
            nice: self.entitlements.nice_law().is_some(),
            ..accounts.map_or(Mechanisms::NONE, |accounts| accounts.mechanisms())
        }
    }

    /// What happens from now on happens at `now_ns`.
    #[inline]
    pub fn advance(&mut self, now_ns: u64) {
        if let Some(accounts) = &mut self.hybrid {
            accounts.advance(now_ns);
        }
    }

    /// As [`Dispatcher::set_runnable`], and says what a client slept on that wakes.
    #[inline]
    pub fn wake(&mut self, client: ClientId, threads: u32, class: WakeClass) {
        if self.hybrid.is_none() {
            return self.set_runnable(client, threads);
        }
        self.set_runnable_hybrid(client, threads, class);
    }

    #[cold]
    pub(super) fn set_runnable_hybrid(&mut self, client: ClientId, threads: u32, class: WakeClass) {
        let before = self.entitlements.standing(client);
        let Some(change) = self.entitlements.set_runnable(client, threads) else {
            return;
        };
        let standing = self.entitlements.standing(client);
        let Some(accounts) = &mut self.hybrid else {
            return;
        };
        let pool = self.entitlements.pool_of(client);
        let Some(chooser) = self.choosers.get_mut(pool) else {
            return;
        };
        let index = ClientIndex(client.index());
        match (change, before, standing) {
            (Transition::Joined { tickets }, _, Some(standing)) => {
                let woken = accounts.wake(client, class, &standing, self.quantum_ns);
                if let Some(lead_ns) = woken.run_off_ns {
                    chooser.run_off(index, lead_ns);
                }
                chooser.join(index, threads, tickets);
                if woken.early.is_some() && chooser.allows_early() {
                    chooser.set_early(index, woken.early);
                }
                let boost = accounts.boost(client, &standing);
                chooser.set_boost(index, boost);
            }
            (Transition::Left, Some(before), _) => {
                accounts.block(client, &before);
                chooser.leave(index);
            }
            _ => chooser.set_threads(index, threads),
        }
    }

    /// A client that competes used CPU time.
    #[cold]
    pub(super) fn charge_hybrid(&mut self, client: ClientId, used_ns: u64) {
        let (Some(accounts), Some(standing)) =
            (&mut self.hybrid, self.entitlements.standing(client))
        else {
            return;
        };
        let was_early = accounts.is_early(client);
        let permits = accounts.charge(client, used_ns, &standing, self.quantum_ns);
        let index = ClientIndex(client.index());
        let Some(chooser) = self.choosers.get_mut(standing.pool) else {
            return;
        };
        if !chooser.allows_early() {
            if was_early {
                accounts.ran_early(client);
            }
        } else if chooser.is_early(index) {
            accounts.ran_early(client);
            if !permits {
                chooser.set_early(index, None);
            }
        }
    }

    /// The running client that a client which just woke preempts: where quanta are
    /// abbreviated, and the running client deserves less. End its turn to give the CPU away.
    ///
    /// Cost: O(1); at most eight turns are compared.
    pub fn preempted_by(&self, client: ClientId) -> Option<ClientId> {
        if !self.mechanisms().abbreviated_quanta || self.runs(client) {
            return None;
        }
        let chooser = self.choosers.get(self.entitlements.pool_of(client))?;
        let runner = chooser.preempted_by(ClientIndex(client.index()))?;
        Some(self.entitlements.client(runner))
    }

    /// CPU time by which a client's use was ahead of its due, when it was last charged,
    /// woke or blocked; zero unless a mechanism is in force.
    pub fn lead_ns(&self, client: ClientId) -> u64 {
        let accounts = self.hybrid.as_ref();
        accounts.map_or(0, |accounts| accounts.lead_ns(client))
    }

    /// The fraction of what a client deserved in ten seconds that it received, likewise, in
    /// units of 1 / [`FRACTION_ONE`].
    pub fn fraction(&self, client: ClientId) -> u32 {
        let accounts = self.hybrid.as_ref();
        accounts.map_or(FRACTION_ONE, |accounts| accounts.fraction(client))
    }
}
