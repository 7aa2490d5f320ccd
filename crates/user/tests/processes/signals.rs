//! Losers take signals at once, and gain nothing by that.

use std::thread::sleep;
use std::time::Duration;

use libtest_mimic::Trial;
use prorata_user::Mechanism;

use crate::shares::{assert_shares, clocks_of, excuse, used_during};
use crate::support::witness::judge;
use crate::support::{self, MS, Program, World, wait_until};
use crate::{MechanismTests, add};

pub const TESTS: MechanismTests = &[
    ("a loser runs the handler of a signal at once", handled),
    ("a loser that handles a timer gains nothing", timers),
    ("a signal that is blocked wakes no loser", blocked),
    (
        "a process without its first thread gets no more than its share",
        leaderless,
    ),
];

pub fn list(mechanism: Mechanism, trials: &mut Vec<Trial>) {
    for (name, tickets) in [
        (
            "with 1 ticket to 10",
            Tickets {
                rival: 10,
                loser: 1,
            },
        ),
        (
            "with 1 ticket to 1,000",
            Tickets {
                rival: 1000,
                loser: 1,
            },
        ),
        ("without tickets", Tickets { rival: 1, loser: 0 }),
    ] {
        let name = format!("a loser {name} can be terminated at once");
        add(trials, &name, mechanism, move |mechanism| {
            terminated(mechanism, tickets);
        });
    }
}

#[derive(Clone, Copy)]
struct Tickets {
    rival: u32,
    loser: u32,
}

const QUANTUM_NS: u64 = 20 * MS;

/// The engine looks for signals every 50 ms. The rest is for the loser to get a CPU beside the
/// rival. What counts is the rival's CPU time, so that other load on the CPU does not matter.
const PROMPT_NS: u64 = 100 * MS;

/// Checks how long the rival runs until something `comes_about`.
fn check(rival: &Program, comes_about: impl FnOnce()) -> Result<(), String> {
    let before_ns = rival.cpu_ns();
    comes_about();
    let took_ns = rival.cpu_ns() - before_ns;
    match took_ns < PROMPT_NS {
        true => Ok(()),
        false => Err(format!("the rival ran for {took_ns} ns meanwhile")),
    }
}

fn terminated(mechanism: Mechanism, tickets: Tickets) {
    for _ in 0..5 {
        judge(excuse(QUANTUM_NS), || {
            let world = World::new(Some(mechanism), QUANTUM_NS);
            let [rival, loser] = [Program::hog(), Program::hog()];
            world.enter("rival", tickets.rival, &rival);
            world.enter("loser", tickets.loser, &loser);
            wait_until("it is held down", || support::is_held_down(loser.pid()));
            check(&rival, || {
                support::signal(loser.pid(), libc::SIGTERM);
                wait_until("it ends", || support::has_ended(loser.pid()));
            })
        });
    }
}

fn handled(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let mut loser = Program::ready(&["handler"]);
    let rival = Program::hog();
    world.enter("rival", 1000, &rival);
    world.enter("loser", 1, &loser);
    for _ in 0..3 {
        judge(excuse(QUANTUM_NS), || {
            wait_until("it is held down", || support::is_held_down(loser.pid()));
            check(&rival, || {
                support::signal(loser.pid(), libc::SIGTERM);
                assert_eq!(loser.hear(), "handled");
            })
        });
    }
}

/// Fifty signals a second would make a loser a winner, if all were answered at once. It has a
/// quantum of CPU time to answer them, and after that one part in a thousand.
fn timers(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let programs = [Program::start(&["timer", "20000"]), Program::hog()];
    // Without tickets it wins no turn, and so no new quantum to answer signals.
    world.enter_all(&[0, 1], &programs);
    sleep(Duration::from_secs(3));
    judge(excuse(QUANTUM_NS), || {
        let used_ns = used_during(Duration::from_secs(5), clocks_of(&programs));
        // What is left of the quantum by now, the part in a thousand, and an answer that lasts too
        // long.
        match used_ns[0] < 3 * QUANTUM_NS / 2 {
            true => Ok(()),
            false => Err(format!("{used_ns:?} ns")),
        }
    });
}

/// It waits until the process unblocks it, and that may be never.
fn blocked(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let shell = [
        "run",
        "env",
        "--block-signal=TERM",
        "sh",
        "-c",
        "while :; do :; done",
    ];
    let programs = [Program::start(&shell), Program::hog()];
    let blocks = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", programs[0].pid()));
        status.is_ok_and(|status| status.contains("SigBlk:\t0000000000004000"))
    };
    wait_until("it blocks SIGTERM", blocks);
    support::signal(programs[0].pid(), libc::SIGTERM);
    world.enter_all(&[1, 1000], &programs);
    sleep(Duration::from_millis(500));
    judge(excuse(QUANTUM_NS), || {
        let used_ns = used_during(Duration::from_secs(2), clocks_of(&programs));
        match used_ns[0] < 2 * QUANTUM_NS {
            true => Ok(()),
            false => Err(format!("{used_ns:?} ns")),
        }
    });
}

/// The state and the flags of the process are those of its first thread.
fn leaderless(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let mut program = Program::start(&["leaderless"]);
    let child = program.hear().parse().expect("a pid");
    wait_until("its first thread ends", || {
        support::has_ended(program.pid())
    });
    let rival = Program::hog();
    world.enter("leaderless", 1, &program);
    world.enter("rival", 3, &rival);
    let clocks_ns = || vec![program.cpu_ns() + support::cpu_ns(child), rival.cpu_ns()];
    sleep(Duration::from_millis(500));
    assert_shares(Duration::from_secs(2), clocks_ns, &[1, 3], QUANTUM_NS);
}
