//! A client of many processes, most of which sleep.

use std::time::Duration;

use prorata_user::Mechanism;

use crate::MechanismTests;
use crate::shares::assert_shares;
use crate::support::{self, MS, Program, World, wait_until};

pub const TESTS: MechanismTests = &[
    ("one that computes among many sleepers has its share", share),
    ("a sleeper among many that wakes is held down", woken),
    ("a slumbering child that ends is charged once", charged_once),
    ("the last of many sleepers takes the client along", ended),
];

const QUANTUM_NS: u64 = 20 * MS;

/// More than may be looked after in each quantum.
const SLEEPERS: usize = 150;

/// A shell with sleepers that turn into hogs when their user says so. All end with the shell.
fn crowd() -> Program {
    let script = format!(
        "hog() {{ while [ -d /proc/$$ ]; do :; done; }}; \
         for i in $(seq {SLEEPERS}); do (trap hog USR1; \
         while [ -d /proc/$$ ]; do sleep 1000 & wait; done) & done; read x"
    );
    let shell = Program::start(&["run", "sh", "-c", &script]);
    wait_until("all sleepers", || {
        support::children_of(shell.pid()).len() == SLEEPERS
    });
    shell
}

/// Until they slumber.
fn rest() {
    std::thread::sleep(Duration::from_millis(1_500));
}

fn share(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let (shell, rival) = (crowd(), Program::hog());
    let hog = Program::hog();
    let client = world.enter("crowd", 1, &shell);
    world
        .engine()
        .manage(client, hog.id())
        .expect("it can be managed");
    let of_rival = world.enter("rival", 1, &rival);
    rest();
    // Stops and their ends take the sleepers some time, too.
    let clocks_ns = || {
        [client, of_rival]
            .map(|id| world.usage(id).received_ns)
            .to_vec()
    };
    assert_shares(Duration::from_secs(4), clocks_ns, &[1, 1], QUANTUM_NS);
}

/// Children that computed and sleep, among many that sleep. Their parent waits for them.
const BURNERS: &str = "for i in $(seq 150); do sleep 1000 & done; \
    burn() { used_ns=0; while [ $used_ns -lt 60000000 ]; do \
    read -r used_ns rest < /proc/self/schedstat; done; exec sleep 1000; }; \
    for i in $(seq 10); do burn & done; wait; exec sleep 1000";

fn charged_once(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let shell = Program::start(&["run", "sh", "-c", BURNERS]);
    let client = world.enter("burners", 1, &shell);
    let children = || support::children_of(shell.pid());
    wait_until("all children sleep", || {
        children().len() == 160
            && children()
                .iter()
                .all(|pid| support::program_of(*pid) == "sleep")
    });
    let rival = Program::hog();
    world.enter("rival", 1, &rival);
    rest();
    let burnt_ns: u64 = children().iter().map(|pid| support::cpu_ns(*pid)).sum();
    let before_ns = world.usage(client).received_ns;
    assert!(burnt_ns > 500 * MS, "{burnt_ns}");
    // One after the other: where many end at once, time of some may still be charged again.
    for pid in children() {
        if support::cpu_ns(pid) > 20 * MS {
            support::signal(pid, libc::SIGKILL);
            wait_until("the shell has waited for it", || !children().contains(&pid));
        }
    }
    // Time that is charged late is charged by then.
    std::thread::sleep(Duration::from_millis(500));
    world.wait_for_decisions(4);
    let after_ns = world.usage(client).received_ns - before_ns;
    assert!(after_ns < burnt_ns / 4, "{after_ns} of {burnt_ns} again");
}

fn woken(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let (shell, rival) = (crowd(), Program::hog());
    world.enter("crowd", 1, &shell);
    world.enter("rival", 1000, &rival);
    rest();
    let sleepers = support::children_of(shell.pid());
    let woken = [sleepers[0], sleepers[SLEEPERS / 2], sleepers[SLEEPERS - 1]];
    for pid in woken {
        support::signal(pid, libc::SIGUSR1);
    }
    wait_until("all that woke are held down", || {
        woken.iter().all(|pid| support::is_held_down(*pid))
    });
}

fn ended(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let rival = Program::hog();
    let shell = crowd();
    let client = world.enter("crowd", 1, &shell);
    world.enter("rival", 1, &rival);
    rest();
    drop(shell);
    wait_until("the client's exit", || {
        world.engine().take_exited() == [client]
    });
}
