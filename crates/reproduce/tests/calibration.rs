//! Chat's figures of 2001 run on the machine that the calibration chose.

use std::path::Path;

use prorata_scenario::file::Time;
use toml::Value;

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

/// The costs of a figure, in the order of the archive's columns.
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
    let archive = read("data/2001/optima.csv");
    let mut rows = archive.lines();
    let columns = "write_ns,segment_ns,switch_ns,examine_ns,slowdown,";
    let head = rows.next().expect("a head");
    assert!(head.starts_with(columns), "{head}");
    let first = rows.next().expect("an optimum").split(',').take(5);
    let optimum: Vec<u64> = first.map(|n| n.parse().expect("a number")).collect();
    for figure in FIGURES {
        assert_eq!(costs(figure)[..], optimum[..], "{figure}");
    }
}
