//! The currency graph as indented text.

use super::{GraphDrawing, Kind};
use crate::table::{Side, Table};
use crate::text::printable;

/// Draws a node's subtree under its first backer, and only its name under the
/// other backers.
pub(super) fn draw(graph: &GraphDrawing, limit: Option<usize>) -> String {
    let mut drawing = TextDrawing {
        graph,
        drawn: vec![false; graph.nodes.len()],
        table: Table::new(&[
            ("GRAPH", Side::Left),
            ("VALUE", Side::Right),
            ("STATE", Side::Left),
        ]),
    };
    for node in (0..graph.nodes.len()).filter(|&node| graph.layers[node] == 0) {
        drawing.row(node, String::new());
        drawing.below(node, "");
    }
    let mut out = drawing.table.lines(limit).join("\n");
    out.push('\n');
    out
}

struct TextDrawing<'a> {
    graph: &'a GraphDrawing,
    /// Whether each node's subtree is drawn.
    drawn: Vec<bool>,
    table: Table,
}

impl TextDrawing<'_> {
    /// Draws what `node` funds. Depth is bounded by the number of layers.
    fn below(&mut self, node: usize, indent: &str) {
        let graph = self.graph;
        let first = graph.edges.partition_point(|edge| edge.from < node);
        let edges: Vec<_> = graph.edges[first..]
            .iter()
            .take_while(|edge| edge.from == node)
            .collect();
        for (index, edge) in edges.iter().enumerate() {
            let last = index + 1 == edges.len();
            let branch = if last { "└─" } else { "├─" };
            let line = if edge.active { "─" } else { "╌" };
            let lent = if edge.lent { " lent" } else { "" };
            let seen = self.drawn[edge.to];
            self.row(
                edge.to,
                format!("{indent}{branch} {}{lent} {line}> ", edge.amount),
            );
            if !seen {
                self.below(
                    edge.to,
                    &format!("{indent}{}", if last { "   " } else { "│  " }),
                );
            }
        }
    }

    fn row(&mut self, index: usize, lead: String) {
        let node = &self.graph.nodes[index];
        let name = match node.kind {
            Kind::Currency => printable(&node.name),
            Kind::Client => format!("({})", printable(&node.name)),
        };
        if std::mem::replace(&mut self.drawn[index], true) {
            self.table.row(vec![
                format!("{lead}{name}"),
                String::new(),
                "as above".to_owned(),
            ]);
        } else {
            let state = if node.active {
                String::new()
            } else {
                "inactive, ".to_owned()
            };
            self.table.row(vec![
                format!("{lead}{name}"),
                format!("{:.1}", node.value),
                format!("{state}{}", node.detail),
            ]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::figure_3;
    use super::super::{Edge, GraphDrawing, Node};
    use super::*;

    #[test]
    fn figure_3_as_text() {
        let expected = "\
GRAPH                       VALUE  STATE
base                       3000.0  3000 of 3000 active
├─ 1000 ─> alice           1000.0  200 of 300 active
│  ├─ 100 ╌> task1            0.0  inactive, 0 of 100 active
│  │  └─ 100 ╌> (thread1)     0.0  inactive, blocked
│  └─ 200 ─> task2         1000.0  500 of 500 active
│     ├─ 200 ─> (thread2)   400.0  running
│     └─ 300 ─> (thread3)   600.0  waiting
└─ 2000 ─> bob             2000.0  100 of 100 active
   └─ 100 ─> task3         2000.0  100 of 100 active
      └─ 100 ─> (thread4)  2000.0  running
";
        assert_eq!(figure_3().text(None), expected);
    }

    #[test]
    fn a_node_with_two_backers_is_drawn_once() {
        let node = |name: &str| Node {
            name: name.to_owned(),
            kind: Kind::Currency,
            value: 1.0,
            active: true,
            detail: "active".to_owned(),
        };
        let edge = |from, to, lent| Edge {
            from,
            to,
            amount: 7,
            active: true,
            lent,
        };
        let nodes = vec![
            node("base"),
            node("a"),
            node("b"),
            node("both"),
            node("\u{1b}[2J"),
        ];
        let edges = vec![
            edge(0, 1, false),
            edge(0, 2, false),
            edge(1, 3, false),
            edge(2, 3, true),
            edge(3, 4, false),
        ];
        let text = GraphDrawing::new(nodes, edges).unwrap().text(None);
        assert_eq!(text.matches("both").count(), 2);
        assert!(text.contains("└─ 7 lent ─> both"), "{text}");
        assert_eq!(text.matches("as above").count(), 1);
        assert_eq!(text.matches("\\u{1b}[2J").count(), 1, "{text}");
    }
}
