//! Every figure, by simulation: it comes out, and the page about it in the
//! documentation says what came out.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use prorata_reproduce::{
    Engine, Metric, ReproduceError, Reproduction, Rule, Settings, Verdict, find, ids, page,
    reproduce,
};
use sha2::{Digest as _, Sha256};

const SIMULATED: Settings = Settings {
    engine: Engine::Sim,
    full: false,
};

/// Digests of what `reproduce --json` prints, a line for each figure.
const DIGESTS: &str = "crates/reproduce/tests/golden/figures.txt";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Simulates the figures of these names; all figures without any.
fn simulated(names: &[&str]) -> Vec<Reproduction> {
    let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
    let figures = find(&names).unwrap_or_else(|error| panic!("{error}"));
    let reproductions = figures.iter().map(|figure| {
        reproduce(figure, SIMULATED, &mut ()).unwrap_or_else(|error| panic!("{error}"))
    });
    reproductions.collect()
}

/// `reproduce --json` prints what it has printed before, byte for byte.
#[test]
fn figures_about_tickets_keep_their_bytes() {
    let path = root().join(DIGESTS);
    let all = std::fs::read_to_string(path).expect("readable");
    let is_of_tickets = |line: &&str| !line.starts_with("2001/") && !line.starts_with("2005/");
    let kept = all.lines().filter(is_of_tickets);
    let now = digests(&simulated(&["1994", "1995", "1999"]));
    assert_eq!(now.lines().collect::<Vec<_>>(), kept.collect::<Vec<_>>());
}

/// Every expectation of the papers holds, or differs as the scenario file says,
/// to the digit; and is judged by a tolerance with a
/// reason. What depends on the machine's speed is measured, but not asserted.
#[test]
fn all_figures_come_out() {
    let reproductions = simulated(&[]);
    for reproduction in &reproductions {
        let id = &reproduction.id;
        assert!(!reproduction.metrics.is_empty(), "{id} expects nothing");
        assert!(!reproduction.drawings.is_empty(), "{id} draws nothing");
        for metric in &reproduction.metrics {
            let failed = metric.verdict == Verdict::Failed;
            assert!(metric.is_timed || !failed, "{id}: {metric:?}");
            assert!(!metric.why.is_empty(), "{id}: {metric:?}");
        }
        for drawing in &reproduction.drawings {
            assert!(drawing.svg.ends_with("</svg>\n"), "{id}");
            assert!(!drawing.svg.contains("NaN"), "{id}");
        }
    }
    compare(DIGESTS, |_| digests(&reproductions));
    compare_with_documentation(&reproductions);
    let insulate = reproductions.iter().find(|r| r.id == "1994/figure-9");
    let drawing = &insulate.expect("it is known").drawings[0].svg;
    compare("docs/reproduction.svg", |_| drawing.clone());
    let page = page(&reproductions);
    for reproduction in &reproductions {
        assert!(page.contains(&format!("id=\"{}\"", reproduction.id)));
    }
    for outside in ["<script", "src=", "@import", "url(", "<link"] {
        assert!(!page.contains(outside), "the page needs {outside}");
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
    assert!(error.to_string().contains("1994/figure-9,"), "{error}");
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
    assert!(!reproduction.ok);
    let failed = reproduction
        .metrics
        .iter()
        .filter(|metric| !metric.ok)
        .count();
    assert_eq!(failed, 1);
}

#[test]
fn engines_that_cannot_say_so() {
    let figures = find(&["1995/figure-2".to_owned()]).expect("it is known");
    let on = |engine| {
        let settings = Settings {
            engine,
            full: false,
        };
        reproduce(&figures[0], settings, &mut ()).expect_err("it cannot")
    };
    for engine in [Engine::User, Engine::Kernel] {
        assert!(matches!(on(engine), ReproduceError::NotOnProcesses(_)));
    }
}

const BEGIN: &str = "<!-- Written by the tests of prorata-reproduce from here on. -->\n";
const END: &str = "<!-- Up to here. -->\n";

/// Compares the tables in the documentation with what came out.
fn compare_with_documentation(reproductions: &[Reproduction]) {
    compare("docs/REPRODUCTION.md", |text| {
        let (before, rest) = text.split_once(BEGIN).expect("a beginning");
        let (_, after) = rest.split_once(END).expect("an end");
        format!("{before}{BEGIN}{}{END}{after}", tables_of(reproductions))
    });
}

/// Compares a file with what it should be, given what it is; writes it afresh
/// where the variable `UPDATE_GOLDEN` is set.
fn compare(name: &str, wanted: impl FnOnce(&str) -> String) {
    let path = root().join(name);
    let is = std::fs::read_to_string(&path).unwrap_or_default();
    let wanted = wanted(&is);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, wanted).expect("writable");
    } else {
        assert!(
            is == wanted,
            "{name} differs: if that is meant, run with UPDATE_GOLDEN=1 and look at the difference"
        );
    }
}

/// A digest of what `reproduce --json` prints of each figure: any other byte shows here,
/// and the page in the documentation says which number it is.
fn digests(reproductions: &[Reproduction]) -> String {
    let mut text = String::new();
    for reproduction in reproductions {
        let mut reproduction = reproduction.clone();
        for metric in &mut reproduction.metrics {
            if metric.is_timed {
                metric.measured = 0.0;
            }
        }
        let json = serde_json::to_vec_pretty(&reproduction).expect("it can be written");
        // Writing to a String cannot fail.
        let _ = write!(text, "{} ", reproduction.id);
        for byte in &Sha256::digest(json)[..8] {
            let _ = write!(text, "{byte:02x}");
        }
        text.push('\n');
    }
    text
}

fn tables_of(reproductions: &[Reproduction]) -> String {
    let mut text = String::new();
    for reproduction in reproductions {
        let heading = reproduction.heading();
        // Writing to a String cannot fail.
        let _ = write!(text, "\n### {heading}\n\n`{}`\n\n", reproduction.id);
        for note in &reproduction.notes {
            let _ = writeln!(text, "{note}\n");
        }
        text.push_str("| metric | paper | ours | unit | tolerance | verdict | source |\n");
        text.push_str("|---|---|---|---|---|---|---|\n");
        for metric in &reproduction.metrics {
            let _ = writeln!(text, "{}", row(metric));
        }
        let is_timed = |metric: &Metric| metric.is_timed;
        if !reproduction.metrics.iter().any(is_timed) {
            let _ = writeln!(text, "\n{}.", reproduction.summary());
        }
        if !reproduction.reasons().is_empty() {
            text.push('\n');
        }
        for (because, metrics) in reproduction.reasons() {
            let _ = writeln!(text, "- {} differ: {because}.", metrics.len());
        }
    }
    text.push('\n');
    text
}

fn row(metric: &Metric) -> String {
    let spread = metric.spread.map(|spread| format!(" ({})", short(spread)));
    let (ours, verdict) = match metric.is_timed {
        true => ("by machine".to_owned(), "not asserted"),
        false => (
            short(metric.measured) + &spread.unwrap_or_default(),
            metric.verdict.words(),
        ),
    };
    let tolerance = match metric.rule {
        Rule::Within => format!("± {}", short(metric.tolerance)),
        Rule::AtMost if metric.tolerance == 0.0 => "at most".to_owned(),
        Rule::AtMost => format!("at most + {}", short(metric.tolerance)),
        Rule::AtLeast if metric.tolerance == 0.0 => "at least".to_owned(),
        Rule::AtLeast => format!("at least - {}", short(metric.tolerance)),
    };
    let source = metric.source.words();
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
