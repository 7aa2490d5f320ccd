//! The ledger as the kernel has it: numbered nodes, each funded by tickets.
//!
//! ```text
//!   ledger                                      kernel
//!   currency u0, the base       ----------->    node 0
//!   currency, client            ----------->    node with a number of its own
//!   ticket, also a piece that   ----------->    amount of a currency's node,
//!   a transfer carved out                       in the list of what it funds
//! ```
//!
//! The kernel knows no identifiers, names, owners or transfers: a piece is a
//! ticket of the giver's currency that funds the receiver. Tickets of one
//! currency that fund the same holder are one ticket there, and tickets that
//! have lent everything do not exist there. So every value in the kernel equals
//! the ledger's, except for rounding in divisions: less than 2^-32 base units a
//! ticket.
//!
//! A node keeps its number as long as its object lives. Another object gets the
//! number once the kernel has forgotten the node.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use prorata_core::ids::{ClientId, CurrencyId, TicketId};
use prorata_core::ledger::{Ledger, Target};
use prorata_kernel::scheduler::{BASE, CGROUP_NODES, MAX_AMOUNT, Ticket};

/// One thing to tell the kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum KernelStep {
    /// Exactly these tickets fund a node, which may be new.
    Fund { node: u32, tickets: Vec<Ticket> },
    /// The node is gone, and no ticket of its currency is left.
    /// [`Projection::forgotten`] must be called when the kernel has forgotten
    /// it.
    Remove(u32),
}

/// The node of each object, and what the kernel has been told.
#[derive(Debug)]
pub(crate) struct Projection {
    nodes: HashMap<Target, Node>,
    /// The object of each node except the base currency's.
    targets: HashMap<u32, Target>,
    /// Numbers below `next` that no node has.
    free: BTreeSet<u32>,
    /// All numbers from here on were never used.
    next: u32,
    /// Whether an object found no number, and so is worth nothing in the
    /// kernel.
    left_out: bool,
}

#[derive(Debug)]
struct Node {
    number: u32,
    /// By currency node; all amounts above zero. A currency stands here more
    /// than once only if the kernel would not take the sum.
    tickets: Vec<Ticket>,
}

impl Projection {
    /// Of a ledger of which the kernel knows only the base currency. There is
    /// room for [`CGROUP_NODES`] less one currencies and clients; later ones
    /// have no node until others go.
    pub fn new(ledger: &Ledger) -> Self {
        let base = Node {
            number: BASE,
            tickets: Vec::new(),
        };
        Self {
            nodes: HashMap::from([(Target::Currency(ledger.base()), base)]),
            targets: HashMap::new(),
            free: BTreeSet::new(),
            next: BASE + 1,
            left_out: false,
        }
    }

    /// Everything that `ledger` holds, for a kernel that knows nothing of it.
    pub fn begin(&mut self, ledger: &Ledger) -> Vec<KernelStep> {
        self.follow(ledger, all(ledger))
    }

    /// Whether there was not room for everything.
    pub fn is_full(&self) -> bool {
        self.left_out
    }

    /// What to tell the kernel, in this order, after the funding of `changed`
    /// has changed, as [`Ledger::take_funding_changes`] says. (`changed` may
    /// name other objects too.)
    ///
    /// Currencies precede what they fund, so that currencies never fund one
    /// another in a cycle, and so that every named currency exists. What ends
    /// comes last.
    ///
    /// Cost: the tickets of the changed objects, and the currencies above them.
    pub fn follow(
        &mut self,
        ledger: &Ledger,
        changed: impl IntoIterator<Item = Target>,
    ) -> Vec<KernelStep> {
        let base = Target::Currency(ledger.base());
        let changed = changed.into_iter().map(Place::from);
        let mut changed: BTreeSet<Place> = changed.collect();
        if self.left_out && self.has_number() {
            self.left_out = false;
            changed.extend(all(ledger).map(Place::from));
        }
        changed.remove(&Place::from(base));
        let mut ranks = HashMap::new();
        let mut living = Vec::new();
        let mut gone = Vec::new();
        for place in changed {
            match place.rank(ledger, &mut ranks) {
                Some(rank) => living.push((rank, place.target())),
                None => gone.push(place.target()),
            }
        }
        living.sort_by_key(|(rank, _)| *rank);
        let mut steps = Vec::new();
        for (_, target) in living {
            steps.extend(self.fund(ledger, target));
        }
        // An object that ends may be funded by another one that ends. So all lose
        // their funding first, then clients go, and then currencies.
        steps.extend(gone.iter().filter_map(|target| self.unfund(*target)));
        gone.reverse();
        steps.extend(gone.into_iter().filter_map(|target| self.remove(target)));
        steps
    }

    /// The kernel has forgotten this node: another object may get its number.
    pub fn forgotten(&mut self, node: u32) {
        self.free.insert(node);
    }

    /// The node of a client; none if the kernel has no room for it.
    pub fn node(&self, client: ClientId) -> Option<u32> {
        self.nodes
            .get(&Target::Client(client))
            .map(|node| node.number)
    }

    /// The client that a node stands for, if it is one's.
    pub fn client(&self, node: u32) -> Option<ClientId> {
        match self.targets.get(&node)? {
            Target::Client(client) => Some(*client),
            Target::Currency(_) => None,
        }
    }

    fn fund(&mut self, ledger: &Ledger, target: Target) -> Option<KernelStep> {
        let tickets = self.tickets(ledger, target);
        if let Some(node) = self.nodes.get_mut(&target) {
            if node.tickets == tickets {
                return None;
            }
            node.tickets.clone_from(&tickets);
            let node = node.number;
            return Some(KernelStep::Fund { node, tickets });
        }
        let Some(number) = self.number() else {
            self.left_out = true;
            return None;
        };
        let node = Node {
            number,
            tickets: tickets.clone(),
        };
        self.nodes.insert(target, node);
        self.targets.insert(number, target);
        Some(KernelStep::Fund {
            node: number,
            tickets,
        })
    }

    fn has_number(&self) -> bool {
        !self.free.is_empty() || self.next < CGROUP_NODES
    }

    /// A number that no node has, below [`CGROUP_NODES`].
    fn number(&mut self) -> Option<u32> {
        if let Some(number) = self.free.pop_first() {
            return Some(number);
        }
        let number = self.next;
        (number < CGROUP_NODES).then(|| {
            self.next += 1;
            number
        })
    }

    /// Takes all tickets from a currency that is gone. A client's tickets go
    /// with the client.
    fn unfund(&mut self, target: Target) -> Option<KernelStep> {
        let node = self.nodes.get_mut(&target)?;
        let is_currency = matches!(target, Target::Currency(_));
        if !is_currency || node.tickets.is_empty() {
            return None;
        }
        node.tickets.clear();
        Some(KernelStep::Fund {
            node: node.number,
            tickets: Vec::new(),
        })
    }

    /// Nothing for an object that was created and destroyed between two calls.
    fn remove(&mut self, target: Target) -> Option<KernelStep> {
        let Node { number, .. } = self.nodes.remove(&target)?;
        self.targets.remove(&number);
        Some(KernelStep::Remove(number))
    }

    /// What funds an object now, in the kernel's terms. Tickets of a currency
    /// without a node are worth nothing there.
    fn tickets(&self, ledger: &Ledger, target: Target) -> Vec<Ticket> {
        let mut amounts = BTreeMap::new();
        for (currency, amount) in funding(ledger, target) {
            if let Some(node) = self.nodes.get(&Target::Currency(currency)) {
                *amounts.entry(node.number).or_insert(0) += u64::from(amount);
            }
        }
        let mut tickets = Vec::new();
        for (currency, mut left) in amounts {
            while left > 0 {
                let amount = left.min(MAX_AMOUNT);
                tickets.push(Ticket { currency, amount });
                left -= amount;
            }
        }
        tickets
    }
}

fn all(ledger: &Ledger) -> impl Iterator<Item = Target> {
    let currencies = ledger.currencies().map(|view| Target::Currency(view.id));
    let clients = ledger.clients().map(|view| Target::Client(view.id));
    currencies.chain(clients)
}

/// Currency and amount of each ticket that funds an object.
fn funding(ledger: &Ledger, target: Target) -> Vec<(CurrencyId, u32)> {
    let ticket = |id: TicketId| {
        let ticket = ledger.ticket(id).expect("it is in a list");
        (ticket.currency, ticket.amount)
    };
    match target {
        Target::Currency(currency) => ledger.backing(currency).map(ticket).collect(),
        Target::Client(client) => ledger.funding(client).map(ticket).collect(),
    }
}

/// A target that can be sorted: currencies first, in the order of their indexes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Currency(CurrencyId),
    Client(ClientId),
}

impl From<Target> for Place {
    fn from(target: Target) -> Self {
        match target {
            Target::Currency(currency) => Place::Currency(currency),
            Target::Client(client) => Place::Client(client),
        }
    }
}

impl Place {
    fn target(self) -> Target {
        match self {
            Place::Currency(currency) => Target::Currency(currency),
            Place::Client(client) => Target::Client(client),
        }
    }

    /// How far below the base currency it is on the longest way; `None` if it
    /// is gone.
    fn rank(self, ledger: &Ledger, ranks: &mut HashMap<CurrencyId, u32>) -> Option<u32> {
        match self {
            Place::Currency(id) => ledger.currency(id).map(|_| rank(ledger, id, ranks)),
            Place::Client(id) => ledger.client(id).map(|_| u32::MAX),
        }
    }
}

/// Recursion is as deep as the chain of currencies, see the ledger's limits.
fn rank(ledger: &Ledger, currency: CurrencyId, ranks: &mut HashMap<CurrencyId, u32>) -> u32 {
    if let Some(rank) = ranks.get(&currency) {
        return *rank;
    }
    let backing = funding(ledger, Target::Currency(currency)).into_iter();
    let above = backing
        .map(|(above, _)| rank(ledger, above, ranks) + 1)
        .max();
    let own = above.unwrap_or(0);
    ranks.insert(currency, own);
    own
}

#[cfg(test)]
mod tests;
