//! The currency graph (1994, Figure 3): currencies, clients, tickets, values.
//!
//! Nodes are currencies and clients. An edge stands for one currency's tickets
//! that fund one node. [`GraphDrawing::new`] checks the graph; [`GraphDrawing::text`] and
//! [`GraphDrawing::svg`] draw it with the base currency at the top.

mod layout;
mod order;
mod svg;
mod text;

/// Largest number of nodes; a larger drawing would be illegible.
pub const MAX_NODES: usize = 2000;

/// Largest number of edges.
pub const MAX_EDGES: usize = 8000;

/// Kind of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A currency.
    Currency,
    /// A client.
    Client,
}

/// A currency or a client.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Currency or client.
    pub kind: Kind,
    /// Present value in base units.
    pub value: f64,
    /// Whether it competes.
    pub active: bool,
    /// Further text, such as `200 of 300 active`.
    pub detail: String,
}

/// Tickets of one currency that fund one node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edge {
    /// Node of the tickets' currency.
    pub from: usize,
    /// Node that the tickets fund.
    pub to: usize,
    /// Face value.
    pub amount: u64,
    /// Whether the tickets are active.
    pub active: bool,
    /// Whether a transfer lent the tickets.
    pub lent: bool,
}

/// A graph that cannot be drawn.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages explain the variants")]
pub enum GraphError {
    /// More than [`MAX_NODES`] or [`MAX_EDGES`].
    #[error(
        "the graph has {nodes} nodes and {edges} edges, a drawing holds {MAX_NODES} and {MAX_EDGES}: \
         read the lists of currencies and tickets instead"
    )]
    TooLarge { nodes: usize, edges: usize },
    #[error("edge {0} ends at a node that is not there: give both ends among the nodes")]
    NoSuchNode(usize),
    #[error("{0:?} funds itself by a cycle: a currency graph has none")]
    Cycle(String),
}

/// A graph that can be drawn: within its limits, and without cycles.
#[derive(Clone, PartialEq, Debug)]
pub struct GraphDrawing {
    nodes: Vec<Node>,
    /// At most one for each pair of ends and kind of ticket (own or lent).
    edges: Vec<Edge>,
    /// Layer of each node, above all nodes that it funds.
    layers: Vec<usize>,
}

impl GraphDrawing {
    /// Checks the graph and joins the tickets that run between the same ends.
    pub fn new(nodes: Vec<Node>, edges: Vec<Edge>) -> Result<Self, GraphError> {
        if nodes.len() > MAX_NODES || edges.len() > MAX_EDGES {
            return Err(GraphError::TooLarge {
                nodes: nodes.len(),
                edges: edges.len(),
            });
        }
        if let Some(index) = edges
            .iter()
            .position(|edge| edge.from.max(edge.to) >= nodes.len())
        {
            return Err(GraphError::NoSuchNode(index));
        }
        let edges = join(edges);
        let layers = layers(&nodes, &edges)?;
        Ok(Self {
            nodes,
            edges,
            layers,
        })
    }

    /// The graph as indented text, one line for each edge, none wider than
    /// `limit` columns if given.
    pub fn text(&self, limit: Option<usize>) -> String {
        text::draw(self, limit)
    }

    /// The graph as a whole SVG document.
    pub fn svg(&self, title: &str) -> String {
        svg::draw(self, title)
    }
}

/// Merges edges between the same nodes, but not own with lent tickets.
fn join(mut edges: Vec<Edge>) -> Vec<Edge> {
    edges.sort_by_key(|edge| (edge.from, edge.to, edge.lent));
    edges.dedup_by(|next, kept| {
        let same = (next.from, next.to, next.lent) == (kept.from, kept.to, kept.lent);
        if same {
            kept.amount = kept.amount.saturating_add(next.amount);
            kept.active |= next.active;
        }
        same
    });
    edges
}

/// The longest way from the top to each node.
fn layers(nodes: &[Node], edges: &[Edge]) -> Result<Vec<usize>, GraphError> {
    let mut waiting = vec![0_usize; nodes.len()];
    for edge in edges {
        waiting[edge.to] += 1;
    }
    let mut ready: Vec<usize> = (0..nodes.len())
        .filter(|&node| waiting[node] == 0)
        .collect();
    let mut layers = vec![0; nodes.len()];
    let mut placed = 0;
    while let Some(node) = ready.pop() {
        placed += 1;
        // `edges` is sorted by `from`.
        let first = edges.partition_point(|edge| edge.from < node);
        for edge in edges[first..].iter().take_while(|edge| edge.from == node) {
            layers[edge.to] = layers[edge.to].max(layers[node] + 1);
            waiting[edge.to] -= 1;
            if waiting[edge.to] == 0 {
                ready.push(edge.to);
            }
        }
    }
    match waiting.iter().position(|&edges| edges > 0) {
        Some(node) if placed < nodes.len() => Err(GraphError::Cycle(nodes[node].name.clone())),
        _ => Ok(layers),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn node(name: &str, kind: Kind, value: f64, detail: &str) -> Node {
        Node {
            name: name.to_owned(),
            kind,
            value,
            active: value > 0.0,
            detail: detail.to_owned(),
        }
    }

    fn edge(from: usize, to: usize, amount: u64, active: bool) -> Edge {
        Edge {
            from,
            to,
            amount,
            active,
            lent: false,
        }
    }

    /// The drawing of 1994, Figure 3.
    pub(crate) fn figure_3() -> GraphDrawing {
        use Kind::{Client, Currency};
        let nodes = vec![
            node("base", Currency, 3000.0, "3000 of 3000 active"),
            node("alice", Currency, 1000.0, "200 of 300 active"),
            node("bob", Currency, 2000.0, "100 of 100 active"),
            node("task1", Currency, 0.0, "0 of 100 active"),
            node("task2", Currency, 1000.0, "500 of 500 active"),
            node("task3", Currency, 2000.0, "100 of 100 active"),
            node("thread1", Client, 0.0, "blocked"),
            node("thread2", Client, 400.0, "running"),
            node("thread3", Client, 600.0, "waiting"),
            node("thread4", Client, 2000.0, "running"),
        ];
        let edges = vec![
            edge(0, 1, 1000, true),
            edge(0, 2, 2000, true),
            edge(1, 3, 100, false),
            edge(1, 4, 200, true),
            edge(2, 5, 100, true),
            edge(3, 6, 100, false),
            edge(4, 7, 200, true),
            edge(4, 8, 300, true),
            edge(5, 9, 100, true),
        ];
        GraphDrawing::new(nodes, edges).expect("Figure 3 is a graph")
    }

    #[test]
    fn layers_follow_the_longest_way() {
        assert_eq!(figure_3().layers, [0, 1, 1, 2, 2, 2, 3, 3, 3, 3]);
        let three = || {
            ["a", "b", "c"]
                .map(|name| node(name, Kind::Currency, 1.0, ""))
                .to_vec()
        };
        let graph = GraphDrawing::new(
            three(),
            vec![
                edge(0, 2, 1, true),
                edge(0, 1, 1, true),
                edge(1, 2, 1, true),
            ],
        );
        assert_eq!(graph.unwrap().layers, [0, 1, 2]);
    }

    #[test]
    fn a_cycle_and_a_loose_end_are_refused() {
        let two = || {
            ["a", "b"]
                .map(|name| node(name, Kind::Currency, 1.0, ""))
                .to_vec()
        };
        let cycle = GraphDrawing::new(two(), vec![edge(0, 1, 1, true), edge(1, 0, 1, true)]);
        assert_eq!(cycle, Err(GraphError::Cycle("a".to_owned())));
        assert_eq!(
            GraphDrawing::new(two(), vec![edge(0, 0, 1, true)]),
            Err(GraphError::Cycle("a".to_owned()))
        );
        assert_eq!(
            GraphDrawing::new(two(), vec![edge(0, 2, 1, true)]),
            Err(GraphError::NoSuchNode(0))
        );
    }

    #[test]
    fn limits_hold_at_the_limit_and_one_past_it() {
        let nodes = |count| vec![node("n", Kind::Client, 1.0, ""); count];
        assert!(GraphDrawing::new(nodes(MAX_NODES), Vec::new()).is_ok());
        assert!(matches!(
            GraphDrawing::new(nodes(MAX_NODES + 1), Vec::new()),
            Err(GraphError::TooLarge { .. })
        ));
        let edges = |count| vec![edge(0, 1, 1, true); count];
        assert!(GraphDrawing::new(nodes(2), edges(MAX_EDGES)).is_ok());
        assert!(matches!(
            GraphDrawing::new(nodes(2), edges(MAX_EDGES + 1)),
            Err(GraphError::TooLarge { .. })
        ));
    }

    #[test]
    fn tickets_between_the_same_ends_become_one_edge() {
        let two = ["a", "b"]
            .map(|name| node(name, Kind::Currency, 1.0, ""))
            .to_vec();
        let lent = Edge {
            lent: true,
            ..edge(0, 1, 5, true)
        };
        let graph = GraphDrawing::new(
            two,
            vec![edge(0, 1, 100, false), lent.clone(), edge(0, 1, 20, true)],
        )
        .unwrap();
        assert_eq!(graph.edges, [edge(0, 1, 120, true), lent]);
    }
}
