//! Every figure, by simulation: its numbers are those in the golden files, and the list in the
//! documentation counts them.

mod support;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use prorata_reproduce::{
    Engine, Figure, Kind, Metric, Parameter, ReproduceError, Reproduction, Rule, Settings, Source,
    Verdict, Watch, find, ids, page, papers, reproduce,
};
use sha2::{Digest as _, Sha256};

use support::{between, compare, root};

const SIMULATED: Settings = Settings {
    engine: Engine::Sim,
    full: false,
    seed: None,
    beyond: true,
};

const DOCUMENTATION: &str = "docs/REPRODUCTION.md";

/// Simulates all figures of a paper.
fn simulated(year: &str) -> Vec<Reproduction> {
    let mut figures = find(&[year.to_owned()]).unwrap_or_else(|error| panic!("{error}"));
    figures.retain(Figure::by_simulation);
    let reproductions = figures.iter().map(|figure| {
        reproduce(figure, SIMULATED, &mut ()).unwrap_or_else(|error| panic!("{error}"))
    });
    reproductions.collect()
}

#[test]
fn the_paper_of_1994() {
    let reproductions = check_paper("1994");
    let insulate = reproductions.iter().find(|r| r.id == "1994/figure-9");
    let drawing = &insulate.expect("it is known").drawings[0].svg;
    compare("docs/reproduction.svg", |_| drawing.clone());
}

#[test]
fn the_paper_of_1995() {
    check_paper("1995");
}

#[test]
fn the_paper_of_1999() {
    check_paper("1999");
}

#[test]
fn the_paper_of_2001() {
    check_paper("2001");
}

#[test]
fn the_paper_of_2005() {
    check_paper("2005");
}

/// No number of a paper fails, each has a reason for its tolerance, every byte is the golden
/// one, and the documentation and the page have each figure.
fn check_paper(year: &str) -> Vec<Reproduction> {
    let reproductions = simulated(year);
    for reproduction in &reproductions {
        let id = &reproduction.id;
        assert!(!reproduction.metrics.is_empty(), "{id} expects nothing");
        assert!(!reproduction.drawings.is_empty(), "{id} draws nothing");
        for metric in &reproduction.metrics {
            assert_ne!(metric.verdict, Verdict::Failed, "{id}: {metric:?}");
            assert!(!metric.why.is_empty(), "{id}: {metric:?}");
            let counts = metric.source.kind() == Kind::Number;
            assert!(counts || !metric.headline, "{id}: {metric:?}");
        }
        for drawing in &reproduction.drawings {
            assert!(drawing.svg.ends_with("</svg>\n"), "{id}");
            assert!(!drawing.svg.contains("NaN"), "{id}");
        }
    }
    let golden = format!("crates/reproduce/tests/golden/{year}.md");
    compare(&golden, |_| golden_tables(&reproductions));
    check_page(&reproductions);
    check_documentation(year, &reproductions);
    reproductions
}

/// The page begins a paper with its headlines, has every figure, and needs no network.
fn check_page(reproductions: &[Reproduction]) {
    let page = page(reproductions);
    for paper in papers(reproductions) {
        let headlines = page.find(&paper.summary()).expect("the page counts them");
        for reproduction in paper.figures {
            let figure = page.find(&format!("id=\"{}\"", reproduction.id));
            assert!(figure > Some(headlines), "{}", reproduction.id);
        }
    }
    for outside in ["<script", "src=", "@import", "url(", "<link"] {
        assert!(!page.contains(outside), "the page needs {outside}");
    }
}

/// Loses patience after so many steps.
struct Impatient(u32);

impl Watch for Impatient {
    fn step(&mut self, _: &str) {
        self.0 = self.0.saturating_sub(1);
    }

    fn is_over(&mut self) -> bool {
        self.0 == 0
    }
}

/// Ten runs side by side end with the patience of the caller, before the first step or later.
#[test]
fn runs_side_by_side_end_early() {
    let figures = find(&["2001/figure-1".to_owned()]).expect("it is known");
    for steps in [1, 5] {
        let ended = reproduce(&figures[0], SIMULATED, &mut Impatient(steps));
        assert!(
            matches!(ended, Err(ReproduceError::Interrupted)),
            "{steps}: {ended:?}"
        );
    }
}

/// All policies beyond the papers' are measured where a policy decides, EEVDF
/// as a baseline.
#[test]
fn other_policies_are_measured_too() {
    let figures = find(&["1995/figure-8".to_owned()]).expect("it is known");
    let reproduction = reproduce(&figures[0], SIMULATED, &mut ()).expect("it runs");
    let beyond: Vec<(String, bool)> = reproduction
        .beyond
        .iter()
        .map(|beyond| (format!("{:?}", beyond.policy), beyond.baseline))
        .collect();
    let wanted = [
        ("ClassLottery", false),
        ("HierarchicalStride", false),
        ("Eevdf", true),
    ];
    assert_eq!(
        beyond,
        wanted.map(|(name, baseline)| (name.to_owned(), baseline))
    );
}

#[test]
fn a_run_repeats_itself_number_by_number() {
    let figures = find(&["1994/figure-9".to_owned()]).expect("it is known");
    let run = || reproduce(&figures[0], SIMULATED, &mut ()).expect("it runs");
    assert_eq!(run(), run());
}

#[test]
fn the_catalogue_holds_every_scenario_of_the_papers() {
    let mut files = BTreeSet::new();
    for year in ["1994", "1995", "1999", "2001", "2005"] {
        let directory = root().join("scenarios").join(year);
        for entry in std::fs::read_dir(directory).expect("it is there") {
            let name = entry.expect("readable").file_name();
            let name = name.to_str().expect("text").trim_end_matches(".toml");
            files.insert(format!("{year}/{name}"));
        }
    }
    assert_eq!(ids().map(str::to_owned).collect::<BTreeSet<_>>(), files);
}

#[test]
fn figures_are_found_by_name_year_and_file() {
    let find = |name: &str| find(&[name.to_owned()]);
    assert_eq!(find("1994/figure-4").expect("known")[0].id, "1994/figure-4");
    assert!(
        find("1995")
            .expect("known")
            .iter()
            .all(|f| f.id.starts_with("1995/"))
    );
    let path = root().join("scenarios/1995/figure-2.toml");
    assert_eq!(
        find(path.to_str().expect("text")).expect("readable").len(),
        1
    );
    let error = find("1994/figure-99").expect_err("there is none");
    assert!(
        error.to_string().ends_with("such as 1994/figure-9"),
        "{error}"
    );
    let path = root().join("scenarios/mixed.toml");
    let error = find(path.to_str().expect("text")).expect_err("it is no figure");
    assert!(matches!(error, ReproduceError::NoPaper(_)), "{error}");
}

#[test]
fn an_expectation_of_an_unknown_metric_is_refused_and_names_the_known_ones() {
    let path = root().join("scenarios/1995/figure-2.toml");
    let text = std::fs::read_to_string(path).expect("readable");
    let directory = tempfile::tempdir().expect("there is room");
    let path = directory.path().join("figure.toml");
    let wrong = text.replace("metric = \"stride of A\"", "metric = \"length of A\"");
    std::fs::write(&path, wrong).expect("writable");
    let figures = find(&[path.to_str().expect("text").to_owned()]).expect("it can be read");
    let error = reproduce(&figures[0], SIMULATED, &mut ()).expect_err("nothing is so called");
    let message = error.to_string();
    assert!(
        message.contains("length of A") && message.contains("stride of A"),
        "{message}"
    );
}

#[test]
fn an_expectation_without_a_source_is_refused() {
    let path = root().join("scenarios/1995/section-4.toml");
    let text = std::fs::read_to_string(path).expect("readable");
    let directory = tempfile::tempdir().expect("there is room");
    let path = directory.path().join("figure.toml");
    std::fs::write(&path, text.replace("source = \"printed\"\n", "")).expect("writable");
    let error = find(&[path.to_str().expect("text").to_owned()]).expect_err("it does not");
    assert!(error.to_string().contains("`source`"), "{error}");
}

#[test]
fn a_verdict_outside_its_tolerance_fails_the_figure() {
    let path = root().join("scenarios/1995/section-4.toml");
    let text = std::fs::read_to_string(path).expect("readable");
    let directory = tempfile::tempdir().expect("there is room");
    let path = directory.path().join("figure.toml");
    std::fs::write(&path, text.replace("paper = 50\n", "paper = 49\n")).expect("writable");
    let figures = find(&[path.to_str().expect("text").to_owned()]).expect("it can be read");
    let reproduction = reproduce(&figures[0], SIMULATED, &mut ()).expect("it runs");
    assert_eq!(reproduction.verdict, Verdict::Failed);
    let failed = reproduction
        .metrics
        .iter()
        .filter(|metric| metric.verdict == Verdict::Failed)
        .count();
    assert_eq!(failed, 1);
}

/// Both round trips at the whole table are what the service time is fitted to.
#[test]
fn fitted_numbers_are_counted_apart() {
    let figures = find(&["2005/figure-4.2".to_owned()]).expect("it is known");
    let reproductions = [reproduce(&figures[0], SIMULATED, &mut ()).expect("it runs")];
    let papers = papers(&reproductions);
    let of_all = reproductions[0].metrics.len();
    assert_eq!(papers[0].numbers.total(), of_all - 2);
    let fitted = papers[0]
        .sources
        .iter()
        .find(|of| of.source == Source::Fitted);
    let json = serde_json::to_value(fitted).expect("it can be written");
    let wanted = serde_json::json!({
        "source": "fitted", "reproduced": 2, "differ": 0, "unexplained": 0, "failed": 0,
    });
    assert_eq!(json, wanted);
    let summary = reproductions[0].summary();
    assert!(
        summary.ends_with("; fitted, 2 of 2 reproduced"),
        "{summary}"
    );
}

/// Overhead is work lost against the plain kernel, which a simulation does not have.
#[test]
fn a_figure_of_programs_alone_is_refused_by_simulation() {
    let figures = find(&["1994/section-5.6".to_owned()]).expect("it is known");
    let error = reproduce(&figures[0], SIMULATED, &mut ()).expect_err("it cannot");
    assert!(
        matches!(error, ReproduceError::NotBySimulation(_)),
        "{error}"
    );
}

/// Another seed draws other lots, and the digits of a difference do not bind it.
#[test]
fn another_seed_changes_chances_and_no_reason() {
    let figures = find(&["1994/figure-7".to_owned()]).expect("it is known");
    let run = |seed| {
        let settings = Settings {
            seed,
            beyond: false,
            ..SIMULATED
        };
        reproduce(&figures[0], settings, &mut ()).expect("it runs")
    };
    let (own, other) = (run(None), run(Some(99)));
    assert_eq!(own.metrics, run(Some(figures[0].scenario.seed)).metrics);
    let differing = |reproduction: &Reproduction| -> Vec<(String, f64)> {
        let metrics = reproduction.metrics.iter();
        let differing = metrics.filter(|metric| metric.verdict == Verdict::Differs);
        differing
            .map(|metric| (metric.metric.clone(), metric.measured))
            .collect()
    };
    let speed = |reproduction| {
        let found = differing(reproduction);
        found
            .into_iter()
            .find(|(name, _)| name == "relative speed of B to C")
    };
    let (own, other) = (
        speed(&own).expect("it differs"),
        speed(&other).expect("too"),
    );
    assert_ne!(own.1, other.1);
}

#[test]
fn engines_that_cannot_say_so() {
    let figures = find(&["1995/figure-2".to_owned()]).expect("it is known");
    let on = |engine| {
        let settings = Settings {
            engine,
            ..SIMULATED
        };
        reproduce(&figures[0], settings, &mut ()).expect_err("it cannot")
    };
    for engine in [Engine::User, Engine::Kernel] {
        assert!(matches!(on(engine), ReproduceError::NotOnProcesses(_)));
    }
}

/// Compares the list of a paper's figures in the documentation with what came out.
fn check_documentation(year: &str, reproductions: &[Reproduction]) {
    compare(DOCUMENTATION, |text| {
        between(text, year, &list_of(reproductions))
    });
}

/// The headlines of a paper, and a line for each figure.
fn list_of(reproductions: &[Reproduction]) -> String {
    let mut text = String::new();
    for paper in papers(reproductions) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "\n**{}.**\n", paper.summary());
        let _ = writeln!(text, "{}.\n", paper.by_source());
    }
    text.push_str("| figure | subject | reproduced | differ | failed |\n|---|---|---|---|---|\n");
    for reproduction in reproductions {
        let tally = reproduction.tally(Kind::Number);
        // Claims past the paper, and checks of its sums, are no numbers of it.
        if tally.total() == 0 {
            continue;
        }
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            reproduction.figure, reproduction.title, tally.reproduced, tally.differ, tally.failed
        );
    }
    text.push('\n');
    text
}

/// A digest of what `reproduce --json` prints of a figure. Any other byte shows here, and the
/// table says which number it is of, unless it is one under another policy.
fn digest(reproduction: &Reproduction) -> String {
    let json = serde_json::to_vec_pretty(reproduction).expect("it can be written");
    let bytes = &Sha256::digest(json)[..8];
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn golden_tables(reproductions: &[Reproduction]) -> String {
    let mut text = String::new();
    for reproduction in reproductions {
        let heading = reproduction.heading();
        // Writing to a String cannot fail.
        let _ = write!(text, "## {heading}\n\n`{}`, digest ", reproduction.id);
        let _ = write!(text, "{}\n\n", digest(reproduction));
        text.push_str("| metric | paper | ours | unit | tolerance | verdict | source |\n");
        text.push_str("|---|---|---|---|---|---|---|\n");
        for metric in &reproduction.metrics {
            let _ = writeln!(text, "{}", row(metric));
        }
        let _ = writeln!(text, "\n{}.\n", reproduction.summary());
        for (because, metrics) in reproduction.reasons() {
            let _ = writeln!(text, "- {} differ: {because}.", metrics.len());
        }
        for Parameter { what, origin, how } in &reproduction.parameters {
            let _ = writeln!(text, "- Parameter, {}: {what}; {how}.", origin.words());
        }
        if !reproduction.reasons().is_empty() || !reproduction.parameters.is_empty() {
            text.push('\n');
        }
    }
    text
}

fn row(metric: &Metric) -> String {
    let margin = metric.sample.map(|sample| short(sample.margin()));
    let ours = match margin {
        Some(margin) => format!("{} ± {margin}", short(metric.measured)),
        None => short(metric.measured),
    };
    let verdict = metric.verdict.words();
    let tolerance = match metric.rule {
        Rule::Within | Rule::Draw => format!("± {}", short(metric.tolerance)),
        Rule::AtMost if metric.tolerance == 0.0 => "at most".to_owned(),
        Rule::AtMost => format!("at most + {}", short(metric.tolerance)),
        Rule::AtLeast if metric.tolerance == 0.0 => "at least".to_owned(),
        Rule::AtLeast => format!("at least - {}", short(metric.tolerance)),
        Rule::Law => "within ours".to_owned(),
        Rule::Above => "above".to_owned(),
        Rule::Below => "below".to_owned(),
    };
    let source = metric.origin();
    format!(
        "| {} | {} | {ours} | {} | {tolerance} | {verdict} | {source} |",
        metric.metric,
        short(metric.paper),
        metric.unit
    )
}

fn short(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
