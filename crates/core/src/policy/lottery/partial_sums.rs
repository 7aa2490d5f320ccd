//! A tree of partial sums (1994, 4.2).

use alloc::{vec, vec::Vec};
use core::ops::{Add, Sub};

/// A complete binary tree whose leaves hold values and whose inner nodes hold
/// the sums of their children.
///
/// Changing a leaf or finding one costs O(lg n) steps.
#[derive(Clone, Debug)]
pub(crate) struct PartialSums<S> {
    /// The root is node 1, the children of node `i` are `2i` and `2i + 1`, and
    /// leaf `i` is node `leaves + i`. Node 0 is unused.
    ///
    /// Invariant: an inner node is the sum of its children.
    sums: Vec<S>,
    /// A power of two.
    leaves: usize,
}

impl<S: Copy + Default + Add<Output = S> + Sub<Output = S>> PartialSums<S> {
    pub(crate) fn new() -> Self {
        PartialSums {
            sums: vec![S::default(); 2],
            leaves: 1,
        }
    }

    pub(crate) fn total(&self) -> S {
        self.sums[1]
    }

    /// Replaces the value `from` of leaf `index` by `to`. The tree doubles as
    /// needed, O(1) a leaf in the long run.
    pub(crate) fn replace(&mut self, index: usize, from: S, to: S) {
        if index >= self.leaves {
            self.grow((index + 1).next_power_of_two());
        }
        let mut node = self.leaves + index;
        while node > 0 {
            self.sums[node] = self.sums[node] - from + to;
            node /= 2;
        }
    }

    /// Walks from the root to a leaf, at each node to the right child if
    /// `goes_right` of the left child's sum.
    #[inline]
    pub(crate) fn find(&self, mut goes_right: impl FnMut(S) -> bool) -> usize {
        let mut node = 1;
        while node < self.leaves {
            node *= 2;
            node += usize::from(goes_right(self.sums[node]));
        }
        node - self.leaves
    }

    fn grow(&mut self, leaves: usize) {
        let mut sums = vec![S::default(); 2 * leaves];
        sums[leaves..leaves + self.leaves].copy_from_slice(&self.sums[self.leaves..]);
        for node in (1..leaves).rev() {
            sums[node] = sums[2 * node] + sums[2 * node + 1];
        }
        self.sums = sums;
        self.leaves = leaves;
    }
}
