//! All reproductions on one page that opens without a network.

use prorata_report::page::{Look, Page};

use crate::expectation::{Metric, Verdict};
use crate::experiment::policy_title;
use crate::reproduction::{Engine, Reproduction};
use crate::table::{beyond_rows, counted, counts, number, spread, spreads, tolerance};

/// The page, as HTML.
pub fn page(reproductions: &[Reproduction]) -> String {
    let mut page = Page::new("The papers' figures, reproduced");
    page.paragraph(
        "Lottery Scheduling (Waldspurger and Weihl, OSDI 1994), Stride Scheduling \
         (MIT/LCS/TM-528, 1995), Enhancing Linux Scheduler Scalability (IBM, 2001) and the \
         thesis on slot scheduling (2005): what the papers print beside what this build comes to. \
         A verdict is FAILED where ours is further off than the tolerance, and differs \
         where it is so for a reason that is known and says which number to expect.",
    );
    let metrics: Vec<&Metric> = reproductions.iter().flat_map(|r| &r.metrics).collect();
    let count = |verdict| metrics.iter().filter(|m| m.verdict == verdict).count();
    let (differ, failed) = (count(Verdict::Differs), count(Verdict::Failed));
    page.paragraph(&format!(
        "{} figures, {} metrics, {differ} differ, {failed} failed.",
        reproductions.len(),
        metrics.len()
    ));
    if reproductions.iter().any(counts) {
        page.paragraph(
            "On real processes, ours goes by their CPU clocks: what the scheduler gave them. \
             Counted is the same by iterations, as in the papers; how many a CPU second \
             makes differs by a per cent or two from one process to the next.",
        );
    }
    let chapters: Vec<(String, String)> = reproductions
        .iter()
        .map(|reproduction| (anchor(reproduction), heading(reproduction)))
        .collect();
    page.contents(&chapters);
    for (reproduction, (anchor, heading)) in reproductions.iter().zip(&chapters) {
        page.chapter(anchor, heading);
        reproduction
            .notes
            .iter()
            .for_each(|note| page.paragraph(note));
        page.drawings(
            reproduction
                .drawings
                .iter()
                .map(|drawing| drawing.svg.as_str()),
        );
        add_metrics(&mut page, reproduction);
        add_beyond(&mut page, reproduction);
    }
    page.finish()
}

fn anchor(reproduction: &Reproduction) -> String {
    match reproduction.engine {
        Engine::Sim => reproduction.id.clone(),
        Engine::User => format!("{}-on-processes", reproduction.id),
        Engine::Kernel => format!("{}-in-the-kernel", reproduction.id),
    }
}

fn heading(reproduction: &Reproduction) -> String {
    let on = match reproduction.engine {
        Engine::Sim => "",
        Engine::User => " (on real processes)",
        Engine::Kernel => " (on real processes, by the kernel)",
    };
    format!("{}{on}", reproduction.heading())
}

fn add_metrics(page: &mut Page, reproduction: &Reproduction) {
    let (counts, spreads) = (counts(reproduction), spreads(reproduction));
    let row = |metric: &Metric| {
        let look = match metric.verdict {
            Verdict::Ok => Look::Good,
            Verdict::Differs => Look::Words,
            Verdict::Failed => Look::Bad,
        };
        let mut row = vec![
            (Look::Words, metric.metric.clone()),
            (Look::Number, number(metric.paper)),
            (Look::Number, number(metric.measured)),
        ];
        row.extend(spreads.then(|| (Look::Number, spread(metric))));
        row.extend(counts.then(|| (Look::Number, counted(metric))));
        row.extend([
            (Look::Words, metric.unit.to_owned()),
            (Look::Number, tolerance(metric)),
            (look, metric.verdict.words().to_owned()),
            (Look::Words, metric.source.words().to_owned()),
            (Look::Words, metric.why.clone()),
        ]);
        row
    };
    let rows: Vec<_> = reproduction.metrics.iter().map(row).collect();
    let mut headings = vec!["Metric", "Paper", "Ours"];
    headings.extend(spreads.then_some("Spread"));
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
