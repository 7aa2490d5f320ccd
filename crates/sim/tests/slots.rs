//! The timetable in the simulator: in a claimed slot its schedulee runs if it can, else the
//! policy's choice.

mod common;

use common::{parse, run_checked};
use prorata_core::rng::{SeedableRng, Xoshiro256PlusPlus, below};
use prorata_scenario::Report;
use prorata_scenario::event::Event;
use prorata_sim::{Machine, Measures, Observer, report};

const MS: u64 = 1_000_000;

/// The turns on each CPU: from when to when, in ms, the CPU and the client.
#[derive(Default)]
struct Runs(Vec<(u64, u64, u32, String)>);

impl Observer for Runs {
    fn observe(&mut self, now_ns: u64, event: Event<'_>, machine: &Machine) {
        let Event::Ran {
            client,
            cpu,
            used_ns,
            ..
        } = event
        else {
            return;
        };
        let name = machine.client_name(client).into_owned();
        let (from, to) = ((now_ns - used_ns) / MS, now_ns / MS);
        let mut before = self.0.iter_mut().rev();
        match before.find(|run| run.2 == cpu) {
            Some(run) if run.1 == from && run.3 == name => run.1 = to,
            _ => self.0.push((from, to, cpu, name)),
        }
    }
}

impl Runs {
    /// On one CPU, in the order of time, up to a time.
    fn on(&self, cpu: u32, end: u64) -> Vec<(u64, u64, &str)> {
        let runs = self.0.iter().filter(|run| run.2 == cpu && run.0 < end);
        let mut runs: Vec<_> = runs.map(|run| (run.0, run.1.min(end), &*run.3)).collect();
        runs.sort_unstable();
        runs
    }
}

/// Runs a scenario to its end. All books balance at every event, and all assertions hold.
fn judged(text: &str) -> (Report, Runs, Machine) {
    let scenario = parse(text);
    let (machine, (runs, measures)) = run_checked(&scenario, 1, (Runs::default(), Measures::new()));
    let report = report(&scenario, 1, &machine, &measures);
    for verdict in &report.verdicts {
        assert!(verdict.judged && verdict.holds, "{verdict:?}");
    }
    (report, runs, machine)
}

#[test]
fn a_claimed_slot_runs_its_schedulee() {
    let (report, runs, _) = judged(
        r#"
duration = "10s"
machine = { quantum = "100ms" }
slots = { columns = 10 }
client = [{ name = "A", tickets = 9 }, { name = "B", tickets = 9 }, { name = "C", tickets = 9 }]
claim = [{ by = "A", slots = ["0:3-4"] }]
assert = [
  { slot-lateness = { client = "A", percentile = 100, at-most = "0ns" } },
  { missed = { client = "A", at-most = 0 } },
  { revocations = { client = "A", at-most = 0 } },
  { gang-skew = { client = "A", at-most = "0ns" } },
  { tokens-conserved = true },
  { conservation = true },
  { share = { client = "A", is = 0.3333, within = 0.005 } },
  { share = { client = "B", is = 0.3333, within = 0.005 } },
]
"#,
    );
    assert_eq!(report.clients[0].in_slots_ns, Some(2000 * MS));
    assert_eq!(report.clients[0].uncharged_ns, Some(0));
    assert_eq!(report.clients[1].in_slots_ns, Some(0));
    let covered = |from: u64| {
        let runs = runs.on(0, 10_000);
        let mut runs = runs.into_iter();
        runs.any(|(begin, end, name)| begin <= from && end >= from + 20 && name == "A")
    };
    for period in 0..100 {
        assert!(covered(period * 100 + 30), "{period}");
    }
}

/// 3.2: a process that wakes in its slot gets the CPU at once; while it is blocked others run.
#[test]
fn a_schedulee_that_wakes_in_its_slot_runs_at_once() {
    let (_, runs, _) = judged(
        r#"
duration = "1s"
slots = { columns = 10, length = "10ms" }
client = [{ name = "A", program = "waits", tickets = 1 }, { name = "B", tickets = 1000000 }]
claim = [{ by = "A", slots = ["0:2-5"] }]
[program.waits]
steps = [
  { compute = "25ms" }, { sleep = "10ms" }, { compute = "5ms" }, { sleep = "935ms" },
]
[[assert]]
slot-lateness = { client = "A", percentile = 100, at-most = "0ns" }
"#,
    );
    // It runs in its slot from 20 ms, ends its first step at 45, wakes at 55 ms, in its slot.
    let expected = [
        (0, 20, "B"),
        (20, 45, "A"),
        (45, 55, "B"),
        (55, 60, "A"),
        (60, 1000, "B"),
    ];
    assert_eq!(runs.on(0, 1000), expected);
}

/// The token is back, and the slot the policy's, when the expiry's tick begins.
#[test]
fn a_claim_that_expires_is_over_before_its_tick() {
    let (_, runs, machine) = judged(
        r#"
duration = "500ms"
slots = { columns = 10 }
client = [{ name = "A", tickets = 1 }, { name = "B", tickets = 1000000 }]
claim = [{ by = "A", slots = ["0:2-4"], expires = "240ms" }]
assert = [{ tokens-conserved = true }]
"#,
    );
    let in_slots: Vec<_> = runs.on(0, 500);
    let of_a: Vec<_> = in_slots.iter().filter(|run| run.2 == "A").collect();
    assert_eq!(of_a, [&(20, 50, "A"), &(120, 150, "A"), &(220, 240, "A")]);
    assert_eq!(
        machine.timetable().map(|table| table.table().claimed()),
        Some(0)
    );
}

/// A claim made in the middle of a slot is in force from the second boundary after it.
#[test]
fn claims_and_frees_take_effect_together_at_a_boundary() {
    let (_, runs, _) = judged(
        r#"
duration = "500ms"
machine = { cpus = 2 }
slots = { columns = 4 }
client = [
  { name = "A", tickets = 1, program = "gang" },
  { name = "B", tickets = 1000000, program = "gang" },
]
program = { gang = { steps = [{ fork = "compute" }, { compute = "1h" }] } }
at = [
  { time = "105ms", do = { claim = { by = "A", gang = { threads = 2 } } } },
  { time = "205ms", do = { free = { by = "A" } } },
]
assert = [
  { gang-skew = { client = "A", at-most = "0ns" } },
  { missed = { client = "A", at-most = 0 } },
]
"#,
    );
    for cpu in 0..2 {
        // Which client starts first is another matter.
        let runs = runs.on(cpu, 400);
        let from = runs.len() - 3;
        assert_eq!(runs[from].1, 120);
        assert_eq!(runs[from + 1..], [(120, 220, "A"), (220, 400, "B")]);
    }
}

/// A schedulee that the policy runs on another CPU is moved; a stranger's gift leaves it there.
#[test]
fn own_claims_move_a_running_thread_and_gifts_do_not() {
    let scenario = |user: u32| {
        format!(
            r#"
duration = "1s"
machine = {{ cpus = 2, quantum = "1s" }}
slots = {{ columns = 10 }}
client = [
  {{ name = "A", tickets = 100 }},
  {{ name = "B", tickets = 100, user = {user} }},
  {{ name = "C", tickets = 1 }},
]
claim = [{{ by = "C", runs = "B", slots = ["0:5"] }}]
"#
        )
    };
    // A and B have the first turns, of a second.
    let (report, runs, _) = judged(&scenario(0));
    assert_eq!(report.clients[1].in_slots_ns, Some(100 * MS));
    assert!(
        runs.on(0, 1000)
            .iter()
            .any(|run| (run.0, run.2) == (50, "B"))
    );
    let (report, runs, _) = judged(&scenario(1));
    assert_eq!(report.clients[1].in_slots_ns, Some(0));
    assert_eq!(runs.on(1, 1000), [(0, 1000, "B")]);
}

/// A gift charges nobody's tickets, so it adds to the share.
#[test]
fn a_gift_is_outside_the_economy() {
    let (report, ..) = judged(
        r#"
duration = "20s"
slots = { columns = 10 }
client = [{ name = "A", tickets = 5 }, { name = "B", tickets = 5, user = 1 }]
claim = [{ by = "A", runs = "B", slots = ["0:0-3"] }]
assert = [{ share = { client = "B", is = 0.7, within = 0.005 } }]
"#,
    );
    let gift = &report.clients[1];
    assert_eq!(gift.uncharged_ns, gift.in_slots_ns);
}

/// One thread of a client may be the schedulee; it runs in one row of a column.
#[test]
fn a_single_thread_may_be_the_schedulee() {
    let (report, runs, _) = judged(
        r#"
duration = "1s"
machine = { cpus = 2 }
slots = { columns = 10 }
client = [{ name = "A", program = "two" }, { name = "B", count = 4, tickets = 100000 }]
claim = [{ by = "A", thread = 2, slots = ["1:4"] }, { by = "A", thread = 1, slots = ["0:4", "0:5"] }]
[program.two]
steps = [{ fork = "compute" }, { compute = "65ms" }, { sleep = "1h" }]
"#,
    );
    // The first thread computes 20 ms a period and then sleeps for ever.
    assert_eq!(report.clients[0].in_slots_ns, Some(65 * MS + 100 * MS));
    let of_a: Vec<_> = runs
        .on(0, 1000)
        .into_iter()
        .filter(|run| run.2 == "A")
        .collect();
    assert_eq!(
        of_a,
        [
            (40, 60, "A"),
            (140, 160, "A"),
            (240, 260, "A"),
            (340, 345, "A")
        ]
    );
}

/// Levels, shares and reservations revoke; owners are told, and tokens go back.
#[test]
fn claims_are_revoked_by_levels_shares_and_reservations() {
    let (_, _, machine) = judged(
        r#"
duration = "1s"
[slots]
columns = 12
user-tokens = 0
tokens = [
  { of = "A", level = "gang", count = 12, weight = 1 },
  { of = "B", level = "gang", count = 12, weight = 1 },
  { of = "B", level = "hard", count = 2 },
]
[[client]]
name = "A"
[[client]]
name = "B"
[[claim]]
by = "A"
slots = ["0:0-11"]
level = "gang"
[[at]]
time = "100ms"
do = { claim = { by = "B", slots = ["0:0-3"], level = "gang" } }
[[at]]
time = "200ms"
do = { claim = { by = "B", slots = ["0:4-5"], level = "hard" } }
[[at]]
time = "300ms"
do = { reserve = { slots = 1, of = 6 } }
[[at]]
time = "400ms"
do = { donate = { from = "A", to = "B", level = "gang", count = 2 } }
[[assert]]
revocations = { client = "A", at-most = 8 }
[[assert]]
tokens-conserved = true
"#,
    );
    let table = machine.timetable().expect("it has one");
    assert_eq!(table.table().claimed(), 10);
}

/// A claim for more than there is is made as far as it goes, and the rest is told.
#[test]
fn what_is_refused_in_a_run_is_told() {
    let (report, ..) = judged(
        r#"
duration = "1s"
slots = { columns = 12, user-tokens = 3 }
client = [{ name = "A" }, { name = "B" }]
at = [{ time = "100ms", do = { claim = { by = "A", slots = ["0:0-3"] } } }]
"#,
    );
    let [refused] = &report.refused[..] else {
        panic!("{:?}", report.refused);
    };
    assert!(
        refused.contains("no token of level best-effort left"),
        "{refused}"
    );
}

/// Nobody without claims waits longer than the longest run of claims and what it waits without.
#[test]
fn the_wait_without_claims_is_bounded() {
    judged(
        r#"
duration = "10s"
machine = { quantum = "10ms" }
slots = { columns = 12, reserve = { slots = 1, of = 6 } }
client = [
  { name = "A", tickets = 300 },
  { name = "B", tickets = 300 },
  { name = "C", tickets = 300 },
]
claim = [{ by = "A", best-effort = 10 }]
assert = [
  { blackout = { client = "B", at-most = "110ms" } },
  { blackout = { client = "C", at-most = "110ms" } },
]
"#,
    );
}

/// A client that frees all slots waits at most a period and two quanta longer than without them.
#[test]
fn the_next_turn_after_freeing_comes_soon() {
    let (_, runs, _) = judged(
        r#"
duration = "20s"
slots = { columns = 120 }
client = [
  { name = "A", tickets = 10 },
  { name = "B", tickets = 60 },
  { name = "C", tickets = 30 },
]
claim = [{ by = "A", slots = ["0:0-59"] }]
at = [{ time = "12.59s", do = { free = { by = "A" } } }]
"#,
    );
    // In force at 12,610 ms, where a slot of A is over.
    let next = runs
        .on(0, 20_000)
        .into_iter()
        .find(|run| run.0 >= 12_610 && run.2 == "A");
    let wait = next.expect("it has tickets").0 - 12_610;
    let between_turns = 20 * 100 / 10;
    assert!(wait <= 1200 + 2 * 20 + between_turns, "{wait} ms");
}

/// Looks between the boundaries whether a gang of three has all of a column or nothing.
#[derive(Default)]
struct Gangs {
    columns: u32,
}

impl Observer for Gangs {
    fn observe(&mut self, now_ns: u64, event: Event<'_>, machine: &Machine) {
        if event != Event::Sample || now_ns.is_multiple_of(10 * MS) {
            return;
        }
        let gang = machine.find_clients("gang").expect("it is there").start;
        let cpus = (0..3).filter(|&cpu| machine.in_slot(cpu) == Some(gang));
        let cpus = cpus.count();
        assert!(cpus == 0 || cpus == 3, "{cpus} of 3 at {now_ns} ns");
        self.columns += u32::from(cpus == 3);
    }
}

#[test]
fn no_gang_ever_has_half_a_column() {
    for seed in 1..=20 {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut lot = |most: u64| below(&mut rng, most);
        let mut text = format!(
            r#"
duration = "3s"
machine = {{ cpus = 3 }}
slots = {{ columns = {} }}
measure = {{ every = "7ms" }}
program = {{ gang = {{ steps = [{{ fork = "compute" }}, {{ fork = "compute" }}, {{ compute = "1h" }}] }} }}
client = [
  {{ name = "gang", program = "gang", tickets = 1 }},
  {{ name = "B", count = 3, tickets = {} }},
]
"#,
            2 + lot(11),
            1 + lot(1000),
        );
        for _ in 0..60 {
            let deed = match lot(4) {
                0 => format!(
                    "claim = {{ by = \"gang\", gang = {{ threads = 3, columns = {} }}, level = \"system\" }}",
                    1 + lot(2)
                ),
                1 => "free = { by = \"gang\" }".to_owned(),
                2 => format!(
                    "claim = {{ by = \"B{}\", best-effort = {}, level = \"hard\" }}",
                    1 + lot(3),
                    1 + lot(6)
                ),
                _ => format!("free = {{ by = \"B{}\" }}", 1 + lot(3)),
            };
            text += &format!("[[at]]\ntime = \"{}ms\"\ndo = {{ {deed} }}\n", lot(3000));
        }
        let (_, gangs) = run_checked(&parse(&text), seed, Gangs::default());
        assert!(gangs.columns > 0, "seed {seed}: the gang never ran");
    }
}
