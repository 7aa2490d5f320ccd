//! `prorata reproduce`: tables, JSON, pages, exit codes, and real processes.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::support::{output, prorata, stderr, stdout};

fn reproduce(arguments: &[&str]) -> Output {
    let mut command = prorata(Path::new("/nonexistent/prorata/socket"));
    output(command.arg("reproduce").args(arguments))
}

fn json(ended: &Output) -> Value {
    serde_json::from_str(&stdout(ended)).unwrap()
}

/// The metric of this name among those of a figure.
fn metric<'a>(figure: &'a Value, name: &str) -> &'a Value {
    let metrics = figure["metrics"].as_array().unwrap();
    let found = metrics.iter().find(|metric| metric["metric"] == name);
    found.unwrap_or_else(|| panic!("{name}: {metrics:?}"))
}

#[test]
fn a_reproduced_figure_exits_with_0() {
    let ended = reproduce(&["1994/figure-3"]);
    assert_eq!(ended.status.code(), Some(0), "{}", stderr(&ended));
    let text = stdout(&ended);
    for wanted in [
        "1994, Figure 3",
        "value of thread3",
        "TOLERANCE",
        " reproduced ",
        "1994: no headlines among these figures; of all numbers, 4 of 4 reproduced",
        "1 figure: 1 reproduced, 0 differ, 0 failed",
    ] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
}

#[test]
fn json_has_the_grounds_of_every_verdict() {
    let ended = reproduce(&["1994/figure-1", "1995/figure-8", "--json"]);
    assert_eq!(ended.status.code(), Some(0), "{}", stderr(&ended));
    let papers = json(&ended);
    assert_eq!(papers.as_array().map(Vec::len), Some(2));
    assert_eq!(papers[0]["paper"], 1994);
    let figure = &papers[0]["figures"][0];
    assert_eq!(figure["verdict"], "reproduced");
    let sum = metric(figure, "running sum at client 2");
    assert_eq!(sum["paper"], 12.0);
    assert_eq!(sum["measured"], 12.0);
    assert_eq!(sum["unit"], "tickets");
    assert_eq!(sum["tolerance"], 0.0);
    assert_eq!(sum["source"], "read from the plot");
    assert_eq!(sum["verdict"], "reproduced");
    assert_eq!(figure["metrics"][0]["source"], "printed");
    let figure = &papers[1]["figures"][0];
    assert_eq!(figure["metrics"][0]["source"], "follows from the law");
    let beyond = figure["beyond"].as_array().unwrap();
    let baseline = beyond
        .iter()
        .find(|beyond| beyond["policy"] == "eevdf")
        .unwrap();
    assert_eq!(baseline["baseline"], true);
}

#[test]
fn a_failed_figure_exits_with_1() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("figure-3.toml");
    let scenario = include_str!("../../../../scenarios/1994/figure-3.toml");
    std::fs::write(&path, scenario.replace("paper = 600", "paper = 601")).unwrap();
    let ended = reproduce(&[path.to_str().unwrap()]);
    assert_eq!(ended.status.code(), Some(1));
    assert!(stdout(&ended).contains("FAILED") && stdout(&ended).contains("0 differ, 1 failed"));
    assert_eq!(stderr(&ended), "");
}

/// A difference is neither a success nor a failure: it has its reason, its exit code and its
/// own count, in the text and in the JSON.
#[test]
fn a_difference_is_explained_and_exits_with_3() {
    let ended = reproduce(&["1995/figure-14"]);
    assert_eq!(ended.status.code(), Some(3), "{}", stderr(&ended));
    let text = stdout(&ended);
    assert!(text.contains(" differs "), "{text}");
    assert!(
        text.contains("1 figure: 0 reproduced, 1 differ, 0 failed"),
        "{text}"
    );
    let ended = reproduce(&["1995/figure-14", "--json"]);
    assert_eq!(ended.status.code(), Some(3));
    let papers = json(&ended);
    assert_eq!(papers[0]["verdict"], "differs");
    let figure = &papers[0]["figures"][0];
    assert_eq!(figure["verdict"], "differs");
    let ten = metric(figure, "10:1");
    assert_eq!(ten["verdict"], "differs");
    assert!(ten["differs"].as_str().unwrap().contains("273:27"));
    assert!(metric(figure, "9:1").get("differs").is_none());
    let metrics = figure["metrics"].as_array().unwrap();
    let differ = metrics.iter().filter(|m| m["verdict"] == "differs").count();
    assert_eq!(papers[0]["numbers"]["differ"], differ);
    assert!(papers[0]["headlines"]["differ"].as_u64() > Some(0));
    // Nowhere does the output call a difference a success.
    assert!(!stdout(&ended).contains("\"ok\""));
}

#[test]
fn an_unsupported_figure_is_refused_in_one_sentence() {
    for (arguments, sentence) in [
        (
            &["1994/figure-3", "--engine", "kernel"][..],
            "1994/figure-3 is an experiment for the simulator alone",
        ),
        (
            &["1994/figure-3", "--engine", "user"],
            "1994/figure-3 is an experiment for the simulator alone",
        ),
        (&["/nonexistent/figure.toml"], "/nonexistent/figure.toml"),
    ] {
        let ended = reproduce(arguments);
        assert_eq!(ended.status.code(), Some(1), "{arguments:?}");
        let said = stderr(&ended);
        assert!(
            said.contains(sentence) && said.lines().count() == 1,
            "{said}"
        );
    }
}

#[test]
fn an_unknown_figure_is_wrong_usage_and_its_neighbours_are_named() {
    for (name, near) in [
        ("1994/figure-99", "such as 1994/figure-9"),
        ("1996", "a year of 1994, 1995, 1999, 2001, 2005"),
        ("table-4.11", "such as 2005/table-4.1"),
    ] {
        let ended = reproduce(&[name]);
        assert_eq!(ended.status.code(), Some(2), "{name}");
        let said = stderr(&ended);
        assert!(
            said.contains(&format!("no figure '{name}'")) && said.contains(near),
            "{said}"
        );
        assert!(said.lines().count() == 1 && said.len() < 300, "{said}");
    }
}

#[test]
fn a_page_that_cannot_be_written_is_refused_before_the_runs() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("none/page.html");
    // The figure's own refusal comes with its run.
    let arguments = ["1994/figure-3", "--engine", "kernel", "--html"];
    let ended = reproduce(&[&arguments[..], &[page.to_str().unwrap()]].concat());
    assert_eq!(ended.status.code(), Some(1));
    assert!(
        stderr(&ended).contains("cannot write"),
        "{}",
        stderr(&ended)
    );
    // A run that fails leaves an earlier page as it was, and no new one.
    let (old, new) = (
        directory.path().join("old.html"),
        directory.path().join("new.html"),
    );
    std::fs::write(&old, "earlier").unwrap();
    for page in [&old, &new] {
        let ended = reproduce(&[&arguments[..], &[page.to_str().unwrap()]].concat());
        assert!(stderr(&ended).contains("for the simulator alone"));
    }
    assert_eq!(std::fs::read_to_string(&old).unwrap(), "earlier");
    assert!(!new.exists());
}

#[test]
fn drawings_and_a_page_are_written_to_the_given_paths() {
    let directory = tempfile::tempdir().unwrap();
    let (page, drawings) = (
        directory.path().join("page.html"),
        directory.path().join("deep/svg"),
    );
    let ended = reproduce(&[
        "1995/figure-8",
        "--html",
        page.to_str().unwrap(),
        "--svg",
        drawings.to_str().unwrap(),
    ]);
    assert_eq!(ended.status.code(), Some(0), "{}", stderr(&ended));
    let page = std::fs::read_to_string(page).unwrap();
    assert!(
        page.contains("<!DOCTYPE html>") && page.contains("<svg"),
        "{page}"
    );
    for panel in ["a", "b"] {
        let path = drawings.join(format!("1995-figure-8-{panel}.svg"));
        assert!(std::fs::read_to_string(path).unwrap().starts_with("<svg"));
    }
    let refused = reproduce(&["1994/figure-3", "--html", "/proc/nowhere/page.html"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("/proc/nowhere/page.html"));
}

/// Real processes run and are measured. Their shares depend on the host's load, so
/// the test asserts no verdict.
#[test]
fn processes_run_a_figure_and_leave_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("short.toml");
    let scenario = include_str!("../../../../scenarios/1994/figure-9.toml");
    // Long enough for every program to run even if the host stalls for a second.
    let short = scenario.replace("short = { times = 20", "short = { times = 60");
    assert_ne!(short, scenario);
    std::fs::write(&path, short).unwrap();
    let mut command = prorata(Path::new("/nonexistent/prorata/socket"));
    command.env("TMPDIR", directory.path());
    command
        .args(["reproduce", "--engine", "user", "--json"])
        .arg(&path);
    let ended = output(&mut command);
    assert!(
        matches!(ended.status.code(), Some(0 | 1 | 3)),
        "{}",
        stderr(&ended)
    );
    let papers = json(&ended);
    assert_eq!(papers[0]["engine"], "user");
    let metrics = papers[0]["figures"][0]["metrics"].as_array().unwrap();
    assert_eq!(metrics.len(), 6);
    assert!(
        metrics
            .iter()
            .all(|metric| metric["measured"].as_f64() > Some(0.0)),
        "{metrics:?}"
    );
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "only the scenario is left: {left:?}");
}
