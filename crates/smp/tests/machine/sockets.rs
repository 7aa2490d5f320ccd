//! Pipes and sockets: which writers wait, and which messages share a segment.

use crate::support::{LAYOUTS, machine, scenario, start, usual};
use prorata_smp::{LayoutName, MachineModel, SchedulerCosts, SmpSimulation, WritersWake};

/// A pipe is full and two threads wait to send. The first receive wakes both, as in
/// Linux 2.4: one sends, the other waits until the next receive.
#[test]
fn room_in_a_pipe_wakes_all_threads_that_wait_to_send() {
    let text = r#"
[pipe.p]
capacity = 1
[program.writer]
steps = [{ send = "p" }]
[program.reader]
steps = [{ sleep = "10ms" }, { loop = { times = 3, steps = [{ receive = "p" }, { sleep = "10ms" }] } }]
[[client]]
name = "writer"
count = 3
program = "writer"
[[client]]
name = "reader"
program = "reader"
"#;
    for layout in LAYOUTS {
        let mut simulation = start(&scenario(text), &usual(4, layout));
        simulation.run().expect("it can go on");
        assert_eq!(simulation.alive(), 0, "{layout:?}");
        let counts = simulation.counts();
        assert_eq!(counts.sends, 3, "{layout:?}");
        // Four threads begin, four sleeps end, and two senders and one are woken.
        assert_eq!(counts.wakes, 4 + 4 + 2 + 1, "{layout:?}");
    }
}

/// A writer fills a pipe of six messages, and waits. A reader takes one every 10 ms.
const FULL: &str = r#"
[pipe.p]
capacity = 6
[program.writer]
steps = [{ loop = { times = 7, steps = [{ send = "p" }] } }]
[program.reader]
steps = [{ loop = { times = 7, steps = [{ sleep = "10ms" }, { receive = "p" }] } }]
[[client]]
name = "writer"
program = "writer"
[[client]]
name = "reader"
program = "reader"
"#;

/// As TCP's `tcp_write_space()`: not before a third of the buffer is free.
#[test]
fn a_writer_is_woken_when_a_third_is_free() {
    let cases = [(WritersWake::AnyRoom, 10), (WritersWake::AThirdFree, 20)];
    for (writers, woken_ms) in cases {
        let machine = MachineModel {
            writers,
            ..usual(2, LayoutName::GlobalList)
        };
        let mut simulation = start(&scenario(FULL), &machine);
        simulation
            .run_to(woken_ms * 1_000_000 - 1_000)
            .expect("it can go on");
        assert_eq!(simulation.counts().sends, 6, "{writers:?}");
        simulation
            .run_to(woken_ms * 1_000_000 + 1_000_000)
            .expect("it can go on");
        assert_eq!(simulation.counts().sends, 7, "{writers:?}");
    }
}

/// So many writers send a hundred messages each into a pipe that one reader empties. They
/// compute so long for each message.
fn into_one_pipe(
    writers: u32,
    [writes_for, reads_for]: [&str; 2],
    costs: SchedulerCosts,
) -> SmpSimulation {
    let text = format!(
        r#"
[pipe.p]
capacity = 10000
[program.writer]
steps = [{{ loop = {{ times = 100, steps = [{{ compute = "{writes_for}" }}, {{ send = "p" }}] }} }}]
[program.reader]
steps = [{{ loop = {{ times = {}, steps = [{{ receive = "p" }}, {{ compute = "{reads_for}" }}] }} }}]
[[client]]
name = "writer"
count = {writers}
program = "writer"
[[client]]
name = "reader"
program = "reader"
"#,
        100 * writers
    );
    let machine = machine(4, LayoutName::GlobalList, costs);
    let mut simulation = start(&scenario(&text), &machine);
    simulation.run().expect("it can go on");
    assert_eq!(simulation.alive(), 0);
    assert_eq!(simulation.counts().sends, 100 * u64::from(writers));
    simulation
}

/// As `lock_sock()`: writers of one socket that run at the same time sleep for one another.
#[test]
fn writers_of_one_socket_sleep_while_another_holds_its_lock() {
    let counts = |writers, socket_locks| {
        let costs = SchedulerCosts {
            socket_locks,
            ..SchedulerCosts::default()
        };
        into_one_pipe(writers, ["1ns", "1us"], costs).counts()
    };
    assert_eq!(counts(3, false).socket_waits, 0);
    assert_eq!(counts(1, true).socket_waits, 0);
    let locked = counts(3, true);
    assert!(locked.socket_waits > 20, "{locked:?}");
    assert!(locked.schedules > counts(3, false).schedules);
}

/// Nagle's algorithm: the slower the reader, the more messages share a segment.
#[test]
fn messages_share_segments_while_the_reader_is_busy() {
    let costs = SchedulerCosts {
        segment: "20us".parse().expect("a time"),
        ..SchedulerCosts::default()
    };
    let segments = |times| {
        let simulation = into_one_pipe(1, times, costs.clone());
        simulation.counts().segments
    };
    // The reader has taken and acknowledged each message before the next one.
    assert_eq!(segments(["200us", "1ns"]), 100);
    // The first message leaves at once. The second does, too, if the reader has just taken
    // the first. The others gather while the reader computes.
    assert!((2..=3).contains(&segments(["1ns", "2ms"])));
    let without = into_one_pipe(1, ["1ns", "2ms"], SchedulerCosts::default());
    assert_eq!(without.counts().segments, 0);
}
