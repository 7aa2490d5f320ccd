//! Chat's figures of 2001 run on the machine that the calibration chose, and the documentation
//! has the archive's numbers.

mod support;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use prorata_scenario::file::Time;
use toml::Value;

use support::{between, compare};

/// Figures whose machine `scripts/calibrate-2001` calibrates.
const FIGURES: [&str; 4] = ["figure-2", "figure-3", "figure-4", "table-4"];

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"))
}

/// A duration of a scenario file.
fn ns(value: &Value) -> u64 {
    let time: Time = value.clone().try_into().expect("a duration");
    time.0
}

/// Columns of the archive's costs.
const COSTS: [&str; 5] = [
    "write_ns",
    "segment_ns",
    "switch_ns",
    "examine_ns",
    "slowdown",
];

/// The costs of a figure, in the order of these columns.
fn costs(figure: &str) -> [u64; 5] {
    let file: Value = toml::from_str(&read(&format!("../../scenarios/2001/{figure}.toml")))
        .expect("a scenario file");
    let rooms = &file["reproduces"]["experiment"]["chat-rooms"];
    let (chat, costs) = (&rooms["chat"], &rooms["costs"]);
    let switch_ns = ns(&costs["context-switch"]);
    assert_eq!(ns(&costs["cache-refill"]), switch_ns, "{figure}: a start");
    assert_eq!(ns(&chat["read"]) * 2, ns(&chat["write"]), "{figure}: read");
    // As the calibration: 2 MiB (2001, 5), 8 KiB a task.
    assert_eq!(costs["cached-tasks"].as_integer(), Some(256), "{figure}");
    let slowdown = rooms["slowdown-thousandths"].as_integer();
    [
        ns(&chat["write"]),
        ns(&costs["segment"]),
        switch_ns,
        ns(&costs["examine"]),
        slowdown.expect("thousandths").unsigned_abs(),
    ]
}

#[test]
fn the_figures_of_chat_have_the_costs_of_the_first_optimum() {
    let optima = archive("optima");
    let optimum = COSTS.map(|column| optima[0][column].parse::<u64>().expect("a number"));
    for figure in FIGURES {
        assert_eq!(costs(figure), optimum, "{figure}");
    }
}

/// A row of the archive: text by column.
type Row = BTreeMap<String, String>;

fn archive(name: &str) -> Vec<Row> {
    let text = read(&format!("data/2001/{name}.csv"));
    let mut lines = text.lines();
    let columns: Vec<String> = cells(lines.next().expect("a head")).collect();
    let row = |line: &str| columns.iter().cloned().zip(cells(line)).collect();
    lines.map(row).collect()
}

fn cells(line: &str) -> impl Iterator<Item = String> {
    line.split(',').map(str::to_owned)
}

fn number(row: &Row, column: &str) -> f64 {
    row[column].parse().expect("a number")
}

/// The least and the largest of some numbers: `1.36 to 1.48`.
fn range(values: impl Iterator<Item = f64>, digits: usize) -> String {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let ends = [values[0], values[values.len() - 1]];
    let [least, largest] = ends.map(|value| format!("{value:.digits$}"));
    if least == largest {
        least
    } else {
        format!("{least} to {largest}")
    }
}

/// Speedups and peaks under all optima, from `headlines.csv`.
fn headlines() -> String {
    let rows = archive("headlines");
    let mut text = String::from(
        "\n| | eight CPUs over two: paper | with f(n) | without | peak over DSS's: paper | with f(n) \
         | without |\n|---|---|---|---|---|---|---|\n",
    );
    for (rooms, load) in [(10, "(10,100)"), (20, "(20,200)"), (30, "(30,300)")] {
        for scheduler in ["DSS", "PLS", "MQ"] {
            let cells = |what: &str| {
                let name = format!("({rooms} rooms) {scheduler} {what}");
                let of = |slowdown: &str| {
                    let is = |row: &&Row| row["headline"] == name && row["slowdown"] == slowdown;
                    let row = rows.iter().find(is)?;
                    let ends = ["least", "largest"].map(|end| number(row, end));
                    Some((row["paper"].clone(), range(ends.into_iter(), 2)))
                };
                match (of("with"), of("without")) {
                    (Some((paper, with)), Some((_, without))) => [paper, with, without],
                    _ => Default::default(),
                }
            };
            let speedup = cells("speedup on 8 CPUs").join(" | ");
            let peak = cells("peak over that of DSS").join(" | ");
            // Writing to a String cannot fail.
            let _ = writeln!(text, "| {load} {scheduler} | {speedup} | {peak} |");
        }
    }
    text
}

/// What the paper prints for DSS, PLS and MQ on eight CPUs in Tables 3 and 4, with the rooms, the
/// archive's column and digits. Of requests on eight CPUs over two it prints what they follow from
/// (`tests/papers_arithmetic.rs`).
const HELD_OUT: [(&str, u32, &str, usize, [&str; 3]); 6] = [
    (
        "(20,200): run queue (MQ: of a CPU)",
        20,
        "length",
        0,
        ["218", "198", "24"],
    ),
    ("hold, us", 20, "hold_us", 1, ["22", "7.3", "2.9"]),
    (
        "contention, %",
        20,
        "contention",
        1,
        ["86.6", "50.7", "6.3"],
    ),
    ("wait, us", 20, "wait_us", 1, ["105", "19", "3.4"]),
    ("(10,100): run queue", 10, "length", 0, ["84", "82", "6"]),
    ("(30,300): run queue", 30, "length", 0, ["279", "443", "47"]),
];

const SCHEDULERS: [&str; 3] = ["DSS", "PLS", "MQ"];

/// Rows of `runs.csv` with f(n), one for each optimum.
fn runs<'a>(rows: &'a [Row], rooms: u32, scheduler: &str, cpus: u32) -> Vec<&'a Row> {
    let is = |row: &&Row| {
        row["slowdown"] != "0"
            && row["rooms"] == rooms.to_string()
            && row["scheduler"] == scheduler
            && row["cpus"] == cpus.to_string()
    };
    rows.iter().filter(is).collect()
}

/// Tables 3 and 4 on eight CPUs under all optima.
fn held_out(rows: &[Row]) -> String {
    let mut text =
        String::from("\n| eight CPUs; paper, ours | DSS | PLS | MQ |\n|---|---|---|---|\n");
    for (what, rooms, column, digits, paper) in HELD_OUT {
        let cells = SCHEDULERS.iter().zip(paper).map(|(scheduler, paper)| {
            let found = runs(rows, rooms, scheduler, 8);
            let ours = range(found.iter().map(|row| number(row, column)), digits);
            format!("{paper}; {ours}")
        });
        let cells: Vec<String> = cells.collect();
        let _ = writeln!(text, "| {what} | {} |", cells.join(" | "));
    }
    text
}

/// How requests for locks a message grow from two CPUs to eight with (20,200): as counted, and by
/// the arithmetic of `tests/papers_arithmetic.rs`, which is true of one lock and gives 3.41 and
/// 1.73 for the paper's tables.
fn growth_of_requests(rows: &[Row]) -> String {
    let growth = |scheduler: &str, requests: &dyn Fn(&Row, f64) -> f64| {
        let (two, eight) = (runs(rows, 20, scheduler, 2), runs(rows, 20, scheduler, 8));
        let growth = two.iter().zip(&eight);
        let growth = growth.map(|(two, eight)| requests(eight, 8.0) / requests(two, 2.0));
        range(growth, 2)
    };
    let counted = |row: &Row, _: f64| number(row, "requests_per_message");
    let worked_out = |row: &Row, cpus: f64| {
        let held = number(row, "contention") * cpus / (cpus - 1.0);
        held / number(row, "hold_us") / number(row, "messages_per_s")
    };
    let all = SCHEDULERS.map(|scheduler| growth(scheduler, &counted));
    let what = "(20,200): requests a message, over two CPUs";
    format!(
        "| {what}, counted | {} |\n| {what}, by arithmetic | 3.41; {} | 1.73; {} | |\n",
        all.join(" | "),
        growth("DSS", &worked_out),
        growth("PLS", &worked_out)
    )
}

#[test]
fn the_documentation_has_the_archives_numbers() {
    compare("docs/MANY-CPUS.md", |text| {
        let text = between(text, "headlines", &format!("{}\n", headlines()));
        let rows = archive("runs");
        let part = format!("{}{}\n", held_out(&rows), growth_of_requests(&rows));
        between(&text, "held out", &part)
    });
}
