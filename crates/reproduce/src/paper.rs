//! Reproductions by paper: how many of its headlines, and of all its numbers, come out.

use serde::Serialize;

use crate::expectation::{Kind, Metric, Source, Verdict};
use crate::reproduction::{Engine, Reproduction};

/// Number of metrics by verdict.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Tally {
    /// Those that are the paper's.
    pub reproduced: usize,
    /// Those that are not, with a reason.
    pub differ: usize,
    /// Those that differ and whose reason is open.
    pub unexplained: usize,
    /// Those that are not, without one.
    pub failed: usize,
}

impl Tally {
    /// Counts metrics.
    pub fn of<'a>(metrics: impl IntoIterator<Item = &'a Metric>) -> Tally {
        let mut tally = Tally::default();
        for metric in metrics {
            match metric.verdict {
                Verdict::Reproduced => tally.reproduced += 1,
                Verdict::Differs => tally.differ += 1,
                Verdict::Failed => tally.failed += 1,
            }
            tally.unexplained += usize::from(metric.unexplained);
        }
        tally
    }

    /// All of them.
    pub fn total(self) -> usize {
        self.reproduced + self.differ + self.failed
    }

    /// `7 of 35 reproduced, 28 differ (9 unexplained)`.
    pub fn words(self) -> String {
        let mut text = format!("{} of {} reproduced", self.reproduced, self.total());
        if self.differ > 0 {
            text.push_str(&format!(", {} differ", self.differ));
        }
        if self.unexplained > 0 {
            text.push_str(&format!(" ({} unexplained)", self.unexplained));
        }
        if self.failed > 0 {
            text.push_str(&format!(", {} FAILED", self.failed));
        }
        text
    }
}

/// The worst of some verdicts. Without any, nothing was measured, which is a failure.
pub(crate) fn worst(verdicts: impl IntoIterator<Item = Verdict>) -> Verdict {
    verdicts.into_iter().max().unwrap_or(Verdict::Failed)
}

/// Metrics of one source.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct OfSource {
    /// Where the paper's numbers are from.
    pub source: Source,
    /// How many come out.
    #[serde(flatten)]
    pub tally: Tally,
}

/// The figures of a paper that one engine ran.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Paper<'a> {
    /// Its year.
    pub paper: u32,
    /// The engine.
    pub engine: Engine,
    /// The worst verdict on its figures.
    pub verdict: Verdict,
    /// What the paper's conclusions rest on.
    pub headlines: Tally,
    /// All its numbers; neither those that parameters are fitted to, nor the checks of its own
    /// sums, nor what we claim past it.
    pub numbers: Tally,
    /// All metrics by source, without sources that have none.
    pub sources: Vec<OfSource>,
    /// The figures.
    pub figures: &'a [Reproduction],
}

impl Paper<'_> {
    /// `Reproduced, by source: printed 84 of 87; said in the text 5 of 6`.
    pub fn by_source(&self) -> String {
        let sources = self.sources.iter().map(|of| {
            let (words, total) = (of.source.words(), of.tally.total());
            format!("{words} {} of {total}", of.tally.reproduced)
        });
        let sources = sources.collect::<Vec<_>>().join("; ");
        format!("Reproduced, by source: {sources}")
    }

    /// `2001: of the headlines, 7 of 35 reproduced, 28 differ`, and the same of all numbers.
    pub fn summary(&self) -> String {
        let headlines = match self.headlines.total() {
            0 => "no headlines among these figures".to_owned(),
            _ => format!("of the headlines, {}", self.headlines.words()),
        };
        let numbers = self.numbers.words();
        let on = self.engine.remark();
        format!("{}{on}: {headlines}; of all numbers, {numbers}", self.paper)
    }
}

/// Reproductions by paper and engine. Figures of one paper must stand together.
pub fn papers(reproductions: &[Reproduction]) -> Vec<Paper<'_>> {
    let same = |one: &Reproduction, next: &Reproduction| {
        (one.paper, one.engine) == (next.paper, next.engine)
    };
    let papers = reproductions.chunk_by(same).map(|figures| {
        let metrics = || figures.iter().flat_map(|figure| &figure.metrics);
        let numbers = || metrics().filter(|metric| metric.source.kind() == Kind::Number);
        let sources = Source::ALL.map(|source| OfSource {
            source,
            tally: Tally::of(metrics().filter(|metric| metric.source == source)),
        });
        let has_any = |of: &OfSource| of.tally.total() > 0;
        Paper {
            paper: figures[0].paper,
            engine: figures[0].engine,
            verdict: worst(figures.iter().map(|figure| figure.verdict)),
            headlines: Tally::of(numbers().filter(|metric| metric.headline)),
            numbers: Tally::of(numbers()),
            sources: sources.into_iter().filter(has_any).collect(),
            figures,
        }
    });
    papers.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_never_counted_as_reproduced() {
        let tally = Tally {
            reproduced: 7,
            differ: 27,
            unexplained: 0,
            failed: 1,
        };
        assert_eq!(tally.words(), "7 of 35 reproduced, 27 differ, 1 FAILED");
        let tally = Tally {
            unexplained: 9,
            ..tally
        };
        let words = "7 of 35 reproduced, 27 differ (9 unexplained), 1 FAILED";
        assert_eq!(tally.words(), words);
    }

    #[test]
    fn the_worst_verdict_decides() {
        use Verdict::{Differs, Failed, Reproduced};
        assert_eq!(worst([Reproduced, Reproduced]), Reproduced);
        assert_eq!(worst([Reproduced, Differs]), Differs);
        assert_eq!(worst([Failed, Differs]), Failed);
        assert_eq!(worst([]), Failed, "nothing was measured");
    }
}
