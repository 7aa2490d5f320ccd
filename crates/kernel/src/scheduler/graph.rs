//! The graph of rights as the caller made it. Each change is checked here; the kernel checks
//! nothing.

use std::collections::{BTreeSet, HashMap};

use super::{BASE, CGROUP_NODES, MAX_AMOUNT, MAX_DEPTH, ROOT_CGROUP, Ticket};
use crate::KernelError;

/// The tickets that fund a node.
pub struct Funding {
    /// The list's name.
    pub list: u32,
    /// The number of tickets in the list.
    pub length: u32,
    currencies: BTreeSet<u32>,
    /// The longest chain of tickets to the base currency.
    depth: u32,
}

/// All nodes that exist.
#[derive(Default)]
pub struct Graph {
    nodes: HashMap<u32, Funding>,
    /// Nodes that each node funds.
    funds: HashMap<u32, BTreeSet<u32>>,
}

impl Graph {
    /// Whether these tickets may fund the node. Cost: the nodes that it funds, directly or
    /// not.
    pub fn check(&self, node: u32, tickets: &[Ticket]) -> Result<(), KernelError> {
        if node == BASE {
            return Err(KernelError::Base);
        }
        if node >= CGROUP_NODES && node != ROOT_CGROUP {
            return Err(KernelError::NoSuchNode { node });
        }
        for &Ticket { currency, amount } in tickets {
            if !(1..=MAX_AMOUNT).contains(&amount) {
                return Err(KernelError::Amount { node, amount });
            }
            if currency >= CGROUP_NODES {
                return Err(KernelError::NoSuchNode { node: currency });
            }
            if currency != BASE && !self.nodes.contains_key(&currency) {
                return Err(KernelError::UnknownNode { node: currency });
            }
        }
        let depth = self.depth_of(tickets);
        let mut heights = HashMap::new();
        if depth + self.height(node, &mut heights) > MAX_DEPTH {
            return Err(KernelError::TooDeep { node });
        }
        let below = |currency: &u32| heights.contains_key(currency);
        match tickets.iter().map(|ticket| ticket.currency).find(below) {
            Some(currency) => Err(KernelError::Cycle { node, currency }),
            None => Ok(()),
        }
    }

    /// Applies what [`Graph::check`] has accepted. Returns what funded the node before.
    pub fn fund(&mut self, node: u32, tickets: &[Ticket], list: u32) -> Option<Funding> {
        let currencies: BTreeSet<u32> = tickets.iter().map(|ticket| ticket.currency).collect();
        let before = self.forget(node);
        for &currency in &currencies {
            self.funds.entry(currency).or_default().insert(node);
        }
        let funding = Funding {
            list,
            length: tickets.len() as u32,
            currencies,
            depth: self.depth_of(tickets),
        };
        self.nodes.insert(node, funding);
        self.deepen(node);
        before
    }

    pub fn forget(&mut self, node: u32) -> Option<Funding> {
        let before = self.nodes.remove(&node)?;
        for currency in &before.currencies {
            if let Some(funded) = self.funds.get_mut(currency) {
                funded.remove(&node);
            }
        }
        Some(before)
    }

    pub fn nodes(&self) -> Vec<u32> {
        self.nodes.keys().copied().collect()
    }

    /// Whether the node exists.
    pub fn contains(&self, node: u32) -> bool {
        self.nodes.contains_key(&node)
    }

    /// Whether the node funds others.
    pub fn funds_any(&self, node: u32) -> bool {
        self.funds
            .get(&node)
            .is_some_and(|funded| !funded.is_empty())
    }

    fn depth_of(&self, tickets: &[Ticket]) -> u32 {
        let depth = |ticket: &Ticket| self.nodes.get(&ticket.currency).map_or(0, |n| n.depth);
        tickets.iter().map(depth).max().map_or(0, |depth| depth + 1)
    }

    /// The longest chain of tickets below a node. Visits each node below once, and enters
    /// all of them and the node itself into `heights`. Recurses at most [`MAX_DEPTH`] deep.
    fn height(&self, node: u32, heights: &mut HashMap<u32, u32>) -> u32 {
        if let Some(&height) = heights.get(&node) {
            return height;
        }
        let funded = self.funds.get(&node).into_iter().flatten();
        let height = funded
            .map(|&below| self.height(below, heights) + 1)
            .max()
            .unwrap_or(0);
        heights.insert(node, height);
        height
    }

    /// Updates the depths of all nodes below one.
    fn deepen(&mut self, node: u32) {
        let mut todo = vec![node];
        while let Some(node) = todo.pop() {
            for below in self.funds.get(&node).cloned().unwrap_or_default() {
                let depth = |n: &u32| self.nodes.get(n).map_or(0, |n| n.depth);
                let currencies = &self.nodes[&below].currencies;
                let new = currencies.iter().map(depth).max().map_or(0, |d| d + 1);
                let funding = self.nodes.get_mut(&below).expect("it is funded");
                if std::mem::replace(&mut funding.depth, new) != new {
                    todo.push(below);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket(currency: u32) -> Ticket {
        Ticket {
            currency,
            amount: 1,
        }
    }

    fn chain(length: u32) -> Graph {
        let mut graph = Graph::default();
        for node in 1..=length {
            graph.check(node, &[ticket(node - 1)]).unwrap();
            graph.fund(node, &[ticket(node - 1)], 0);
        }
        graph
    }

    #[test]
    fn a_chain_may_be_as_long_as_the_limit() {
        let graph = chain(MAX_DEPTH);
        let error = graph.check(MAX_DEPTH + 1, &[ticket(MAX_DEPTH)]);
        assert!(matches!(error, Err(KernelError::TooDeep { node: 17 })));
        assert!(graph.check(MAX_DEPTH + 1, &[ticket(MAX_DEPTH - 1)]).is_ok());
        // A ticket in the middle lengthens the chain, too.
        let mut graph = graph;
        graph.fund(20, &[ticket(BASE)], 0);
        assert!(graph.check(1, &[ticket(20)]).is_err());
        assert!(graph.check(2, &[ticket(20)]).is_ok());
    }

    #[test]
    fn no_node_funds_itself() {
        let graph = chain(5);
        for node in 1..=5 {
            let error = graph.check(node, &[ticket(BASE), ticket(5)]);
            assert!(matches!(error, Err(KernelError::Cycle { currency: 5, .. })));
        }
    }

    #[test]
    fn depths_follow_changes_above() {
        let mut graph = chain(MAX_DEPTH);
        graph.fund(1, &[], 0);
        graph.fund(8, &[ticket(BASE)], 0);
        assert!(graph.check(17, &[ticket(MAX_DEPTH)]).is_ok());
        assert!(graph.funds_any(8));
        assert!(!graph.funds_any(7));
    }

    #[test]
    fn values_outside_the_limits_are_refused() {
        let graph = chain(1);
        let wrong = |node, currency, amount| graph.check(node, &[Ticket { currency, amount }]);
        assert!(matches!(wrong(BASE, 1, 1), Err(KernelError::Base)));
        assert!(wrong(CGROUP_NODES - 1, 1, 1).is_ok());
        assert!(wrong(ROOT_CGROUP, 1, 1).is_ok());
        assert!(matches!(
            wrong(ROOT_CGROUP + 1, 1, 1),
            Err(KernelError::NoSuchNode { .. })
        ));
        assert!(matches!(
            wrong(2, ROOT_CGROUP, 1),
            Err(KernelError::NoSuchNode { .. })
        ));
        assert!(matches!(
            wrong(2, 3, 1),
            Err(KernelError::UnknownNode { node: 3 })
        ));
        assert!(matches!(wrong(2, 1, 0), Err(KernelError::Amount { .. })));
        assert!(wrong(2, 1, MAX_AMOUNT).is_ok());
        assert!(wrong(2, 1, MAX_AMOUNT + 1).is_err());
    }
}
