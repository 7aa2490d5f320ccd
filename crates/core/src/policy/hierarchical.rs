//! Hierarchical stride scheduling (1995, 4): a balanced binary tree of groups,
//! in which the two sides of each group compete by stride scheduling.
//!
//! Against plain stride scheduling it bounds the *absolute* error too: by the
//! height of the tree, ⌈lg n⌉ quanta for n clients that never change, and it
//! spreads a large client's turns more evenly. In exchange each decision costs
//! a visit to every level.
//!
//! # What the paper leaves open
//!
//! * Equal passes go to the left, that is to the client that joined first while
//!   no client has left.
//! * A client without tickets (1995, 3.1) and a client that left have no leaf in
//!   the tree. They find their remain again when they come back.
//! * On several CPUs a group is picked from until all its clients are taken. It
//!   pays for that when they are charged.
//!
//! # Limits
//!
//! A client is held at 2^18 quanta above or below its share. A charge
//! counts for at most 2^16 quanta.

use alloc::vec::Vec;

use super::hierarchical_tree::{Leaf, LeafIndex, MAX_SURPLUS, Tree};
use super::stride_ahead::Ahead;
use super::stride_service::{PartUnit, STRIDE1};
use super::{ClientIndex, MAX_CLIENTS, Policy, PolicyError};

/// A client's participation.
#[derive(Clone, Copy, Debug)]
enum Participation {
    /// Left, or never joined, with the surplus that it would come back with.
    Left { surplus: i128 },
    /// Joined without tickets.
    Ticketless { surplus: i128 },
    /// Joined with tickets.
    Competing { leaf: LeafIndex, tickets: u32 },
}

#[derive(Clone, Copy, Debug)]
struct Member {
    participation: Participation,
    /// Whether it runs; only while joined.
    taken: bool,
    part_unit: PartUnit,
}

/// A client with no history joins with a whole stride remaining: no surplus.
const UNKNOWN: Member = Member {
    participation: Participation::Left { surplus: 0 },
    taken: false,
    part_unit: PartUnit::NONE,
};

/// Hierarchical stride scheduling (1995, 4).
#[derive(Clone, Debug)]
pub struct HierarchicalStride {
    /// By client index.
    members: Vec<Member>,
    /// Its leaves are the clients that are `Competing`.
    tree: Tree,
    joined: usize,
    ahead: Ahead,
}

impl HierarchicalStride {
    /// A scheduler without clients.
    pub fn new() -> Self {
        Self {
            members: Vec::new(),
            tree: Tree::new(),
            joined: 0,
            ahead: Ahead::default(),
        }
    }

    fn joined(&mut self, client: ClientIndex) -> Result<&mut Member, PolicyError> {
        self.members
            .get_mut(client.0 as usize)
            .filter(|member| !matches!(member.participation, Participation::Left { .. }))
            .ok_or(PolicyError::NotJoined(client))
    }

    /// Takes a client out of the tree, if it is there. Returns its surplus.
    fn withdraw(&mut self, client: ClientIndex) -> i128 {
        match self.members[client.0 as usize].participation {
            Participation::Left { surplus } | Participation::Ticketless { surplus } => surplus,
            Participation::Competing { leaf, .. } => {
                let surplus = self.tree.remove(leaf);
                self.suit_tree();
                surplus
            }
        }
    }

    /// Lets a client that is not in the tree compete, if it has tickets.
    fn compete(&mut self, client: ClientIndex, tickets: u32, surplus: i128) {
        let index = client.0 as usize;
        self.members[index].participation = if tickets == 0 {
            Participation::Ticketless { surplus }
        } else {
            self.suit_tree();
            let leaf = self.tree.insert(Leaf {
                client,
                tickets,
                waiting: !self.members[index].taken,
                surplus,
            });
            Participation::Competing { leaf, tickets }
        };
    }

    fn suit_tree(&mut self) {
        let Some(leaves) = self.tree.suitable_leaves() else {
            return;
        };
        let members = &mut self.members;
        self.tree.resize(leaves, |client, new_leaf| {
            if let Participation::Competing { leaf, .. } =
                &mut members[client.0 as usize].participation
            {
                *leaf = new_leaf;
            }
        });
    }
}

impl Default for HierarchicalStride {
    fn default() -> Self {
        Self::new()
    }
}

/// Cost: O(lg n) each; changes of participation amortised, as the tree grows
/// and shrinks by doubling and halving, with an allocation.
impl Policy for HierarchicalStride {
    fn join(&mut self, client: ClientIndex, tickets: u32) -> Result<(), PolicyError> {
        if client.0 >= MAX_CLIENTS {
            return Err(PolicyError::TooManyClients(client));
        }
        let index = client.0 as usize;
        if index >= self.members.len() {
            self.members.resize(index + 1, UNKNOWN);
        }
        let Participation::Left { surplus } = self.members[index].participation else {
            return Err(PolicyError::AlreadyJoined(client));
        };
        self.joined += 1;
        self.compete(client, tickets, surplus);
        Ok(())
    }

    fn leave(&mut self, client: ClientIndex) -> Result<(), PolicyError> {
        self.joined(client)?.taken = false;
        let surplus = self.withdraw(client);
        self.members[client.0 as usize].participation = Participation::Left { surplus };
        self.joined -= 1;
        Ok(())
    }

    fn forget(&mut self, client: ClientIndex) {
        // A refusal means that the client does not compete: nothing to leave.
        let _ = self.leave(client);
        if let Some(member) = self.members.get_mut(client.0 as usize) {
            *member = UNKNOWN;
        }
    }

    fn set_tickets(&mut self, client: ClientIndex, tickets: u32) -> Result<(), PolicyError> {
        match &mut self.joined(client)?.participation {
            Participation::Competing { leaf, tickets: own } if tickets > 0 => {
                *own = tickets;
                let leaf = *leaf;
                self.tree.set_tickets(leaf, tickets);
            }
            _ => {
                let surplus = self.withdraw(client);
                self.compete(client, tickets, surplus);
            }
        }
        Ok(())
    }

    fn pick(&mut self) -> Option<ClientIndex> {
        self.tree.pick()
    }

    fn take(&mut self, client: ClientIndex) -> Result<(), PolicyError> {
        let member = self.joined(client)?;
        member.taken = true;
        if let Participation::Competing { leaf, .. } = member.participation {
            self.tree.set_waiting(leaf, false);
        }
        Ok(())
    }

    fn untake(&mut self, client: ClientIndex) -> Result<(), PolicyError> {
        let member = self.joined(client)?;
        member.taken = false;
        if let Participation::Competing { leaf, .. } = member.participation {
            self.tree.set_waiting(leaf, true);
        }
        Ok(())
    }

    fn charge(&mut self, client: ClientIndex, used: u64, quantum: u64) -> Result<(), PolicyError> {
        let member = self.joined(client)?;
        if quantum == 0 {
            return Err(PolicyError::ZeroQuantum(client));
        }
        member.taken = false;
        let service = member.part_unit.service(used, quantum);
        match &mut member.participation {
            Participation::Competing { leaf, .. } => {
                let leaf = *leaf;
                let passes = self.ahead.charge(service);
                // The tree lets time pass for the whole service.
                self.tree.charge(leaf, service);
                self.tree
                    .pass_time(i128::from(passes) - i128::from(service));
                self.tree.set_waiting(leaf, true);
            }
            Participation::Left { surplus } | Participation::Ticketless { surplus } => {
                *surplus = (*surplus + i128::from(service)).min(MAX_SURPLUS);
                let passes = self.ahead.charge(service);
                self.tree.pass_time(passes.into());
            }
        }
        Ok(())
    }

    fn pass_time(&mut self, uncharged: u64, quantum: u64) {
        let passes = self.ahead.pass(uncharged, quantum);
        self.tree.pass_time(passes.into());
    }

    fn run_off(&mut self, client: ClientIndex, lead: u64, quantum: u64) {
        let service = u128::from(lead) * u128::from(STRIDE1) / u128::from(quantum.max(1));
        if let Some(member) = self.members.get_mut(client.0 as usize)
            && let Participation::Left { surplus } = &mut member.participation
        {
            let forgiven = (*surplus - service as i128).max(0);
            *surplus -= forgiven;
            // So much less are the others below their shares.
            self.tree.pass_time(-forgiven);
        }
    }

    fn total_tickets(&self) -> u64 {
        self.tree.tickets()
    }

    fn len(&self) -> usize {
        self.joined
    }
}
