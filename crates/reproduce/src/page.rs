//! All reproductions on one page that opens without a network.

use prorata_report::page::{Look, Page};

use crate::expectation::{Metric, Verdict};
use crate::experiment::policy_title;
use crate::paper::{Paper, papers};
use crate::reproduction::{Engine, Reproduction};
use crate::table::{beyond_rows, counted, counts, margin, number, spreads, tolerance};

/// The page, as HTML.
pub fn page(reproductions: &[Reproduction]) -> String {
    let mut page = Page::new("The papers' figures, reproduced");
    page.paragraph(
        "Lottery Scheduling (Waldspurger and Weihl, OSDI 1994), Stride Scheduling \
         (MIT/LCS/TM-528, 1995), hybrid lottery scheduling (USENIX, 1999), Enhancing Linux \
         Scheduler Scalability (IBM, 2001) and the thesis on slot scheduling (2005): what the papers print beside what this build comes to. \
         A number is reproduced, or it differs for a reason that stands below its table, or it \
         has FAILED.",
    );
    if reproductions.iter().any(counts) {
        page.paragraph(
            "On real processes, ours goes by their CPU clocks: what the scheduler gave them. \
             Counted is the same by iterations, as in the papers; how many a CPU second \
             makes differs by a per cent or two from one process to the next.",
        );
    }
    let papers = papers(reproductions);
    page.contents(&chapters(&papers));
    for paper in &papers {
        page.chapter(&paper_anchor(paper), &paper_heading(paper));
        page.paragraph(&format!("{}.", paper.summary()));
        page.paragraph(&format!("{}.", paper.by_source()));
        for reproduction in paper.figures {
            add_figure(&mut page, reproduction);
        }
    }
    page.finish()
}

/// Anchors and headings of papers and figures, in order.
fn chapters(papers: &[Paper<'_>]) -> Vec<(String, String)> {
    let of_paper = |paper: &Paper<'_>| {
        let first = (paper_anchor(paper), paper_heading(paper));
        let figures = paper.figures.iter();
        let figures = figures.map(|figure| (anchor(figure), heading(figure)));
        std::iter::once(first).chain(figures).collect::<Vec<_>>()
    };
    papers.iter().flat_map(of_paper).collect()
}

fn add_figure(page: &mut Page, reproduction: &Reproduction) {
    page.chapter(&anchor(reproduction), &heading(reproduction));
    for note in &reproduction.notes {
        page.paragraph(note);
    }
    for parameter in &reproduction.parameters {
        let origin = parameter.origin.words();
        page.paragraph(&format!(
            "Parameter, {origin}: {}; {}.",
            parameter.what, parameter.how
        ));
    }
    let drawings = reproduction.drawings.iter();
    page.drawings(drawings.map(|drawing| drawing.svg.as_str()));
    add_metrics(page, reproduction);
    add_beyond(page, reproduction);
}

fn paper_anchor(paper: &Paper<'_>) -> String {
    place(&format!("paper-{}", paper.paper), paper.engine)
}

fn paper_heading(paper: &Paper<'_>) -> String {
    format!("The paper of {}{}", paper.paper, paper.engine.remark())
}

fn anchor(reproduction: &Reproduction) -> String {
    place(&reproduction.id, reproduction.engine)
}

/// A name that tells engines apart.
fn place(name: &str, engine: Engine) -> String {
    match engine {
        Engine::Sim => name.to_owned(),
        Engine::User => format!("{name}-on-processes"),
        Engine::Kernel => format!("{name}-in-the-kernel"),
    }
}

fn heading(reproduction: &Reproduction) -> String {
    format!("{}{}", reproduction.heading(), reproduction.engine.remark())
}

fn add_metrics(page: &mut Page, reproduction: &Reproduction) {
    let (counts, spreads) = (counts(reproduction), spreads(reproduction));
    let row = |metric: &Metric| {
        let look = match metric.verdict {
            Verdict::Reproduced => Look::Good,
            Verdict::Differs => Look::Words,
            Verdict::Failed => Look::Bad,
        };
        let mut row = vec![
            (Look::Words, metric.metric.clone()),
            (Look::Number, number(metric.paper)),
            (Look::Number, number(metric.measured)),
        ];
        row.extend(spreads.then(|| (Look::Number, margin(metric))));
        row.extend(counts.then(|| (Look::Number, counted(metric))));
        row.extend([
            (Look::Words, metric.unit.to_owned()),
            (Look::Number, tolerance(metric)),
            (look, metric.verdict.words().to_owned()),
            (Look::Words, metric.origin()),
            (Look::Words, metric.why.clone()),
        ]);
        row
    };
    let rows: Vec<_> = reproduction.metrics.iter().map(row).collect();
    let mut headings = vec!["Metric", "Paper", "Ours"];
    headings.extend(spreads.then_some("± 95 %"));
    headings.extend(counts.then_some("Counted"));
    headings.extend(["Unit", "Tolerance", "Verdict", "Source", "Why"]);
    page.table(&headings, &rows);
    page.paragraph(&format!("{}.", reproduction.summary()));
    for (because, metrics) in reproduction.reasons() {
        page.paragraph(&format!("Why {} differ: {because}.", metrics.join("; ")));
    }
}

fn add_beyond(page: &mut Page, reproduction: &Reproduction) {
    let rows = beyond_rows(reproduction);
    if rows.is_empty() {
        return;
    }
    page.paragraph(
        "Beyond the paper: the same under other policies, each beside the paper's number for its own.",
    );
    let mut headings = vec!["Metric", "Paper"];
    headings.extend(reproduction.beyond.iter().map(|b| policy_title(b.policy)));
    let rows: Vec<_> = rows
        .into_iter()
        .map(|(metric, cells)| {
            let mut row = vec![
                (Look::Words, metric.metric.clone()),
                (Look::Number, number(metric.paper)),
            ];
            row.extend(cells.into_iter().map(|cell| (Look::Number, cell)));
            row
        })
        .collect();
    page.table(&headings, &rows);
}
