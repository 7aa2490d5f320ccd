//! The currency graph as SVG.

use std::fmt::Write as _;

use super::layout::{GraphLayout, place};
use super::{Edge, GraphDrawing, Kind, Node};
use crate::svg::{Anchor, Px, Svg, text_width};
use crate::text::{cut, printable};

/// Columns of the longest name shown whole; the rest shows under the pointer.
const NAME_COLUMNS: usize = 28;
const LEGEND: &str = "currencies square, clients round; value in base units; dashed: inactive";
const NODE_HEIGHT: f64 = 62.0;
const LAYER_HEIGHT: f64 = 148.0;
const GAP: f64 = 28.0;
const MARGIN: f64 = 28.0;
const TOP: f64 = 84.0;
const LABEL_HEIGHT: f64 = 18.0;
/// Least distance of the arrows at one node.
const ARRIVAL_GAP: f64 = 22.0;

pub(super) fn draw(graph: &GraphDrawing, title: &str) -> String {
    let widths: Vec<f64> = (0..graph.nodes.len())
        .map(|node| node_width(graph, node))
        .collect();
    let layout = place(graph, &widths, GAP);
    let heading = (text_width(title) * 1.3).max(text_width(LEGEND));
    let width = layout.width.max(heading) + 2.0 * MARGIN;
    let height = TOP + layout.layers as f64 * LAYER_HEIGHT - (LAYER_HEIGHT - NODE_HEIGHT) + MARGIN;
    let mut svg = Svg::headed(width, height.max(TOP + MARGIN), title, "");
    svg.text("faint", (MARGIN, 57.0), Anchor::Start, LEGEND);
    let drawing = SvgDrawing {
        graph,
        layout: &layout,
        left: (width - layout.width) / 2.0,
    };
    let routes: Vec<Route> = (0..graph.edges.len())
        .map(|edge| drawing.route(edge))
        .collect();
    for (edge, route) in graph.edges.iter().zip(&routes) {
        draw_line(&mut svg, edge, route);
    }
    for (node, width) in widths.iter().enumerate() {
        draw_node(
            &mut svg,
            &graph.nodes[node],
            drawing.top_left(node, *width),
            *width,
        );
    }
    for (edge, route) in graph.edges.iter().zip(&routes) {
        draw_amount(&mut svg, edge, route);
    }
    svg.finish()
}

/// Wide enough for its texts and for the arrows that arrive.
fn node_width(graph: &GraphDrawing, index: usize) -> f64 {
    let node = &graph.nodes[index];
    let lines = [shown_name(node), value_line(node), node.detail.clone()];
    let text = lines
        .iter()
        .map(|line| text_width(line))
        .fold(0.0, f64::max);
    let arrows = graph
        .edges
        .iter()
        .filter(|edge| edge.to == index)
        .map(|edge| text_width(&amount(edge)) + 10.0);
    (text + 24.0).max(90.0).max(arrows.sum())
}

fn shown_name(node: &Node) -> String {
    cut(&printable(&node.name), NAME_COLUMNS)
}

fn value_line(node: &Node) -> String {
    if node.active {
        format!("value {:.1}", node.value)
    } else {
        "inactive".to_owned()
    }
}

fn amount(edge: &Edge) -> String {
    if edge.lent {
        format!("{} lent", edge.amount)
    } else {
        edge.amount.to_string()
    }
}

/// The way of one edge: points from its start to its end, layer by layer.
struct Route {
    points: Vec<(f64, f64)>,
}

struct SvgDrawing<'a> {
    graph: &'a GraphDrawing,
    layout: &'a GraphLayout,
    left: f64,
}

impl SvgDrawing<'_> {
    fn middle(&self, node: usize) -> f64 {
        self.left + self.layout.middles[node]
    }

    fn layer_top(&self, layer: usize) -> f64 {
        TOP + layer as f64 * LAYER_HEIGHT
    }

    fn top_left(&self, node: usize, width: f64) -> (f64, f64) {
        (
            self.middle(node) - width / 2.0,
            self.layer_top(self.graph.layers[node]),
        )
    }

    fn route(&self, index: usize) -> Route {
        let edge = &self.graph.edges[index];
        let bends = &self.layout.bends[index];
        let upper = self.graph.layers[edge.from];
        let mut points = vec![(self.middle(edge.from), self.layer_top(upper) + NODE_HEIGHT)];
        for (step, bend) in bends.iter().enumerate() {
            let top = self.layer_top(upper + 1 + step);
            points.push((self.left + bend, top));
            points.push((self.left + bend, top + NODE_HEIGHT));
        }
        points.push((
            self.arrival(index),
            self.layer_top(self.graph.layers[edge.to]) - 6.0,
        ));
        Route { points }
    }

    /// The end of an edge on its target's upper side, beside the other edges in
    /// the order of their origins.
    fn arrival(&self, index: usize) -> f64 {
        let to = self.graph.edges[index].to;
        let from_x = |edge: usize| {
            let bends = &self.layout.bends[edge];
            bends
                .last()
                .map_or(self.layout.middles[self.graph.edges[edge].from], |bend| {
                    *bend
                })
        };
        let arrivals = (0..self.graph.edges.len()).filter(|&edge| self.graph.edges[edge].to == to);
        let gap =
            |edge: usize| (text_width(&amount(&self.graph.edges[edge])) + 10.0).max(ARRIVAL_GAP);
        let (mut before, mut total) = (0.0, 0.0);
        for edge in arrivals {
            total += gap(edge);
            if (from_x(edge), edge) < (from_x(index), index) {
                before += gap(edge);
            }
        }
        self.middle(to) - total / 2.0 + before + gap(index) / 2.0
    }
}

fn draw_line(svg: &mut Svg, edge: &Edge, route: &Route) {
    let mut data = String::new();
    // Writing to a String cannot fail.
    for (index, &(x, y)) in route.points.iter().enumerate() {
        if index == 0 {
            let _ = write!(data, "M{} {}", Px(x), Px(y));
        } else {
            let (before_x, before_y) = route.points[index - 1];
            let half = (before_y + y) / 2.0;
            let _ = write!(
                data,
                " C{} {} {} {} {} {}",
                Px(before_x),
                Px(half),
                Px(x),
                Px(half),
                Px(x),
                Px(y)
            );
        }
    }
    let lent = if edge.lent { " lent" } else { "" };
    let idle = if edge.active { "" } else { " idle" };
    svg.path(&format!("edge{lent}{idle}"), &data);
    let &(x, y) = route.points.last().expect("a route has two ends");
    svg.path("arrow", &format!("M{} {} l-4 -7 h8 z", Px(x), Px(y + 6.0)));
}

/// The amount, near the arrow, where edges to different targets are apart.
fn draw_amount(svg: &mut Svg, edge: &Edge, route: &Route) {
    let &(x, y) = route.points.last().expect("a route has two ends");
    let text = amount(edge);
    let width = text_width(&text) + 4.0;
    let y = y - 16.0;
    svg.rect(
        "label",
        (x - width / 2.0, y - LABEL_HEIGHT / 2.0 - 4.0),
        (width, LABEL_HEIGHT),
        4.0,
    );
    let class = if edge.active { "" } else { "idle" };
    svg.text(class, (x, y), Anchor::Middle, &text);
}

fn draw_node(svg: &mut Svg, node: &Node, (x, y): (f64, f64), width: f64) {
    let (kind, radius) = match node.kind {
        Kind::Currency => ("currency", 6.0),
        Kind::Client => ("client", NODE_HEIGHT / 2.0),
    };
    let idle = if node.active { "" } else { " idle" };
    let middle = x + width / 2.0;
    svg.begin_group(&printable(&node.name));
    svg.rect(
        &format!("node {kind}{idle}"),
        (x, y),
        (width, NODE_HEIGHT),
        radius,
    );
    svg.text(
        &format!("strong{idle}"),
        (middle, y + 20.0),
        Anchor::Middle,
        &shown_name(node),
    );
    svg.text(
        idle.trim(),
        (middle, y + 37.0),
        Anchor::Middle,
        &value_line(node),
    );
    svg.text("faint", (middle, y + 53.0), Anchor::Middle, &node.detail);
    svg.end_group();
}

#[cfg(test)]
mod tests {
    use super::super::tests::figure_3;
    use super::*;
    use crate::svg::texts_of;

    #[test]
    fn figure_3_shows_amounts_values_and_states() {
        let document = figure_3().svg("Figure 3");
        let texts = texts_of(&document);
        let count = |wanted: &str| texts.iter().filter(|text| *text == wanted).count();
        assert_eq!(count("1000"), 1);
        assert_eq!(count("value 1000.0"), 2);
        assert_eq!(count("value 400.0"), 1);
        assert_eq!(count("inactive"), 2);
        assert_eq!(document.matches("class=\"node client").count(), 4);
        assert_eq!(document.matches("class=\"edge idle\"").count(), 2);
    }

    #[test]
    fn hostile_names_stay_inside_their_text() {
        let name = "</text><script>\u{1b}]0;x\u{7}&";
        let node = Node {
            name: name.into(),
            kind: Kind::Client,
            value: 1.0,
            active: true,
            detail: "<i>".into(),
        };
        let document = GraphDrawing::new(vec![node], Vec::new()).unwrap().svg(name);
        let texts = texts_of(&document);
        assert!(
            texts.iter().any(|text| text.starts_with("</text><script>")),
            "{texts:?}"
        );
        assert!(!document.contains("<script"));
    }

    #[test]
    fn a_graph_without_nodes_is_a_drawing_too() {
        texts_of(
            &GraphDrawing::new(Vec::new(), Vec::new())
                .unwrap()
                .svg("empty"),
        );
    }

    #[test]
    fn amounts_at_one_node_do_not_overlap() {
        let node = |name: &str| Node {
            name: name.into(),
            kind: Kind::Currency,
            value: 1.0,
            active: true,
            detail: String::new(),
        };
        let nodes: Vec<Node> = ["a", "b", "c", "d", "sink"].map(node).to_vec();
        let edge = |from| Edge {
            from,
            to: 4,
            amount: 4_294_967_295,
            active: true,
            lent: from == 2,
        };
        let document = GraphDrawing::new(nodes, (0..4).map(edge).collect())
            .unwrap()
            .svg("fan in");
        let number = |line: &str, key: &str| -> f64 {
            line.split(key)
                .nth(1)
                .unwrap()
                .split('"')
                .next()
                .unwrap()
                .parse()
                .unwrap()
        };
        let mut labels: Vec<(f64, f64)> = document
            .lines()
            .filter(|line| line.contains("class=\"label\""))
            .map(|line| (number(line, " x=\""), number(line, "width=\"")))
            .collect();
        labels.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert_eq!(labels.len(), 4);
        assert!(
            labels
                .windows(2)
                .all(|pair| pair[0].0 + pair[0].1 <= pair[1].0),
            "{labels:?}"
        );
    }
}
