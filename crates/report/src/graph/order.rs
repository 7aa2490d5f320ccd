//! Orders the nodes within each layer to reduce crossings, by the median method
//! of Gansner, Koutsofios, North and Vo (1993). Keeps the best order seen.

/// Sweeps down and up; more sweeps rarely help.
const SWEEPS: usize = 12;

/// Nodes in layers, and edges that run from each layer to the next one.
#[derive(Clone, Debug)]
pub(super) struct Layered {
    /// Nodes of each layer from left to right.
    pub layers: Vec<Vec<usize>>,
    /// For each node, its neighbours in the layer above.
    pub above: Vec<Vec<usize>>,
    /// For each node, its neighbours in the layer below.
    pub below: Vec<Vec<usize>>,
}

impl Layered {
    /// Index of each node in its layer.
    pub fn places(&self) -> Vec<usize> {
        let mut places = vec![0; self.above.len()];
        for layer in &self.layers {
            for (place, &node) in layer.iter().enumerate() {
                places[node] = place;
            }
        }
        places
    }

    /// Number of crossing pairs of edges, in O(e log e).
    pub fn crossings(&self) -> usize {
        let places = self.places();
        let mut crossings = 0;
        for layer in &self.layers {
            let mut ends = Vec::new();
            for &node in layer {
                let mut below: Vec<usize> =
                    self.below[node].iter().map(|&end| places[end]).collect();
                below.sort_unstable();
                ends.extend(below);
            }
            crossings += inversions(&mut ends);
        }
        crossings
    }

    /// Looks for an order with few crossings, from the present one.
    pub fn untangle(&mut self) {
        let mut best = (self.crossings(), self.layers.clone());
        for sweep in 0..SWEEPS {
            if best.0 == 0 {
                break;
            }
            let down = sweep % 2 == 0;
            for step in 1..self.layers.len() {
                let layer = if down {
                    step
                } else {
                    self.layers.len() - 1 - step
                };
                self.sort_by_median(layer, down);
            }
            let crossings = self.crossings();
            if crossings < best.0 {
                best = (crossings, self.layers.clone());
            }
        }
        self.layers = best.1;
    }

    fn sort_by_median(&mut self, layer: usize, down: bool) {
        let places = self.places();
        let neighbours = if down { &self.above } else { &self.below };
        let key = |&node: &usize| {
            let mut around: Vec<usize> = neighbours[node].iter().map(|&end| places[end]).collect();
            around.sort_unstable();
            match around.len() {
                // A node without neighbours keeps its index.
                0 => places[node] as f64,
                n if n % 2 == 1 => around[n / 2] as f64,
                n => (around[n / 2 - 1] + around[n / 2]) as f64 / 2.0,
            }
        };
        let mut keyed: Vec<(f64, usize)> = self.layers[layer]
            .iter()
            .map(|node| (key(node), *node))
            .collect();
        keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.layers[layer] = keyed.into_iter().map(|(_, node)| node).collect();
    }
}

/// Pairs out of order, counted while merging.
fn inversions(items: &mut [usize]) -> usize {
    if items.len() < 2 {
        return 0;
    }
    let (left, right) = items.split_at_mut(items.len() / 2);
    let mut count = inversions(left) + inversions(right);
    let (mut i, mut j) = (0, 0);
    let mut merged = Vec::with_capacity(left.len() + right.len());
    while i < left.len() || j < right.len() {
        if j == right.len() || (i < left.len() && left[i] <= right[j]) {
            merged.push(left[i]);
            i += 1;
        } else {
            count += left.len() - i;
            merged.push(right[j]);
            j += 1;
        }
    }
    items.copy_from_slice(&merged);
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two layers of `width` nodes with these edges.
    fn two_layers(width: usize, edges: &[(usize, usize)]) -> Layered {
        let mut layered = Layered {
            layers: vec![(0..width).collect(), (width..2 * width).collect()],
            above: vec![Vec::new(); 2 * width],
            below: vec![Vec::new(); 2 * width],
        };
        for &(from, to) in edges {
            layered.below[from].push(width + to);
            layered.above[width + to].push(from);
        }
        layered
    }

    #[test]
    fn crossings_are_counted() {
        assert_eq!(two_layers(2, &[(0, 1), (1, 0)]).crossings(), 1);
        assert_eq!(two_layers(3, &[(0, 2), (1, 1), (2, 0)]).crossings(), 3);
        assert_eq!(two_layers(2, &[(0, 0), (0, 1), (1, 1)]).crossings(), 0);
    }

    #[test]
    fn a_tangle_that_can_be_undone_is_undone() {
        let mut layered = two_layers(6, &[(0, 5), (1, 4), (2, 3), (3, 2), (4, 1), (5, 0)]);
        assert_eq!(layered.crossings(), 15);
        layered.untangle();
        assert_eq!(layered.crossings(), 0);
        assert_eq!(layered.layers[1].len(), 6);
    }

    #[test]
    fn untangling_never_makes_it_worse() {
        // Complete bipartite: every order has the same crossings.
        let edges: Vec<_> = (0..4)
            .flat_map(|from| (0..4).map(move |to| (from, to)))
            .collect();
        let mut layered = two_layers(4, &edges);
        let before = layered.crossings();
        layered.untangle();
        assert_eq!(layered.crossings(), before);
    }
}
