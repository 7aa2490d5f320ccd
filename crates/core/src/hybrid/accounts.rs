//! The accounts of all clients: windows, leads, and who competed lately.

use alloc::vec::Vec;

use super::competition::{Entry, Sleepers};
use super::{
    BOOST_ONE, DueRate, EarlyRank, FRACTION_ONE, Lead, Mechanisms, UseWindow, WakeClass, boost,
    due_rate, is_early, lead_bound_ns,
};
use crate::choice::Early;
use crate::entitlement::Standing;
use crate::ids::ClientId;

/// What is known of a client that competes or has competed.
#[derive(Clone, Debug)]
struct Account {
    /// Of its identifier.
    generation: u32,
    window: UseWindow,
    lead: Lead,
    /// Where it counts while it sleeps: the pool, and its entry there.
    asleep: Option<(usize, Entry)>,
    /// Whether it ran early since its debt was run off.
    ran_early: bool,
    /// Until when it is early. Its lead, or a sleep, may end that before.
    early_until_ns: u64,
}

/// How a client stands that has no turn.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Outlook {
    /// It is early. A sleeping client would be, if it woke now.
    pub is_early: bool,
    /// Its lead exceeds the bound.
    pub is_ahead: bool,
}

/// A client's account as people read it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Balance {
    /// The boost of [`boost()`] for the last ten seconds, in units of 1 / [`BOOST_ONE`].
    pub boost: u32,
    /// CPU time by which its use is ahead of its due.
    pub lead_ns: u64,
    /// As in [`Outlook`].
    pub is_early: bool,
}

/// What becomes of a client that wakes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Woken {
    /// Its order, if it is early.
    pub(crate) early: Option<Early>,
    /// The lead to which its debt is run off, if it has one.
    pub(crate) run_off_ns: Option<u64>,
}

/// The accounts of all clients. 250 bytes a client, only where a mechanism is in force.
#[derive(Debug)]
pub(crate) struct Accounts {
    mechanisms: Mechanisms,
    /// Boosts multiply tickets, and kernel priorities know no lead, as the paper prints them.
    as_printed: bool,
    now_ns: u64,
    /// By client index.
    accounts: Vec<Option<Account>>,
    /// By pool.
    sleepers: Vec<Sleepers>,
    /// Wakes so far.
    arrivals: u64,
}

impl Accounts {
    pub(crate) fn new(mechanisms: Mechanisms, pools: usize) -> Self {
        Self {
            mechanisms,
            as_printed: false,
            now_ns: 0,
            accounts: Vec::new(),
            sleepers: alloc::vec![Sleepers::default(); pools],
            arrivals: 0,
        }
    }

    pub(crate) fn mechanisms(&self) -> Mechanisms {
        self.mechanisms
    }

    pub(crate) fn set_as_printed(&mut self) {
        self.as_printed = true;
    }

    /// Time never goes back.
    pub(crate) fn advance(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
    }

    /// A client begins to compete, with this standing. Cost: O([`super::window::SLOTS`]).
    pub(crate) fn wake(
        &mut self,
        client: ClientId,
        class: WakeClass,
        standing: &Standing,
        quantum_ns: u64,
    ) -> Woken {
        let (now_ns, mechanisms, as_printed) = (self.now_ns, self.mechanisms, self.as_printed);
        let account = self.account(client);
        if let Some((pool, entry)) = account.asleep.take() {
            self.sleepers[pool].remove(now_ns, entry);
        }
        let account = self.settle(client, standing);
        let ran_early = core::mem::take(&mut account.ran_early);
        let lead_ns = account.lead.ns();
        let fraction = match mechanisms.ticket_boost {
            true => account.window.fraction(),
            false => FRACTION_ONE,
        };
        let class = match mechanisms.kernel_priorities {
            true => class,
            false => WakeClass::User,
        };
        let arrival = self.arrivals;
        self.arrivals += 1;
        let bound_ns = lead_bound_ns(quantum_ns);
        // A kernel priority lasts for the turn that it begins. A client that is niced up asked
        // to stand back, and a boost never lifts it above its bound (1999, Figure 2).
        let is_due = standing.weight > 0 && standing.most.is_none();
        let early = |class| {
            is_due
                && match as_printed {
                    true => class != WakeClass::User,
                    false => is_early(class, fraction, lead_ns, bound_ns),
                }
        };
        let rank = |class| early(class).then(|| EarlyRank::new(class, fraction, arrival));
        let early = rank(class).map(|first| Early {
            rank: first,
            afterwards: rank(WakeClass::User),
        });
        self.account(client).early_until_ns = match early {
            None => 0,
            Some(Early {
                afterwards: None, ..
            }) => now_ns.saturating_add(quantum_ns),
            Some(_) => u64::MAX,
        };
        Woken {
            early,
            run_off_ns: (ran_early && !as_printed).then_some(lead_ns),
        }
    }

    /// How a client stands now, whose standing is that of a client that competes. `class` says
    /// what it sleeps on if it sleeps.
    pub(crate) fn outlook(
        &self,
        client: ClientId,
        class: WakeClass,
        standing: &Standing,
        quantum_ns: u64,
    ) -> Outlook {
        let Some(account) = self.known(client) else {
            return Outlook::default();
        };
        let bound_ns = lead_bound_ns(quantum_ns);
        let is_due = standing.weight > 0 && standing.most.is_none();
        let Some(asleep) = account.asleep else {
            return Outlook {
                is_early: is_due && account.early_until_ns > self.now_ns,
                is_ahead: account.lead.ns() > bound_ns,
            };
        };
        let account = self.if_awake(account, asleep, standing);
        let fraction = match self.mechanisms.ticket_boost {
            true => account.window.fraction(),
            false => FRACTION_ONE,
        };
        let class = match self.mechanisms.kernel_priorities {
            true => class,
            false => WakeClass::User,
        };
        let lead_ns = account.lead.ns();
        Outlook {
            is_early: is_due && is_early(class, fraction, lead_ns, bound_ns),
            is_ahead: lead_ns > bound_ns,
        }
    }

    /// A client's account up to now, likewise. None for a client that never competed.
    pub(crate) fn balance(
        &self,
        client: ClientId,
        standing: &Standing,
        quantum_ns: u64,
    ) -> Option<Balance> {
        let known = self.known(client)?;
        let account = match known.asleep {
            Some(asleep) => self.if_awake(known, asleep, standing),
            None => known.clone(),
        };
        let outlook = self.outlook(client, WakeClass::User, standing, quantum_ns);
        let is_young = account.window.fraction() == FRACTION_ONE;
        Some(Balance {
            boost: match is_young {
                true => BOOST_ONE,
                false => boost(account.window.received_ns(), account.window.deserved_ns()),
            },
            lead_ns: account.lead.ns(),
            is_early: outlook.is_early,
        })
    }

    /// The account of a sleeping client as [`Self::wake`] would work it out now.
    fn if_awake(
        &self,
        account: &Account,
        (pool, entry): (usize, Entry),
        standing: &Standing,
    ) -> Account {
        let mut others = self.sleepers[pool].clone();
        others.remove(self.now_ns, entry);
        let total = standing.total_with(others.total(self.now_ns));
        let total = total.saturating_add(standing.weight.into());
        let threads = standing.threads.max(1);
        let rate = due_rate(standing.weight, total, standing.cpus, threads);
        let mut account = account.clone();
        let passed_ns = account.window.advance(self.now_ns, rate);
        account.lead.drain(passed_ns, rate);
        account
    }

    /// Other mechanisms are in force from now on. Accounts go on.
    pub(crate) fn set_mechanisms(&mut self, mechanisms: Mechanisms) {
        self.mechanisms = mechanisms;
    }

    /// A client ceases to compete, which had this standing and this value.
    pub(crate) fn block(&mut self, client: ClientId, standing: &Standing) {
        let now_ns = self.now_ns;
        self.settle(client, standing).early_until_ns = 0;
        let entry = self.sleepers[standing.pool].add(now_ns, standing.value);
        self.account(client).asleep = Some((standing.pool, entry));
    }

    /// A client used CPU time until now. Returns whether its lead permits it to be early.
    pub(crate) fn charge(
        &mut self,
        client: ClientId,
        used_ns: u64,
        standing: &Standing,
        quantum_ns: u64,
    ) -> bool {
        let account = self.settle(client, standing);
        account.window.receive(used_ns);
        account.lead.rise(used_ns);
        let permits = account.lead.ns() <= lead_bound_ns(quantum_ns);
        if !permits {
            account.early_until_ns = 0;
        }
        permits || self.as_printed
    }

    /// Whether a client that competes is early now.
    pub(crate) fn is_early(&self, client: ClientId) -> bool {
        let account = self.known(client);
        account.is_some_and(|account| account.early_until_ns > self.now_ns)
    }

    /// Whether boosts multiply tickets.
    pub(crate) fn multiplies_tickets(&self) -> bool {
        self.as_printed && self.mechanisms.ticket_boost
    }

    /// The boost of a client's tickets, where boosts multiply tickets: none for a client that
    /// received what it deserved. It lifts no client above the bound of its nice value.
    pub(crate) fn boost(&mut self, client: ClientId, standing: &Standing) -> Option<u32> {
        if !self.multiplies_tickets() {
            return None;
        }
        let boost = self.settle(client, standing).window.boost()?;
        let Some(most) = standing.most else {
            return Some(boost);
        };
        let most = most.0.saturating_mul(BOOST_ONE.into()) / standing.value.0.max(1);
        Some(most.clamp(BOOST_ONE.into(), boost.into()) as u32)
    }

    /// A client used CPU time in an early turn: it has a debt to be run off.
    pub(crate) fn ran_early(&mut self, client: ClientId) {
        self.account(client).ran_early = true;
    }

    /// How far a client's use was ahead of its due when that was last worked out.
    pub(crate) fn lead_ns(&self, client: ClientId) -> u64 {
        self.known(client).map_or(0, |account| account.lead.ns())
    }

    /// What part of its due it received, likewise.
    pub(crate) fn fraction(&self, client: ClientId) -> u32 {
        let account = self.known(client);
        account.map_or(FRACTION_ONE, |account| account.window.fraction())
    }

    fn known(&self, client: ClientId) -> Option<&Account> {
        let account = self.accounts.get(client.index() as usize)?.as_ref();
        account.filter(|account| account.generation == client.generation())
    }

    /// Works a client's account out up to now.
    fn settle(&mut self, client: ClientId, standing: &Standing) -> &mut Account {
        let now_ns = self.now_ns;
        let rate = self.rate(standing);
        let account = self.account(client);
        let passed_ns = account.window.advance(now_ns, rate);
        account.lead.drain(passed_ns, rate);
        account
    }

    fn rate(&mut self, standing: &Standing) -> DueRate {
        let asleep = self.sleepers[standing.pool].total(self.now_ns);
        let total = standing.total_with(asleep);
        due_rate(standing.weight, total, standing.cpus, standing.threads)
    }

    fn account(&mut self, client: ClientId) -> &mut Account {
        let (index, now_ns) = (client.index() as usize, self.now_ns);
        if index >= self.accounts.len() {
            self.accounts.resize_with(index + 1, || None);
        }
        let place = &mut self.accounts[index];
        // An earlier client at this index is forgotten; its value ages out.
        if place
            .as_ref()
            .is_some_and(|a| a.generation != client.generation())
        {
            *place = None;
        }
        place.get_or_insert_with(|| Account {
            generation: client.generation(),
            window: UseWindow::new(now_ns),
            lead: Lead::default(),
            asleep: None,
            ran_early: false,
            early_until_ns: 0,
        })
    }
}
