//! SVG documents: a few shapes, escaped text, and one style for all drawings.

use std::fmt::{Display, Write as _};

/// Number of colours for series and kinds in the style sheet (`s0` to `s5`).
pub const SERIES_COLOURS: usize = 6;

/// The style of every drawing, light and dark. A drawing paints its own
/// background, so it stays legible on a page of another theme. Colour-blind
/// readers can distinguish the colours (after Okabe and Ito).
const STYLE: &str = "
text { font-family: ui-sans-serif, system-ui, 'DejaVu Sans', Helvetica, Arial, sans-serif; font-size: 13px; fill: #24292f }
.title { font-size: 17px; font-weight: 600 }
.strong { font-weight: 600 }
.faint { fill: #57606a; font-size: 12px }
.panel { fill: #ffffff; stroke: #d0d7de }
.grid { stroke: #d8dee4; stroke-width: 1; fill: none }
.axis { stroke: #8c959f; stroke-width: 1; fill: none }
.event { stroke: #57606a; stroke-width: 1; stroke-dasharray: 2 3; fill: none }
.line { fill: none; stroke-width: 2.5; stroke-linejoin: round }
.specified { fill: none; stroke-width: 1.25; stroke-dasharray: 6 4 }
.s0 { stroke: #0072b2 } .s1 { stroke: #c85200 } .s2 { stroke: #007f5c }
.s3 { stroke: #a8518a } .s4 { stroke: #8a6d00 } .s5 { stroke: #5b5fc7 }
.f0 { fill: #0072b2 } .f1 { fill: #c85200 } .f2 { fill: #007f5c }
.f3 { fill: #a8518a } .f4 { fill: #8a6d00 } .f5 { fill: #5b5fc7 }
.node { stroke-width: 1.5 }
.currency { fill: #eaf3fb; stroke: #0072b2 }
.client { fill: #fdf0e6; stroke: #c85200 }
.edge { fill: none; stroke: #57606a; stroke-width: 1.5 }
.arrow { fill: #57606a; stroke: none }
.label { fill: #ffffff; stroke: none }
.on { fill: #ffffff; stroke: none }
.idle { stroke-dasharray: 5 4; fill: #f6f8fa; stroke: #8c959f }
.lent { stroke: #a8518a }
path.idle { fill: none; stroke: #8c959f }
text.idle { fill: #6e7781; stroke: none }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.faint { fill: #9198a1 }
.panel { fill: #0d1117; stroke: #3d444d }
.grid { stroke: #2a313c }
.axis { stroke: #656c76 }
.event { stroke: #9198a1 }
.s0 { stroke: #58b4ee } .s1 { stroke: #ff9350 } .s2 { stroke: #35c79a }
.s3 { stroke: #e08fc4 } .s4 { stroke: #dcb62f } .s5 { stroke: #a5a8ff }
.f0 { fill: #58b4ee } .f1 { fill: #ff9350 } .f2 { fill: #35c79a }
.f3 { fill: #e08fc4 } .f4 { fill: #dcb62f } .f5 { fill: #a5a8ff }
.currency { fill: #10263a; stroke: #58b4ee }
.client { fill: #33200f; stroke: #ff9350 }
.edge { stroke: #9198a1 }
.arrow { fill: #9198a1 }
.label { fill: #0d1117 }
.on { fill: #0d1117 }
.idle { fill: #161b22; stroke: #656c76 }
.lent { stroke: #e08fc4 }
path.idle { fill: none; stroke: #656c76 }
text.idle { fill: #8b949e }
}
";

/// Where titles begin.
const HEAD_LEFT: f64 = 24.0;
/// Between two drawings of a sheet.
const SHEET_GAP: f64 = 12.0;

/// Where a text stands relative to its point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Anchor {
    /// It begins there.
    Start,
    /// It is centred there.
    Middle,
    /// It ends there.
    End,
}

/// A point or size in pixels; prints with one decimal at most.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Px(pub f64);

impl Display for Px {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // NaN would make a path invalid, and -0 is noise.
        let tenths = if self.0.is_finite() {
            (self.0 * 10.0).round()
        } else {
            0.0
        };
        write!(f, "{}", if tenths == 0.0 { 0.0 } else { tenths / 10.0 })
    }
}

/// A drawing in the making.
#[derive(Clone, Debug)]
pub struct Svg {
    width: f64,
    height: f64,
    title: String,
    /// All shapes so far.
    out: String,
}

// Writing to a String cannot fail, so the results of write! are dropped below.
impl Svg {
    /// A drawing of this size; `title` is what a screen reader says.
    pub fn new(width: f64, height: f64, title: &str) -> Self {
        let mut svg = Self {
            width,
            height,
            title: title.to_owned(),
            out: String::new(),
        };
        svg.rect("panel", (0.5, 0.5), (width - 1.0, height - 1.0), 8.0);
        svg
    }

    /// A drawing with its title above it, and a line below that.
    pub fn headed(width: f64, height: f64, title: &str, caption: &str) -> Self {
        let mut svg = Self::new(width, height, title);
        svg.text("title", (HEAD_LEFT, 34.0), Anchor::Start, title);
        if !caption.is_empty() {
            svg.text("faint", (HEAD_LEFT, 55.0), Anchor::Start, caption);
        }
        svg
    }

    /// Drawings one below the other, under the title of the first.
    pub fn sheet(drawings: Vec<Svg>) -> Self {
        let mut sheet = Self {
            width: drawings.iter().fold(0.0, |width, d| d.width.max(width)),
            height: 0.0,
            title: drawings.first().map_or(String::new(), |d| d.title.clone()),
            out: String::new(),
        };
        for drawing in drawings {
            let y = Px(sheet.height);
            let _ = writeln!(sheet.out, r#"<g transform="translate(0 {y})">"#);
            sheet.out.push_str(&drawing.out);
            sheet.end_group();
            sheet.height += drawing.height + SHEET_GAP;
        }
        sheet.height = (sheet.height - SHEET_GAP).max(0.0);
        sheet
    }

    /// A rectangle with rounded corners; its upper left corner and its size.
    pub fn rect(
        &mut self,
        class: &str,
        (x, y): (f64, f64),
        (width, height): (f64, f64),
        radius: f64,
    ) {
        let (x, y, width, height, radius) = (Px(x), Px(y), Px(width), Px(height), Px(radius));
        let _ = writeln!(
            self.out,
            r#"<rect class="{}" x="{x}" y="{y}" width="{width}" height="{height}" rx="{radius}"/>"#,
            escape(class)
        );
    }

    /// A path; `data` in SVG's own terms.
    pub fn path(&mut self, class: &str, data: &str) {
        let _ = writeln!(
            self.out,
            r#"<path class="{}" d="{}"/>"#,
            escape(class),
            escape(data)
        );
    }

    /// A text whose base line is at `y`.
    pub fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let _ = writeln!(
            self.out,
            r#"<text class="{}" x="{}" y="{}" text-anchor="{anchor}">{}</text>"#,
            escape(class),
            Px(x),
            Px(y),
            escape(text)
        );
    }

    /// A text turned to read upwards, centred at a point.
    pub fn turned_text(&mut self, class: &str, (x, y): (f64, f64), text: &str) {
        let (x, y) = (Px(x), Px(y));
        let _ = writeln!(
            self.out,
            r#"<text class="{}" x="{x}" y="{y}" text-anchor="middle" transform="rotate(-90 {x} {y})">{}</text>"#,
            escape(class),
            escape(text)
        );
    }

    /// Begins a group that shows `title` under the pointer.
    pub fn begin_group(&mut self, title: &str) {
        let _ = writeln!(self.out, "<g><title>{}</title>", escape(title));
    }

    /// Ends the group begun last.
    pub fn end_group(&mut self) {
        self.out.push_str("</g>\n");
    }

    /// The whole document.
    pub fn finish(self) -> String {
        let (w, h, title) = (Px(self.width), Px(self.height), escape(&self.title));
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" viewBox="0 0 {w} {h}" role="img">
<title>{title}</title>
<style>{STYLE}</style>
{}</svg>
"#,
            self.out
        )
    }
}

/// `text` as XML character data or as an attribute's value. Characters that
/// XML 1.0 forbids even when escaped become U+FFFD.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\t' | '\n' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'.. => out.push(c),
            _ => out.push('\u{fffd}'),
        }
    }
    out
}

/// Pixels that `text` takes at 13 px, on the safe side: wide characters count
/// twice.
pub fn text_width(text: &str) -> f64 {
    crate::text::width(text) as f64 * 7.6
}

/// Asserts that `document` is well-formed XML and gives its texts.
#[cfg(test)]
pub(crate) fn texts_of(document: &str) -> Vec<String> {
    use quick_xml::events::Event;
    let mut reader = quick_xml::Reader::from_str(document);
    reader.config_mut().check_end_names = true;
    let (mut texts, mut depth, mut text) = (Vec::new(), 0, String::new());
    loop {
        match reader.read_event().expect("well-formed XML") {
            Event::Start(tag) => {
                tag.attributes()
                    .for_each(|attribute| drop(attribute.expect("an attribute")));
                depth += 1;
                text.clear();
            }
            Event::Empty(tag) => tag
                .attributes()
                .for_each(|attribute| drop(attribute.expect("an attribute"))),
            Event::End(_) => {
                depth -= 1;
                texts.push(std::mem::take(&mut text));
            }
            Event::Text(part) => text.push_str(&part),
            Event::GeneralRef(name) => {
                text.push_str(
                    quick_xml::escape::resolve_xml_entity(&name).expect("a known entity"),
                );
            }
            Event::Eof => break,
            _ => {}
        }
    }
    assert_eq!(depth, 0, "every element is closed");
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_stays_text() {
        let hostile = "</text><script>alert('&\"1\"')</script>\u{0}\u{1b}\u{ffff}";
        let mut svg = Svg::new(100.0, 50.0, hostile);
        svg.begin_group(hostile);
        svg.text("strong", (1.0, 2.0), Anchor::End, hostile);
        svg.path(hostile, "M0 0");
        svg.rect("\"><b>", (0.0, 0.0), (1.0, 1.0), 0.0);
        svg.end_group();
        let document = svg.finish();
        let shown = "</text><script>alert('&\"1\"')</script>\u{fffd}\u{fffd}\u{fffd}";
        assert_eq!(
            texts_of(&document)
                .iter()
                .filter(|text| *text == shown)
                .count(),
            3
        );
        assert!(!document.contains("<script"));
    }

    #[test]
    fn a_sheet_holds_all_its_drawings_and_no_two_overlap() {
        let drawing = |title: &str, height| Svg::headed(100.0, height, title, "how");
        let sheet = Svg::sheet(vec![drawing("first", 50.0), drawing("second & last", 70.0)]);
        let document = sheet.finish();
        let texts = texts_of(&document);
        let counts = ["first", "second & last", "how"].map(|wanted| {
            let same = texts.iter().filter(|text| *text == wanted);
            same.count()
        });
        assert_eq!(counts, [2, 1, 2], "{texts:?}");
        assert!(document.contains(r#"viewBox="0 0 100 132""#), "{document}");
        assert!(document.contains(r#"translate(0 62)"#), "{document}");
        assert_eq!(document.matches("<style>").count(), 1);
        texts_of(&Svg::sheet(Vec::new()).finish());
    }

    #[test]
    fn numbers_print_short_and_never_as_nan() {
        let printed =
            [1.0, 1.25, -0.04, f64::NAN, f64::INFINITY, 1e9].map(|number| Px(number).to_string());
        assert_eq!(printed, ["1", "1.3", "0", "0", "0", "1000000000"]);
    }
}
