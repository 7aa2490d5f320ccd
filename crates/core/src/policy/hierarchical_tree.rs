//! The balanced binary tree of hierarchical stride scheduling (1995, 4).
//!
//! A group's two sides compete by their passes, and only with each other. So
//! instead of two passes a group keeps their difference, multiplied by both
//! sides' tickets: then no step divides, and all is exact.
//!
//! ```text
//!   lead = (left.pass - right.pass) * left.tickets * right.tickets
//!        = left.remain * right.tickets - right.remain * left.tickets
//! ```
//!
//! Here a `remain` is the paper's times the tickets: service that is left of
//! the wait, relative to the whole machine's pass (the paper's root pass). A
//! remain that exceeds a whole stride is *surplus*: service above the share.
//! What a client got too much its group got too much, so
//!
//! ```text
//!   remain = STRIDE1 + surplus,     group.surplus = left.surplus + right.surplus
//! ```
//!
//! By these two equations the surplus of any node can be found on the way
//! down from the root, where it is known. Changes leave surplus alone: that is
//! Figure 7's scaling of `remain` by `stride' / stride`. A client that joins
//! or leaves adds or subtracts its own surplus all the way up, so that no client
//! pays for the credit of a neighbour that is gone.

use alloc::vec;
use alloc::vec::Vec;

use super::ClientIndex;
use super::stride_service::STRIDE1;

/// Service above its share that a node is held at: 2^18 quanta.
pub(super) const MAX_SURPLUS: i128 = 1 << 62;
/// A surplus times the tickets of all clients, and some more: what a lead is
/// held at.
const MAX_LEAD: i128 = 1 << 120;
/// The root's place in the tree. The children of `node` are at `2 * node` and
/// `2 * node + 1`.
const ROOT: usize = 1;
/// Levels from the root to a leaf of the largest tree.
const MAX_DEPTH: usize = 25;

/// A client or a group of clients; 32 bytes.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// Of a group: how far the left side is ahead, see above. It is
    /// `STRIDE1 * right.tickets` when the left side is empty, and so on: an
    /// empty side has no surplus.
    lead: i128,
    /// Sum over the leaves below.
    tickets: u64,
    /// Leaves below that can be picked.
    waiting: u32,
    /// The client of a leaf. Meaningless where there are no tickets.
    client: ClientIndex,
}

const EMPTY: Node = Node {
    lead: 0,
    tickets: 0,
    waiting: 0,
    client: ClientIndex(u32::MAX),
};

/// A leaf that is in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LeafIndex(u32);

/// What a client in the tree has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaf {
    pub(super) client: ClientIndex,
    /// At least 1.
    pub(super) tickets: u32,
    pub(super) waiting: bool,
    pub(super) surplus: i128,
}

/// A complete binary tree whose leaves are clients with tickets.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    /// A root at 1, and so on, down to a power of two of leaves that fill the
    /// second half.
    nodes: Vec<Node>,
    /// Leaves without a client.
    free: Vec<LeafIndex>,
    /// Surplus of all leaves together. It is not zero once a client left with
    /// surplus.
    surplus: i128,
}

impl Tree {
    pub(super) fn new() -> Self {
        Self {
            nodes: vec![EMPTY; 2],
            free: vec![LeafIndex(1)],
            surplus: 0,
        }
    }

    /// Tickets of all leaves.
    pub(super) fn tickets(&self) -> u64 {
        self.nodes[ROOT].tickets
    }

    fn leaves(&self) -> usize {
        self.nodes.len() / 2
    }

    /// The client that has the smallest pass on its side of every group: left
    /// before right among equals. Cost: one node for each level (Figure 6).
    pub(super) fn pick(&self) -> Option<ClientIndex> {
        if self.nodes[ROOT].waiting == 0 {
            return None;
        }
        let mut node = ROOT;
        while node < self.leaves() {
            let left_waits = self.nodes[2 * node].waiting > 0;
            let right_waits = self.nodes[2 * node + 1].waiting > 0;
            let right = !left_waits || right_waits && self.nodes[node].lead > 0;
            node = 2 * node + usize::from(right);
        }
        Some(self.nodes[node].client)
    }

    /// Says whether a leaf can be picked.
    pub(super) fn set_waiting(&mut self, slot: LeafIndex, waiting: bool) {
        let mut node = slot.0 as usize;
        if (self.nodes[node].waiting > 0) == waiting {
            return;
        }
        while node >= ROOT {
            let count = &mut self.nodes[node].waiting;
            *count = if waiting { *count + 1 } else { *count - 1 };
            node /= 2;
        }
    }

    /// Accounts for service that a leaf got: every group above it moves on
    /// (Figure 6). Cost: one multiplication a level.
    pub(super) fn charge(&mut self, slot: LeafIndex, service: u64) {
        let mut node = slot.0 as usize;
        while node > ROOT {
            let sibling = self.nodes[node ^ 1].tickets;
            let step = (u128::from(service) * u128::from(sibling)) as i128;
            let group = &mut self.nodes[node / 2];
            let lead = group.lead + if is_left(node) { step } else { -step };
            group.lead = lead.clamp(-MAX_LEAD, MAX_LEAD);
            node /= 2;
        }
    }

    /// Time passes for all clients of the tree, but none of them got the service. Where it is
    /// negative, time goes back.
    pub(super) fn pass_time(&mut self, service: i128) {
        if self.tickets() > 0 {
            self.surplus = held(self.surplus - service);
        }
    }

    /// Adds a leaf. Cost: O(lg n); amortised, as the tree may have to grow.
    pub(super) fn insert(&mut self, leaf: Leaf) -> LeafIndex {
        let slot = self.free.pop().expect("the caller has grown a full tree");
        self.nodes[slot.0 as usize].client = leaf.client;
        self.change(slot, leaf.tickets, |_| leaf.surplus);
        self.set_waiting(slot, leaf.waiting);
        slot
    }

    /// Removes a leaf and says how much surplus it goes with. Cost: O(lg n).
    pub(super) fn remove(&mut self, slot: LeafIndex) -> i128 {
        self.set_waiting(slot, false);
        let mut surplus = 0;
        self.change(slot, 0, |before| {
            surplus = before;
            0
        });
        self.free.push(slot);
        surplus
    }

    /// Changes a leaf's tickets, to at least 1 (Figure 7). Cost: O(lg n).
    pub(super) fn set_tickets(&mut self, slot: LeafIndex, tickets: u32) {
        self.change(slot, tickets, |surplus| surplus);
    }

    /// Gives a leaf other tickets and other surplus, and changes the groups
    /// above accordingly. Rounding: less than a unit of service a level.
    fn change(&mut self, slot: LeafIndex, tickets: u32, surplus: impl FnOnce(i128) -> i128) {
        let leaf = slot.0 as usize;
        // Surplus of each node on the way down, and of its sibling.
        let mut path = [(0, 0); MAX_DEPTH];
        let depth = leaf.ilog2() as usize;
        path[0] = (self.surplus, 0);
        for level in 1..=depth {
            let node = leaf >> (depth - level);
            let (left, right) = self.sides(node / 2, path[level - 1].0);
            path[level] = if is_left(node) {
                (left, right)
            } else {
                (right, left)
            };
        }
        let more_tickets = i128::from(tickets) - i128::from(self.nodes[leaf].tickets);
        let more_surplus = held(surplus(path[depth].0)) - path[depth].0;
        for level in (0..=depth).rev() {
            let index = leaf >> (depth - level);
            let node = &mut self.nodes[index];
            node.tickets = (i128::from(node.tickets) + more_tickets) as u64;
            let left_out = node.tickets == 0;
            let (own, sibling) = path[level];
            let own = if left_out {
                0
            } else {
                held(own + more_surplus)
            };
            if level == 0 {
                self.surplus = own;
            } else if is_left(index) {
                self.set_sides(index / 2, own, sibling);
            } else {
                self.set_sides(index / 2, sibling, own);
            }
        }
    }

    /// Surplus of the left and of the right side of a group.
    fn sides(&self, group: usize, surplus: i128) -> (i128, i128) {
        let left = i128::from(self.nodes[2 * group].tickets);
        let right = i128::from(self.nodes[2 * group + 1].tickets);
        if left + right == 0 {
            return (0, 0);
        }
        let lead = self.nodes[group].lead + i128::from(STRIDE1) * (left - right);
        let left = held((lead + surplus * left).div_euclid(left + right));
        (left, held(surplus - left))
    }

    /// Sets the lead of a group so that its sides have these surpluses.
    fn set_sides(&mut self, group: usize, left: i128, right: i128) {
        let left_tickets = i128::from(self.nodes[2 * group].tickets);
        let right_tickets = i128::from(self.nodes[2 * group + 1].tickets);
        self.nodes[group].lead = (i128::from(STRIDE1) + left) * right_tickets
            - (i128::from(STRIDE1) + right) * left_tickets;
    }

    /// Whether the tree has to grow before a leaf can be added, or is so empty
    /// that it should shrink, as the bound on the error grows with its height.
    /// Between two such changes lie as many operations as a quarter of the
    /// leaves.
    pub(super) fn suitable_leaves(&self) -> Option<usize> {
        let used = self.leaves() - self.free.len();
        if self.free.is_empty() {
            Some(2 * self.leaves())
        } else if self.leaves() > 1 && 4 * used < self.leaves() {
            Some(self.leaves() / 2)
        } else {
            None
        }
    }

    /// Moves all clients, in their order, into a tree of so many leaves, and
    /// tells `moved` where each is. Cost: O(n), and an allocation.
    pub(super) fn resize(&mut self, leaves: usize, mut moved: impl FnMut(ClientIndex, LeafIndex)) {
        let mut surplus = vec![0; self.nodes.len()];
        surplus[ROOT] = self.surplus;
        for group in ROOT..self.leaves() {
            (surplus[2 * group], surplus[2 * group + 1]) = self.sides(group, surplus[group]);
        }
        let old = core::mem::replace(&mut self.nodes, vec![EMPTY; 2 * leaves]);
        let mut new_surplus = vec![0; self.nodes.len()];
        let mut slot = leaves;
        for index in old.len() / 2..old.len() {
            if old[index].tickets > 0 {
                self.nodes[slot] = old[index];
                new_surplus[slot] = surplus[index];
                moved(old[index].client, LeafIndex(slot as u32));
                slot += 1;
            }
        }
        self.free.clear();
        self.free
            .extend((slot as u32..2 * leaves as u32).rev().map(LeafIndex));
        for group in (ROOT..leaves).rev() {
            let (left, right) = (self.nodes[2 * group], self.nodes[2 * group + 1]);
            self.nodes[group].tickets = left.tickets + right.tickets;
            self.nodes[group].waiting = left.waiting + right.waiting;
            new_surplus[group] = held(new_surplus[2 * group] + new_surplus[2 * group + 1]);
            self.set_sides(group, new_surplus[2 * group], new_surplus[2 * group + 1]);
        }
        self.surplus = new_surplus[ROOT];
    }
}

const fn is_left(node: usize) -> bool {
    node.is_multiple_of(2)
}

fn held(surplus: i128) -> i128 {
    surplus.clamp(-MAX_SURPLUS, MAX_SURPLUS)
}
