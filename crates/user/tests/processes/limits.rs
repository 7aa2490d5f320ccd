//! Clients with limited CPU time get no more than their limits, also of CPUs that would idle.

use std::thread::sleep;
use std::time::{Duration, Instant};

use prorata_core::ids::ClientId;
use prorata_user::{ClientActivity, Mechanism};

use crate::MechanismTests;
use crate::shares::{clocks_of, excuse};
use crate::support::witness::judge;
use crate::support::{self, MS, Program, World, wait_until};

pub const TESTS: MechanismTests = &[
    ("a limited hog alone gets its limit", alone),
    ("others get what a limited client may not use", beside),
    (
        "a paused client ends by a signal, and runs once its limit ends",
        pause,
    ),
];

const QUANTUM_NS: u64 = 20 * MS;

/// CPU time that is still charged to a client when it is stopped: a millisecond of a turn that
/// cannot be shorter, and what it ran until its stop.
const LATE_NS: u64 = 10 * MS;

fn limit(world: &World, client: ClientId, percent: Option<u32>) {
    support::limit(&mut world.lock(), client, percent);
    world.engine().nudge();
}

/// What programs used in a second, and how long that was.
fn used_in_a_second(programs: &[Program]) -> (Vec<u64>, u64) {
    let clocks_ns = clocks_of(programs);
    let before = support::at_once(&clocks_ns);
    let begun = Instant::now();
    sleep(Duration::from_secs(1));
    let after = support::at_once(&clocks_ns);
    let elapsed_ns = begun.elapsed().as_nanos() as u64;
    let used = after
        .iter()
        .zip(before)
        .map(|(after, before)| after - before);
    (used.collect(), elapsed_ns)
}

/// At most the limit and a full allowance. At least something: other programs may take the CPU
/// while the client is allowed to run.
fn check_limit(used_ns: u64, percent: u64, elapsed_ns: u64) -> Result<(), String> {
    let limit_ns = elapsed_ns * percent / 100;
    let most_ns = limit_ns + MS * percent + LATE_NS;
    match (1..=most_ns).contains(&used_ns) {
        true => Ok(()),
        false => Err(format!("{used_ns} of {limit_ns} ns, in {elapsed_ns} ns")),
    }
}

fn alone(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let programs = [Program::hog()];
    let client = world.enter("limited", 1, &programs[0]);
    limit(&world, client, Some(30));
    judge(excuse(QUANTUM_NS), || {
        let (used_ns, elapsed_ns) = used_in_a_second(&programs);
        check_limit(used_ns[0], 30, elapsed_ns)
    });
}

fn beside(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let programs = world.hogs(&[300, 100]);
    let client = world.lock().ledger().find_client("program 0");
    limit(&world, client.expect("it exists"), Some(20));
    judge(excuse(QUANTUM_NS), || {
        let (used_ns, elapsed_ns) = used_in_a_second(&programs);
        check_limit(used_ns[0], 20, elapsed_ns)?;
        // By the tickets alone it would be three quarters. Of what other programs leave, it is
        // due a fifth, within two quanta and a full allowance.
        let due_ns = (used_ns[0] + used_ns[1]) / 5;
        match used_ns[0].abs_diff(due_ns) <= 3 * QUANTUM_NS {
            true => Ok(()),
            false => Err(format!("{used_ns:?}")),
        }
    });
}

fn pause(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let hog = Program::hog();
    let client = world.enter("limited", 1, &hog);
    let engine = world.engine();
    let pauses = || engine.state(client) == Some(ClientActivity::Limited);
    // A turn of a millisecond is worth ten periods, so that it pauses nearly always.
    support::limit_thousandths(&mut world.lock(), client, Some(1));
    engine.nudge();
    wait_until("it pauses", || pauses() && !support::is_normal(hog.pid()));
    limit(&world, client, None);
    let is_free = || engine.state(client) == Some(ClientActivity::Running);
    wait_until("it runs", || is_free() && support::is_normal(hog.pid()));
    support::limit_thousandths(&mut world.lock(), client, Some(1));
    engine.nudge();
    wait_until("it pauses again", pauses);
    support::signal(hog.pid(), libc::SIGTERM);
    wait_until("it ends", || support::has_ended(hog.pid()));
}
