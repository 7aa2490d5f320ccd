//! Received and specified shares of programs over time.

use std::fmt::Write as _;

use crate::svg::{Anchor, Px, SERIES_COLOURS, Svg};

/// Received and specified shares of one program.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Series {
    /// Its name, written at the end of its line.
    pub name: String,
    /// Time in seconds and part of the machine received, 0 to 1, in order of
    /// time.
    pub received: Vec<(f64, f64)>,
    /// Specified shares, each from a time in seconds on, in order of time.
    pub specified: Vec<(f64, f64)>,
}

/// A plot of shares over time.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SharePlot {
    /// Heading.
    pub title: String,
    /// A line about the measurement.
    pub caption: String,
    /// Length of the time axis, in seconds.
    pub duration_s: f64,
    /// The programs.
    pub series: Vec<Series>,
    /// Events with a vertical line each: time in seconds and label.
    pub events: Vec<(f64, String)>,
}

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 92.0;
const BOTTOM: f64 = 52.0;
/// Least distance between the base lines of two names.
const NAME_GAP: f64 = 36.0;

impl SharePlot {
    /// The plot as a whole SVG document.
    pub fn svg(&self) -> String {
        self.draw().finish()
    }

    /// The plot, to be put among other drawings.
    pub fn draw(&self) -> Svg {
        let mut svg = Svg::headed(WIDTH, HEIGHT, &self.title, &self.caption);
        let scale = PlotScale::of(self);
        scale.draw_axes(&mut svg);
        for (at_s, what) in &self.events {
            let x = scale.x(*at_s);
            svg.path(
                "event",
                &format!("M{} {} V{}", Px(x), Px(TOP - 6.0), Px(HEIGHT - BOTTOM)),
            );
            svg.text("faint", (x, TOP - 11.0), Anchor::Middle, what);
        }
        for (index, series) in self.series.iter().enumerate() {
            let colour = index % SERIES_COLOURS;
            svg.begin_group(&series.name);
            svg.path(
                &format!("specified s{colour}"),
                &scale.steps(&series.specified),
            );
            svg.path(
                &format!("line s{colour}"),
                &scale.polyline(&series.received),
            );
            svg.end_group();
        }
        self.draw_names(&mut svg, &scale);
        svg
    }

    /// Names at the right, beside the last point of each line, moved apart
    /// where they would overlap.
    fn draw_names(&self, svg: &mut Svg, scale: &PlotScale) {
        let last = |points: &[(f64, f64)]| points.last().map_or(0.0, |point| point.1);
        let mut order: Vec<(f64, usize)> = self
            .series
            .iter()
            .enumerate()
            .map(|(index, series)| (scale.y(last(&series.received)), index))
            .collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut lowest_free = f64::NEG_INFINITY;
        for (y, index) in order {
            let y = y.max(lowest_free);
            lowest_free = y + NAME_GAP;
            let series = &self.series[index];
            let x = WIDTH - RIGHT + 14.0;
            svg.text(
                &format!("strong f{}", index % SERIES_COLOURS),
                (x, y),
                Anchor::Start,
                &crate::text::cut(&series.name, 24),
            );
            let specified = last(&series.specified) * 100.0;
            svg.text(
                "faint",
                (x, y + 15.0),
                Anchor::Start,
                &format!("specified {specified:.1} %"),
            );
        }
    }
}

/// From seconds and shares to pixels.
struct PlotScale {
    duration_s: f64,
    /// Share at the upper edge: a whole number of grid steps.
    top_share: f64,
}

impl PlotScale {
    fn of(plot: &SharePlot) -> Self {
        let shares = plot
            .series
            .iter()
            .flat_map(|series| series.received.iter().chain(&series.specified));
        let highest = shares
            .map(|point| point.1)
            .filter(|share| share.is_finite())
            .fold(0.1, f64::max);
        Self {
            duration_s: if plot.duration_s > 0.0 {
                plot.duration_s
            } else {
                1.0
            },
            top_share: (highest * 10.0 + 0.5).ceil().min(10.0) / 10.0,
        }
    }

    fn x(&self, at_s: f64) -> f64 {
        LEFT + (at_s / self.duration_s).clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, share: f64) -> f64 {
        HEIGHT - BOTTOM - (share / self.top_share).clamp(0.0, 1.0) * (HEIGHT - TOP - BOTTOM)
    }

    fn draw_axes(&self, svg: &mut Svg) {
        for tenth in 0..=(self.top_share * 10.0).round() as u32 {
            let y = self.y(f64::from(tenth) / 10.0);
            svg.path(
                if tenth == 0 { "axis" } else { "grid" },
                &format!("M{} {} H{}", Px(LEFT), Px(y), Px(WIDTH - RIGHT)),
            );
            svg.text(
                "faint",
                (LEFT - 10.0, y + 4.0),
                Anchor::End,
                &format!("{} %", tenth * 10),
            );
        }
        let step_s = [
            0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 3600.0,
        ]
        .into_iter()
        .find(|step_s| self.duration_s / step_s <= 10.5)
        .unwrap_or(self.duration_s / 10.0);
        for step in 0..=(self.duration_s / step_s + 1e-9) as u32 {
            let at_s = f64::from(step) * step_s;
            let (x, base) = (self.x(at_s), HEIGHT - BOTTOM);
            svg.path("axis", &format!("M{} {} v5", Px(x), Px(base)));
            svg.text(
                "faint",
                (x, base + 20.0),
                Anchor::Middle,
                &format!("{}", Px(at_s)),
            );
        }
        svg.text(
            "faint",
            ((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 14.0),
            Anchor::Middle,
            "seconds",
        );
    }

    fn polyline(&self, points: &[(f64, f64)]) -> String {
        let mut data = String::new();
        for (at_s, share) in points.iter().filter(|point| point.1.is_finite()) {
            let command = if data.is_empty() { 'M' } else { 'L' };
            // Writing to a String cannot fail.
            let _ = write!(
                data,
                "{command}{} {} ",
                Px(self.x(*at_s)),
                Px(self.y(*share))
            );
        }
        data
    }

    /// Each value holds until the next one.
    fn steps(&self, points: &[(f64, f64)]) -> String {
        let mut data = String::new();
        for (at_s, share) in points {
            let (x, y) = (Px(self.x(*at_s)), Px(self.y(*share)));
            let _ = if data.is_empty() {
                write!(data, "M{x} {y} ")
            } else {
                write!(data, "H{x} V{y} ")
            };
        }
        if !data.is_empty() {
            let _ = write!(data, "H{}", Px(self.x(self.duration_s)));
        }
        data
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::texts_of;

    fn plot() -> SharePlot {
        let series = |name: &str, before: f64, after: f64| Series {
            name: name.to_owned(),
            received: (0..=100)
                .map(|i| (f64::from(i) / 10.0, if i < 50 { before } else { after }))
                .collect(),
            specified: vec![(0.0, before), (5.0, after)],
        };
        SharePlot {
            title: "Three <programs> & one CPU".to_owned(),
            caption: "measured".to_owned(),
            duration_s: 10.0,
            series: vec![
                series("a", 0.5, 1.0 / 3.0),
                series("b", 1.0 / 3.0, 2.0 / 9.0),
                series("c", 1.0 / 6.0, 4.0 / 9.0),
            ],
            events: vec![(5.0, "c: 1 → 4 tickets".to_owned())],
        }
    }

    #[test]
    fn the_plot_is_well_formed_and_says_what_it_shows() {
        let texts = texts_of(&plot().svg());
        for wanted in [
            "Three <programs> & one CPU",
            "a",
            "specified 33.3 %",
            "specified 44.4 %",
            "c: 1 → 4 tickets",
            "60 %",
            "10",
        ] {
            assert!(
                texts.iter().any(|text| text == wanted),
                "{wanted:?} is missing in {texts:?}"
            );
        }
    }

    #[test]
    fn names_do_not_overlap_even_where_lines_do() {
        let mut plot = plot();
        for series in &mut plot.series {
            series.received = vec![(0.0, 0.3), (10.0, 0.3)];
        }
        let document = plot.svg();
        let mut heights: Vec<f64> = document
            .lines()
            .filter(|line| line.contains("class=\"strong f"))
            .map(|line| {
                line.split("y=\"")
                    .nth(1)
                    .unwrap()
                    .split('"')
                    .next()
                    .unwrap()
                    .parse()
                    .unwrap()
            })
            .collect();
        heights.sort_by(f64::total_cmp);
        assert_eq!(heights.len(), 3);
        assert!(
            heights
                .windows(2)
                .all(|pair| pair[1] - pair[0] >= NAME_GAP - 0.1),
            "{heights:?}"
        );
    }

    #[test]
    fn nothing_measured_is_drawn_as_nothing() {
        texts_of(&SharePlot::default().svg());
        let mut plot = plot();
        plot.duration_s = f64::NAN;
        plot.series[0].received = vec![(f64::NAN, f64::NAN)];
        assert!(!plot.svg().contains("NaN"));
    }
}
