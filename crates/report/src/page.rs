//! A page of tables and drawings in one HTML file, without scripts and without
//! references to other files.

use std::fmt::Write as _;

use crate::svg::escape;

const STYLE: &str = "
body { font: 15px/1.5 ui-sans-serif, system-ui, 'DejaVu Sans', Helvetica, Arial, sans-serif; max-width: 1180px; margin: 2em auto; padding: 0 1em; color: #24292f; background: #ffffff }
h1 { font-size: 26px } h2 { font-size: 20px; margin-top: 2.2em; border-bottom: 1px solid #d0d7de }
table { border-collapse: collapse; margin: 0.8em 0; font-size: 14px }
th, td { padding: 3px 12px 3px 0; text-align: left; vertical-align: top }
th { border-bottom: 1px solid #d0d7de; font-weight: 600 }
.number { text-align: right; font-variant-numeric: tabular-nums }
.good { color: #116329 } .bad { color: #a40e26; font-weight: 600 }
.drawings { display: flex; flex-wrap: wrap; gap: 12px } .drawings svg { max-width: 100%; height: auto }
p { max-width: 60em } nav { columns: 2 } a { color: #0550ae }
@media (prefers-color-scheme: dark) {
body { color: #e6edf3; background: #0d1117 } h2, th { border-color: #3d444d }
.good { color: #3fb950 } .bad { color: #ff7b72 } a { color: #58b4ee }
}
";

/// The style of a table's cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Look {
    /// Words.
    Words,
    /// A number, aligned to the right.
    Number,
    /// A good verdict.
    Good,
    /// A bad verdict.
    Bad,
}

/// A page in the making.
#[derive(Clone, Debug)]
pub struct Page {
    out: String,
}

// Writing to a String cannot fail, so the results of write! are dropped below.
impl Page {
    /// An empty page.
    pub fn new(title: &str) -> Page {
        let title = escape(title);
        Page {
            out: format!(
                "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
                 <meta name=\"viewport\" content=\"width=device-width\"/>\n\
                 <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
            ),
        }
    }

    /// A paragraph.
    pub fn paragraph(&mut self, text: &str) {
        let _ = writeln!(self.out, "<p>{}</p>", escape(text));
    }

    /// Links to the chapters that follow, by their anchors.
    pub fn contents(&mut self, chapters: &[(String, String)]) {
        self.out.push_str("<nav>\n");
        for (anchor, title) in chapters {
            let (anchor, title) = (escape(anchor), escape(title));
            let _ = writeln!(self.out, "<div><a href=\"#{anchor}\">{title}</a></div>");
        }
        self.out.push_str("</nav>\n");
    }

    /// Begins a chapter.
    pub fn chapter(&mut self, anchor: &str, title: &str) {
        let (anchor, title) = (escape(anchor), escape(title));
        let _ = writeln!(self.out, "<h2 id=\"{anchor}\">{title}</h2>");
    }

    /// A table.
    pub fn table(&mut self, headings: &[&str], rows: &[Vec<(Look, String)>]) {
        self.out.push_str("<table>\n<tr>");
        for heading in headings {
            let _ = write!(self.out, "<th>{}</th>", escape(heading));
        }
        self.out.push_str("</tr>\n");
        for row in rows {
            self.out.push_str("<tr>");
            for (look, text) in row {
                let class = match look {
                    Look::Words => "",
                    Look::Number => " class=\"number\"",
                    Look::Good => " class=\"good\"",
                    Look::Bad => " class=\"bad\"",
                };
                let _ = write!(self.out, "<td{class}>{}</td>", escape(text));
            }
            self.out.push_str("</tr>\n");
        }
        self.out.push_str("</table>\n");
    }

    /// Drawings side by side: whole SVG documents from this crate.
    pub fn drawings<'a>(&mut self, drawings: impl IntoIterator<Item = &'a str>) {
        self.out.push_str("<div class=\"drawings\">\n");
        drawings.into_iter().for_each(|svg| self.out.push_str(svg));
        self.out.push_str("</div>\n");
    }

    /// The whole document.
    pub fn finish(mut self) -> String {
        self.out.push_str("</body>\n</html>\n");
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_holds_everything_and_nothing_hostile() {
        let mut page = Page::new("Figures & <tables>");
        page.contents(&[("a\"b".into(), "A".into())]);
        page.chapter("a\"b", "<script>");
        page.paragraph("1 < 2");
        page.table(
            &["METRIC", "OK"],
            &[vec![(Look::Number, "<1".into()), (Look::Bad, "no".into())]],
        );
        page.drawings(["<svg/>"]);
        let document = page.finish();
        for wanted in [
            "Figures &amp; &lt;tables&gt;",
            "1 &lt; 2",
            "&lt;1",
            "class=\"bad\"",
            "<svg/>",
            "#a&quot;b",
        ] {
            assert!(document.contains(wanted), "{wanted}");
        }
        for outside in ["<script", "http:", "https:", "src=", "@import", "url("] {
            assert!(!document.contains(outside), "{outside}");
        }
    }
}
