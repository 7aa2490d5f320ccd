//! A client's base tickets follow the nice values of its processes (1999, 3.4).

use std::io::ErrorKind;
use std::time::Duration;

use prorata_core::hybrid::{Mechanisms, Nice, NiceLaw};
use prorata_core::ids::ClientId;
use prorata_user::Mechanism;
use rustix::process::{Pid, setpriority_process};

use crate::MechanismTests;
use crate::shares::{assert_shares, clocks_of};
use crate::support::{MS, Program, World, children_of, wait_until};

pub const TESTS: MechanismTests = &[
    (
        "a nice client gets as much less as under Linux",
        nice_client,
    ),
    ("a client follows renice up and down", renice),
    (
        "a process that sleeps does not count by its nice value",
        sleeping_parent,
    ),
    (
        "without the mechanism nice values do nothing",
        without_mechanism,
    ),
];

const QUANTUM_NS: u64 = 20 * MS;

/// The default funding of a user.
const FUNDING: u32 = 1_000;

fn world(mechanism: Mechanism, nice: bool) -> World {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let mechanisms = Mechanisms {
        nice,
        ..Mechanisms::NONE
    };
    world.lock().set_mechanisms_beside(mechanisms);
    world
}

/// A program that computes, and whose nice value is that with which every helper begins.
fn computing() -> Program {
    Program::ready(&["handler"])
}

/// Whether this user may do that.
fn set_nice(pid: u32, nice: i32) -> bool {
    match setpriority_process(Pid::from_raw(pid.cast_signed()), nice) {
        Ok(()) => true,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
            false
        }
    }
}

fn weight(nice: i8) -> u32 {
    NiceLaw::Linux.factor(Nice::new(nice).expect("it is in range"))
}

/// Waits until a client is due this part of all that both clients receive.
fn wait_for_share(world: &World, client: ClientId, weight: u32, other: u32) {
    let due = f64::from(weight) / f64::from(weight + other);
    wait_until("its share follows its nice value", || {
        world.engine().nudge();
        (world.usage(client).share / due - 1.0).abs() < 0.001
    });
}

fn nice_client(mechanism: Mechanism) {
    let world = world(mechanism, true);
    let programs = [computing(), computing()];
    assert!(set_nice(programs[0].pid(), 5));
    let clients = world.enter_all(&[FUNDING; 2], &programs);
    wait_for_share(&world, clients[0], weight(5), weight(0));
    let time = Duration::from_secs(2);
    let tickets = [weight(5), weight(0)];
    assert_shares(time, clocks_of(&programs), &tickets, QUANTUM_NS);
}

fn renice(mechanism: Mechanism) {
    let world = world(mechanism, true);
    let programs = [computing(), computing()];
    let clients = world.enter_all(&[FUNDING; 2], &programs);
    wait_for_share(&world, clients[0], weight(0), weight(0));
    assert!(set_nice(programs[0].pid(), 19));
    wait_for_share(&world, clients[0], weight(19), weight(0));
    let time = Duration::from_secs(3);
    let tickets = [weight(19), weight(0)];
    assert_shares(time, clocks_of(&programs), &tickets, QUANTUM_NS);
    if set_nice(programs[0].pid(), -5) {
        wait_for_share(&world, clients[0], weight(-5), weight(0));
        let tickets = [weight(-5), weight(0)];
        let time = Duration::from_secs(2);
        assert_shares(time, clocks_of(&programs), &tickets, QUANTUM_NS);
        assert!(set_nice(programs[0].pid(), 0));
        wait_for_share(&world, clients[0], weight(0), weight(0));
    }
    let ledger = world.lock();
    let values = [0, 1].map(|n: usize| ledger.ledger().value(clients[n]));
    assert_eq!(values[0], values[1], "the ledger knows no nice values");
}

fn sleeping_parent(mechanism: Mechanism) {
    let world = world(mechanism, true);
    let parent = Program::ready(&["waiter", "handler"]);
    assert!(set_nice(children_of(parent.pid())[0], 10));
    let client = world.enter("shell", FUNDING, &parent);
    let other = Program::hog();
    world.enter("other", FUNDING, &other);
    wait_for_share(&world, client, weight(10), weight(0));
}

fn without_mechanism(mechanism: Mechanism) {
    let world = world(mechanism, false);
    let programs = [computing(), computing()];
    assert!(set_nice(programs[0].pid(), 19));
    let clients = world.enter_all(&[FUNDING; 2], &programs);
    wait_for_share(&world, clients[0], 1, 1);
    let time = Duration::from_secs(1);
    assert_shares(time, clocks_of(&programs), &[1, 1], QUANTUM_NS);
    // As soon as it is in force they count.
    world.lock().set_mechanisms_beside(Mechanisms::ALL);
    wait_for_share(&world, clients[0], weight(19), weight(0));
    world.lock().set_mechanisms_beside(Mechanisms::NONE);
    wait_for_share(&world, clients[0], 1, 1);
}
