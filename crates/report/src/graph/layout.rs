//! Positions of the nodes of a layered graph.
//!
//! An edge that skips layers gets a bend in each layer between, so that every
//! segment joins adjacent layers. [`super::order`] orders nodes and bends. Then
//! sweeps move each node towards the middle of its neighbours, while the layer
//! keeps its order and gaps. The least-squares solution of one such step is an
//! isotonic regression.

use super::GraphDrawing;
use super::order::Layered;

/// Sweeps that straighten the drawing, down and up in turn. The last sweep goes
/// up and centres each currency above the nodes that it funds.
const SWEEPS: usize = 16;

/// Width of a bend.
const BEND: f64 = 12.0;

/// Positions, in pixels from the left edge.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct GraphLayout {
    /// Middle of each node.
    pub middles: Vec<f64>,
    /// For each edge, the middles of its bends from top to bottom.
    pub bends: Vec<Vec<f64>>,
    /// From the left edge to the right edge.
    pub width: f64,
    pub layers: usize,
}

/// Places nodes of these widths, `gap` apart.
pub(super) fn place(graph: &GraphDrawing, widths: &[f64], gap: f64) -> GraphLayout {
    let (mut layered, bends) = with_bends(graph);
    layered.untangle();
    let mut all_widths = widths.to_vec();
    all_widths.resize(layered.above.len(), BEND);
    let mut x = vec![0.0; all_widths.len()];
    for layer in &layered.layers {
        spread(layer, &all_widths, gap, &mut x, &vec![0.0; layer.len()]);
    }
    for sweep in 0..SWEEPS {
        let down = sweep % 2 == 0;
        for step in 0..layered.layers.len() {
            let layer = &layered.layers[if down {
                step
            } else {
                layered.layers.len() - 1 - step
            }];
            let wanted: Vec<f64> = layer
                .iter()
                .map(|&node| {
                    let around = if down {
                        &layered.above[node]
                    } else {
                        &layered.below[node]
                    };
                    let count = around.len();
                    if count == 0 {
                        x[node]
                    } else {
                        around.iter().map(|&end| x[end]).sum::<f64>() / count as f64
                    }
                })
                .collect();
            spread(layer, &all_widths, gap, &mut x, &wanted);
        }
    }
    let left = (0..x.len())
        .map(|node| x[node] - all_widths[node] / 2.0)
        .fold(f64::INFINITY, f64::min);
    let right = (0..x.len())
        .map(|node| x[node] + all_widths[node] / 2.0)
        .fold(f64::NEG_INFINITY, f64::max);
    let left = if left.is_finite() { left } else { 0.0 };
    GraphLayout {
        middles: x[..widths.len()].iter().map(|x| x - left).collect(),
        bends: bends
            .into_iter()
            .map(|bends| bends.into_iter().map(|bend| x[bend] - left).collect())
            .collect(),
        width: (right - left).max(0.0),
        layers: layered.layers.len(),
    }
}

/// The graph with a bend for each layer that an edge skips, and the bends of
/// each edge.
fn with_bends(graph: &GraphDrawing) -> (Layered, Vec<Vec<usize>>) {
    let count = graph.layers.iter().max().map_or(0, |last| last + 1);
    let mut layered = Layered {
        layers: vec![Vec::new(); count],
        above: vec![Vec::new(); graph.nodes.len()],
        below: vec![Vec::new(); graph.nodes.len()],
    };
    for (node, &layer) in graph.layers.iter().enumerate() {
        layered.layers[layer].push(node);
    }
    let mut all_bends = Vec::with_capacity(graph.edges.len());
    for edge in &graph.edges {
        let (mut upper, mut bends) = (edge.from, Vec::new());
        for layer in graph.layers[edge.from] + 1..=graph.layers[edge.to] {
            let lower = if layer == graph.layers[edge.to] {
                edge.to
            } else {
                layered.above.len()
            };
            if lower == layered.above.len() {
                layered.above.push(Vec::new());
                layered.below.push(Vec::new());
                layered.layers[layer].push(lower);
                bends.push(lower);
            }
            layered.below[upper].push(lower);
            layered.above[lower].push(upper);
            upper = lower;
        }
        all_bends.push(bends);
    }
    (layered, all_bends)
}

/// Moves a layer's members as near to `wanted` as their order and gaps allow, by
/// pooling adjacent violators of the positions without gaps.
fn spread(layer: &[usize], widths: &[f64], gap: f64, x: &mut [f64], wanted: &[f64]) {
    let mut offsets = Vec::with_capacity(layer.len());
    let mut offset = 0.0;
    for (place, &node) in layer.iter().enumerate() {
        if place > 0 {
            offset += (widths[layer[place - 1]] + widths[node]) / 2.0 + gap;
        }
        offsets.push(offset);
    }
    // The sum of each pool's wanted positions, and its number of members.
    let mut pools: Vec<(f64, usize)> = Vec::with_capacity(layer.len());
    for place in 0..layer.len() {
        pools.push((wanted[place] - offsets[place], 1));
        while let [.., before, last] = pools[..] {
            if before.0 / before.1 as f64 <= last.0 / last.1 as f64 {
                break;
            }
            pools.truncate(pools.len() - 2);
            pools.push((before.0 + last.0, before.1 + last.1));
        }
    }
    let shifts = pools
        .iter()
        .flat_map(|&(sum, count)| std::iter::repeat_n(sum / count as f64, count));
    for ((&node, offset), shift) in layer.iter().zip(offsets).zip(shifts) {
        x[node] = offset + shift;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::figure_3;
    use super::super::{Edge, Kind, Node};
    use super::*;

    #[test]
    fn figure_3_is_symmetric_where_it_can_be() {
        let graph = figure_3();
        let layout = place(&graph, &[100.0; 10], 20.0);
        assert_eq!(layout.layers, 4);
        // Straight lines below bob, and task2 midway above its two threads.
        assert!(
            (layout.middles[2] - layout.middles[9]).abs() < 1.0,
            "{layout:?}"
        );
        assert!(
            (layout.middles[4] - (layout.middles[7] + layout.middles[8]) / 2.0).abs() < 1.0,
            "{layout:?}"
        );
    }

    #[test]
    fn pools_keep_the_mean() {
        let mut x = [0.0; 3];
        spread(&[0, 1, 2], &[10.0; 3], 2.0, &mut x, &[5.0, 5.0, 5.0]);
        assert_eq!(x, [-7.0, 5.0, 17.0]);
    }

    fn graphs() -> impl Strategy<Value = GraphDrawing> {
        (1..24_usize).prop_flat_map(|count| {
            let edges = proptest::collection::vec((0..count, 0..count), 0..60);
            edges.prop_map(move |ends| {
                let node = Node {
                    name: "n".into(),
                    kind: Kind::Client,
                    value: 0.0,
                    active: true,
                    detail: String::new(),
                };
                // From the lower number to the higher, so there is no cycle.
                let edges = ends
                    .into_iter()
                    .filter(|(a, b)| a != b)
                    .map(|(a, b)| Edge {
                        from: a.min(b),
                        to: a.max(b),
                        amount: 1,
                        active: true,
                        lent: false,
                    })
                    .collect();
                GraphDrawing::new(vec![node; count], edges).expect("a graph")
            })
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 200,
            failure_persistence: None,
            rng_seed: proptest::test_runner::RngSeed::Fixed(1994),
            ..ProptestConfig::default()
        })]

        #[test]
        fn nodes_of_one_layer_never_overlap(graph in graphs()) {
            let widths: Vec<f64> = (0..graph.nodes.len()).map(|node| 30.0 + 10.0 * (node % 5) as f64).collect();
            let layout = place(&graph, &widths, 8.0);
            for a in 0..widths.len() {
                prop_assert!(layout.middles[a] - widths[a] / 2.0 >= -1e-6);
                prop_assert!(layout.middles[a] + widths[a] / 2.0 <= layout.width + 1e-6);
                for b in 0..a {
                    if graph.layers[a] == graph.layers[b] {
                        let apart = (layout.middles[a] - layout.middles[b]).abs();
                        prop_assert!(apart >= (widths[a] + widths[b]) / 2.0 + 8.0 - 1e-6);
                    }
                }
            }
            for (edge, bends) in graph.edges.iter().zip(&layout.bends) {
                prop_assert_eq!(bends.len(), graph.layers[edge.to] - graph.layers[edge.from] - 1);
            }
        }
    }
}
