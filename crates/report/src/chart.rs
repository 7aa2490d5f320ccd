//! Charts in the style of the papers: curves, dots and bars over two axes.

use std::fmt::Write as _;

use crate::svg::{Anchor, Px, SERIES_COLOURS, Svg};

/// The shape of a curve.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Shape {
    /// A line through the points.
    Line,
    /// A dashed line through the points, for specified values.
    Dashed,
    /// Separate triangles, circles or squares, by curve.
    Dots,
    /// Bars from zero, centred on the points, with a width in units of x.
    Bars(f64),
}

/// Points with a name and a style.
#[derive(Clone, PartialEq, Debug)]
pub struct Curve {
    /// Name in the legend; a curve with an empty name has no entry.
    pub name: String,
    /// Shape of the curve.
    pub shape: Shape,
    /// Number of the colour. A curve and its ideal share a colour.
    pub colour: usize,
    /// x and y, in the order in which they are joined.
    pub points: Vec<(f64, f64)>,
}

impl Curve {
    /// Joins points in their order.
    pub fn new(
        shape: Shape,
        colour: usize,
        name: impl Into<String>,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        Self {
            name: name.into(),
            shape,
            colour,
            points: points.into_iter().collect(),
        }
    }
}

/// An axis. It begins at zero.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Axis {
    /// Quantity and unit.
    pub label: String,
    /// Largest value; `None` for the largest value of the curves.
    pub end: Option<f64>,
}

impl Axis {
    /// An axis that ends where the curves do.
    pub fn of(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            end: None,
        }
    }

    /// An axis with a given end.
    pub fn up_to(end: f64, label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            end: Some(end),
        }
    }
}

/// A vertical line at a value of x.
#[derive(Clone, PartialEq, Debug)]
pub struct Rule {
    /// Value of x.
    pub x: f64,
    /// Label; may be empty.
    pub name: String,
    /// Whether it is dashed.
    pub dashed: bool,
}

/// A chart.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Chart {
    /// Heading.
    pub title: String,
    /// A line below it; left out if empty.
    pub caption: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Curves from the lowest to the topmost.
    pub curves: Vec<Curve>,
    /// Drawn over the curves.
    pub rules: Vec<Rule>,
}

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 92.0;
const BOTTOM: f64 = 54.0;

impl Chart {
    /// The chart as a whole SVG document. Points that are no numbers are left
    /// out.
    pub fn svg(&self) -> String {
        self.draw().finish()
    }

    /// The chart, to be put among others.
    pub fn draw(&self) -> Svg {
        let mut svg = Svg::headed(WIDTH, HEIGHT, &self.title, &self.caption);
        let scale = ChartScale::of(self);
        scale.draw(&mut svg, self);
        for curve in &self.curves {
            svg.begin_group(&curve.name);
            draw_curve(&mut svg, &scale, curve);
            svg.end_group();
        }
        for rule in &self.rules {
            let x = scale.x.at(rule.x);
            let class = if rule.dashed { "event" } else { "axis" };
            let data = format!("M{} {} V{}", Px(x), Px(TOP - 4.0), Px(HEIGHT - BOTTOM));
            svg.path(class, &data);
            svg.text("faint", (x + 4.0, TOP + 8.0), Anchor::Start, &rule.name);
        }
        self.draw_legend(&mut svg);
        svg
    }

    fn draw_legend(&self, svg: &mut Svg) {
        let mut x = LEFT;
        for curve in self.curves.iter().filter(|curve| !curve.name.is_empty()) {
            let colour = curve.colour % SERIES_COLOURS;
            let y = TOP - 18.0;
            match curve.shape {
                Shape::Line => svg.path(&format!("line s{colour}"), &segment(x, y)),
                Shape::Dashed => svg.path(&format!("specified s{colour}"), &segment(x, y)),
                Shape::Dots => dot(svg, colour, (x + 9.0, y - 4.0)),
                Shape::Bars(_) => svg.rect(
                    &format!("f{colour}"),
                    (x + 3.0, y - 10.0),
                    (12.0, 10.0),
                    1.0,
                ),
            }
            svg.text("faint", (x + 23.0, y), Anchor::Start, &curve.name);
            x += 34.0 + crate::svg::text_width(&curve.name);
        }
    }
}

fn segment(x: f64, y: f64) -> String {
    format!("M{} {} h18", Px(x), Px(y - 4.0))
}

fn draw_curve(svg: &mut Svg, scale: &ChartScale, curve: &Curve) {
    let colour = curve.colour % SERIES_COLOURS;
    let points = curve.points.iter();
    let points = points.filter(|(x, y)| x.is_finite() && y.is_finite());
    match curve.shape {
        Shape::Line | Shape::Dashed => {
            let mut data = String::new();
            for &(x, y) in points {
                let command = if data.is_empty() { 'M' } else { 'L' };
                // Writing to a String cannot fail.
                let _ = write!(data, "{command}{} {}", Px(scale.x.at(x)), Px(scale.y.at(y)));
            }
            let class = if curve.shape == Shape::Line {
                "line"
            } else {
                "specified"
            };
            svg.path(&format!("{class} s{colour}"), &data);
        }
        Shape::Dots => {
            points.for_each(|&(x, y)| dot(svg, colour, (scale.x.at(x), scale.y.at(y))));
        }
        Shape::Bars(width) => {
            for &(x, y) in points {
                let (left, right) = (scale.x.at(x - width / 2.0), scale.x.at(x + width / 2.0));
                let (top, bottom) = (scale.y.at(y), scale.y.at(0.0));
                let size = ((right - left - 0.5).max(0.5), bottom - top);
                svg.rect(&format!("f{colour}"), (left, top), size, 0.0);
            }
        }
    }
}

/// A triangle, a circle, a square, and again (1995, Figure 2).
fn dot(svg: &mut Svg, colour: usize, (x, y): (f64, f64)) {
    let data = match colour % 3 {
        0 => format!("M{} {} l4 8 h-8 z", Px(x), Px(y - 5.0)),
        1 => format!(
            "M{} {} a4 4 0 1 0 8 0 a4 4 0 1 0 -8 0 z",
            Px(x - 4.0),
            Px(y)
        ),
        _ => format!("M{} {} h7 v7 h-7 z", Px(x - 3.5), Px(y - 3.5)),
    };
    svg.path(&format!("f{colour}"), &data);
}

/// From values to pixels along one axis.
struct AxisScale {
    end: f64,
    step: f64,
    from_px: f64,
    to_px: f64,
}

impl AxisScale {
    fn new(largest: f64, given: Option<f64>, from_px: f64, to_px: f64) -> AxisScale {
        let positive = |end: &f64| end.is_finite() && *end > 0.0;
        let wanted = given.filter(positive).unwrap_or(largest);
        let wanted = Some(wanted).filter(positive).unwrap_or(1.0);
        let step = nice_step(wanted);
        let end = if given.is_some() {
            wanted
        } else {
            (wanted / step - 1e-9).ceil() * step
        };
        AxisScale {
            end,
            step,
            from_px,
            to_px,
        }
    }

    fn at(&self, value: f64) -> f64 {
        self.from_px + (value / self.end).clamp(0.0, 1.0) * (self.to_px - self.from_px)
    }

    fn ticks(&self) -> impl Iterator<Item = f64> + '_ {
        let count = (self.end / self.step + 1e-9) as u32;
        (0..=count).map(|tick| f64::from(tick) * self.step)
    }
}

/// 1, 2 or 5 times a power of ten, so that there are some six steps.
fn nice_step(end: f64) -> f64 {
    let power = 10f64.powf((end / 6.0).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    let enough = steps.into_iter().find(|step| end / step <= 7.0);
    enough.unwrap_or(10.0 * power)
}

struct ChartScale {
    x: AxisScale,
    y: AxisScale,
}

impl ChartScale {
    fn of(chart: &Chart) -> ChartScale {
        let largest = |part: fn(&(f64, f64)) -> f64| {
            let points = chart.curves.iter().flat_map(|curve| &curve.points);
            let values = points.map(part).filter(|value| value.is_finite());
            values.fold(0.0, f64::max)
        };
        ChartScale {
            x: AxisScale::new(largest(|point| point.0), chart.x.end, LEFT, WIDTH - RIGHT),
            y: AxisScale::new(largest(|point| point.1), chart.y.end, HEIGHT - BOTTOM, TOP),
        }
    }

    fn draw(&self, svg: &mut Svg, chart: &Chart) {
        for value in self.y.ticks() {
            let y = self.y.at(value);
            let class = if value == 0.0 { "axis" } else { "grid" };
            svg.path(
                class,
                &format!("M{} {} H{}", Px(LEFT), Px(y), Px(WIDTH - RIGHT)),
            );
            let label = number(value, self.y.step);
            svg.text("faint", (LEFT - 8.0, y + 4.0), Anchor::End, &label);
        }
        for value in self.x.ticks() {
            let (x, base) = (self.x.at(value), HEIGHT - BOTTOM);
            svg.path("axis", &format!("M{} {} v5", Px(x), Px(base)));
            let label = number(value, self.x.step);
            svg.text("faint", (x, base + 19.0), Anchor::Middle, &label);
        }
        let middle = (LEFT + WIDTH - RIGHT) / 2.0;
        svg.text(
            "faint",
            (middle, HEIGHT - 14.0),
            Anchor::Middle,
            &chart.x.label,
        );
        svg.turned_text(
            "faint",
            (18.0, (TOP + HEIGHT - BOTTOM) / 2.0),
            &chart.y.label,
        );
    }
}

/// With as many digits behind the point as the steps need.
fn number(value: f64, step: f64) -> String {
    let decimals = (-(step.log10() + 1e-9).floor()).clamp(0.0, 9.0) as usize;
    if step >= 1e5 {
        return format!("{:.1} M", value / 1e6);
    }
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::texts_of;

    fn chart(shape: Shape, points: &[(f64, f64)]) -> Chart {
        Chart {
            title: "Errors & <quanta>".to_owned(),
            caption: "a run".to_owned(),
            x: Axis::of("allocations"),
            y: Axis::of("error"),
            curves: vec![Curve::new(shape, 1, "stride", points.iter().copied())],
            rules: vec![Rule {
                x: 1.0,
                name: "mean".to_owned(),
                dashed: true,
            }],
        }
    }

    #[test]
    fn a_chart_names_its_axes_and_curves_in_every_shape() {
        for shape in [Shape::Line, Shape::Dashed, Shape::Dots, Shape::Bars(1.0)] {
            let texts = texts_of(&chart(shape, &[(0.0, 0.0), (3.0, 12.0)]).svg());
            for wanted in [
                "Errors & <quanta>",
                "a run",
                "allocations",
                "error",
                "stride",
                "mean",
                "12",
                "3.0",
            ] {
                assert!(
                    texts.iter().any(|text| text == wanted),
                    "{wanted}: {texts:?}"
                );
            }
        }
    }

    #[test]
    fn an_empty_chart_is_well_formed() {
        texts_of(&Chart::default().svg());
        let odd = [(f64::NAN, 1.0), (1.0, f64::INFINITY)];
        for shape in [Shape::Line, Shape::Dots, Shape::Bars(1.0)] {
            let document = chart(shape, &odd).svg();
            assert!(
                !document.contains("NaN") && !document.contains("inf"),
                "{document}"
            );
        }
    }

    #[test]
    fn axes_end_at_a_step_and_have_few() {
        for largest in [0.003, 0.7, 1.0, 9.9, 10.0, 47.0, 1000.0, 25_378.0, 8e6] {
            let range = AxisScale::new(largest, None, 0.0, 1.0);
            assert!(
                range.end >= largest && range.end < 2.0 * largest,
                "{largest}: {}",
                range.end
            );
            assert!((3..=8).contains(&range.ticks().count()), "{largest}");
        }
        assert_eq!(AxisScale::new(9.0, Some(20.0), 0.0, 1.0).end, 20.0);
    }

    #[test]
    fn numbers_on_axes_are_short() {
        assert_eq!(number(0.5, 0.5), "0.5");
        assert_eq!(number(20.0, 5.0), "20");
        assert_eq!(number(0.002, 0.001), "0.002");
        assert_eq!(
            [5e5, 8e6].map(|value| number(value, 5e5)),
            ["0.5 M", "8.0 M"]
        );
    }
}
