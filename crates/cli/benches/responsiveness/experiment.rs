//! What is measured: loads, what runs beside them, and what each load prints.

use super::work::{EDITOR, SHORT, Wakes};

/// A measured quantity of a load.
#[derive(Clone, Copy)]
pub struct What {
    pub name: &'static str,
    pub unit: &'static str,
    pub target: Target,
}

/// What is to be reached.
#[derive(Clone, Copy)]
pub enum Target {
    /// At least this part of EEVDF's.
    AtLeast(f64),
    /// At most EEVDF's, a tenth and 0.1 ms more.
    Near,
    /// At most this, and at most EEVDF's.
    Within(f64),
}

const fn rate(name: &'static str, unit: &'static str) -> What {
    What {
        name,
        unit,
        target: Target::AtLeast(0.9),
    }
}

const fn latency(name: &'static str, target: Target) -> What {
    What {
        name,
        unit: "us",
        target,
    }
}

/// A load, and what runs beside it.
pub struct Run {
    /// The load and its place, for tables.
    pub name: String,
    /// The argument that starts the load.
    pub load: &'static str,
    /// The argument that starts each rival, and their number.
    pub rivals: (&'static str, usize),
    /// Of the rivals' group and the load's; none if they share a group.
    pub tickets: Option<[u64; 2]>,
    /// What the load prints. Its share of the CPUs follows.
    pub whats: Vec<What>,
}

/// Runs in the same kind of micro-VM.
pub struct Experiment {
    pub name: &'static str,
    /// Nanoseconds per instruction. At 8 a second takes about one.
    pub icount: &'static str,
    pub cpus: &'static [u32],
    /// What schedules, by name.
    pub under: &'static [&'static str],
    pub runs: fn() -> Vec<Run>,
}

pub const ALL: [Experiment; 3] = [
    Experiment {
        name: "hogs",
        icount: "--icount=8",
        cpus: &[1, 2, 4],
        under: &["EEVDF", "HYBRID", "WHOLE", "scx_bpfland", "scx_lavd"],
        runs: beside_hogs,
    },
    Experiment {
        name: "wakes",
        icount: "--icount=8",
        cpus: &[1],
        under: &["EEVDF", "HYBRID", "WHOLE", "scx_bpfland", "scx_lavd"],
        runs: wakes,
    },
    Experiment {
        name: "throughput",
        icount: "--icount=1",
        cpus: &[1],
        under: &["EEVDF", "WHOLE", "scx_bpfland", "scx_lavd"],
        runs: throughput,
    },
];

/// Each load beside four hogs: in one group with them, and in a group of its own with as many
/// tickets.
fn beside_hogs() -> Vec<Run> {
    let loads = [
        (
            "round trips",
            "--ping-pong",
            vec![rate("rate", "round trips/s")],
        ),
        (
            "requests",
            "--requests",
            vec![
                rate("rate", "requests/s"),
                latency("p50", Target::Near),
                latency("p99", Target::Near),
            ],
        ),
        ("two nappers", "--nappers", vec![rate("they get", "CPUs")]),
        (
            "wake-up",
            "--wakes",
            ["p50", "p99", "p99.9"]
                .map(|part| latency(part, Target::Near))
                .to_vec(),
        ),
    ];
    let places = [
        (None, "one group"),
        (Some([100, 100]), "groups of their own"),
    ];
    let runs = places.iter().flat_map(|(tickets, place)| {
        loads.iter().map(move |(name, load, whats)| Run {
            name: format!("{name}, {place}"),
            load,
            rivals: ("--hog", 4),
            tickets: *tickets,
            whats: whats.clone(),
        })
    });
    runs.collect()
}

/// Wakes at fixed times in a group that is due twice what it asks for, beside a group of hogs.
fn wakes() -> Vec<Run> {
    let loads: [(&str, &str, Wakes); 2] = [
        ("0.2 ms every 2 ms", "--short", SHORT),
        ("2 ms every 100 ms", "--editor", EDITOR),
    ];
    let runs = loads.iter().flat_map(|(name, load, wakes)| {
        let parts = wakes.period.as_nanos() / wakes.work.as_nanos();
        // Twice one part of these, to the load.
        let tickets = [100 * (parts as u64 / 2 - 1), 100];
        [1, 8, 64].map(|hogs| Run {
            name: format!("{name}, {hogs} hogs"),
            load,
            rivals: ("--hog", hogs),
            tickets: Some(tickets),
            whats: vec![
                latency("p50", Target::Within(100.0)),
                latency("p99", Target::Within(500.0)),
                // A tick and a millisecond.
                latency("p99.9", Target::Within(5_000.0)),
            ],
        })
    });
    runs.collect()
}

/// What a computing program gets done beside programs that wake all the time (1999, Figure 10).
fn throughput() -> Vec<Run> {
    let runs = [(0, 0.99), (10, 0.99), (100, 0.95)].map(|(beside, part)| Run {
        name: format!("computing beside {beside} interactive"),
        load: "--compute",
        rivals: ("--interactive", beside),
        tickets: None,
        whats: vec![What {
            name: "rate",
            unit: "steps/s",
            target: Target::AtLeast(part),
        }],
    });
    runs.into()
}
