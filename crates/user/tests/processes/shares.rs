//! Programs that compute without end get CPU time in proportion to tickets.

use std::thread::sleep;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use prorata_user::Mechanism;

use crate::add;
use crate::support::{self, MS, Program, World};

pub fn list(mechanism: Mechanism, trials: &mut Vec<Trial>) {
    add(trials, "three to one", mechanism, three_to_one);
    add(
        trials,
        "shares move when tickets change",
        mechanism,
        inflation,
    );
    add(trials, "a short quantum", mechanism, short_quantum);
    add(
        trials,
        "many clients, very unequal",
        mechanism,
        many_clients,
    );
    add(trials, "threads count as one client", mechanism, threads);
    add(trials, "three hogs on two CPUs", mechanism, two_cpus);
    add(
        trials,
        "four threads against one on two CPUs",
        mechanism,
        crowd,
    );
}

const QUANTUM_NS: u64 = 20 * MS;

/// What stride guarantees is one quantum; the turn in which we look, and the
/// few milliseconds by which a demoted process outlives its turn, may be
/// charged by half when we look.
const TOLERANCE_QUANTA: f64 = 2.0;

/// Asserts that clocks advanced by `used_ns` are as these tickets demand.
pub fn assert_shares(used_ns: &[u64], tickets: &[u32], quantum_ns: u64) {
    let total_ns: u64 = used_ns.iter().sum();
    let total_tickets: u32 = tickets.iter().sum();
    for (&used_ns, &tickets) in used_ns.iter().zip(tickets) {
        let due_ns = total_ns as f64 * f64::from(tickets) / f64::from(total_tickets);
        let error_quanta = (used_ns as f64 - due_ns) / quantum_ns as f64;
        assert!(
            error_quanta.abs() <= TOLERANCE_QUANTA,
            "with {tickets} of {total_tickets} tickets: {used_ns} of {total_ns} ns, \
             off by {error_quanta:.2} quanta"
        );
    }
}

/// What each of the programs uses during `time`.
fn used_during(time: Duration, programs: &[Program]) -> Vec<u64> {
    let before: Vec<u64> = programs.iter().map(Program::cpu_ns).collect();
    sleep(time);
    programs
        .iter()
        .zip(before)
        .map(|(program, before)| program.cpu_ns() - before)
        .collect()
}

/// Hogs with these tickets, managed and under way.
fn hogs(world: &World, tickets: &[u32]) -> Vec<Program> {
    let programs: Vec<Program> = tickets.iter().map(|_| Program::hog()).collect();
    for (index, (program, &tickets)) in programs.iter().zip(tickets).enumerate() {
        world.enter(&format!("hog {index}"), tickets, program);
    }
    programs
}

fn three_to_one(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let programs = hogs(&world, &[3, 1]);
    assert_shares(
        &used_during(Duration::from_secs(2), &programs),
        &[3, 1],
        QUANTUM_NS,
    );
    assert_eq!(world.engine().status().mechanism, mechanism);
}

fn inflation(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let programs = hogs(&world, &[1, 1]);
    assert_shares(
        &used_during(Duration::from_secs(1), &programs),
        &[1, 1],
        QUANTUM_NS,
    );
    {
        let mut dispatcher = world.dispatcher.lock().expect("nobody panicked");
        let first = dispatcher.ledger().find_client("hog 0").expect("it exists");
        support::issue(&mut dispatcher, first, 3);
    }
    world.engine().nudge();
    assert_shares(
        &used_during(Duration::from_secs(2), &programs),
        &[4, 1],
        QUANTUM_NS,
    );
}

/// Below what the kernel's tick can tell apart, shares still hold; the
/// tolerance is what a demoted process may run on until the tick.
fn short_quantum(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), 2 * MS);
    let programs = hogs(&world, &[2, 1]);
    assert_shares(
        &used_during(Duration::from_secs(2), &programs),
        &[2, 1],
        QUANTUM_NS,
    );
}

fn many_clients(mechanism: Mechanism) {
    let quantum_ns = 5 * MS;
    let world = World::new(Some(mechanism), quantum_ns);
    // Ten hold almost everything; what leaks to the other thirty while they
    // wait is more than their due, unless it is kept from them.
    let tickets: Vec<u32> = (0..40)
        .map(|index| if index < 10 { 1000 } else { 1 })
        .collect();
    let programs = hogs(&world, &tickets);
    sleep(Duration::from_secs(2));
    let used_ns = used_during(Duration::from_secs(3), &programs);
    let small_ns: u64 = used_ns[10..].iter().sum();
    let total_ns: u64 = used_ns.iter().sum();
    // Their due is 0.3 percent together; each may be ahead by a quantum and
    // by what it gets until that is noticed.
    assert!(
        small_ns <= total_ns * 3 / 1000 + 30 * 2 * quantum_ns,
        "{small_ns} of {total_ns}"
    );
    let (least, most) = (used_ns[..10].iter().min(), used_ns[..10].iter().max());
    let spread_ns = most.expect("ten") - least.expect("ten");
    assert!(spread_ns <= 4 * quantum_ns, "{used_ns:?}");
}

fn threads(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let programs = [Program::start(&["threads", "4"]), Program::hog()];
    // Not before all threads are there.
    support::wait_for_threads(programs[0].pid(), 5);
    world.enter("threads", 1, &programs[0]);
    world.enter("hog", 1, &programs[1]);
    assert_shares(
        &used_during(Duration::from_secs(2), &programs),
        &[1, 1],
        QUANTUM_NS,
    );
}

/// Two CPUs to share, or `None`, having said so, where there are no two.
pub fn two_usable_cpus() -> Option<[usize; 2]> {
    let usable = rustix::thread::sched_getaffinity(None).expect("we have an affinity");
    let mut cpus = (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| usable.is_set(cpu));
    let two = cpus.next().zip(cpus.next());
    if two.is_none() {
        support::cannot_run("there is only one CPU");
    }
    two.map(|(first, second)| [first, second])
}

fn two_cpus(mechanism: Mechanism) {
    let Some(cpus) = two_usable_cpus() else {
        return;
    };
    let world = World::with_cpus(Some(mechanism), QUANTUM_NS, &cpus.map(|cpu| cpu as u32));
    let programs: Vec<Program> = (0..3).map(|_| Program::start_on(&cpus, &["hog"])).collect();
    for (index, program) in programs.iter().enumerate() {
        world.enter(&format!("hog {index}"), 1, program);
    }
    let used_ns = used_during(Duration::from_secs(3), &programs);
    assert_shares(&used_ns, &[1, 1, 1], QUANTUM_NS);
}

/// The kernel shares CPUs out between threads; the engine does not.
fn crowd(mechanism: Mechanism) {
    let Some(cpus) = two_usable_cpus() else {
        return;
    };
    let mut world = World::with_cpus(Some(mechanism), QUANTUM_NS, &cpus.map(|cpu| cpu as u32));
    let crowd = Program::start_on(&cpus, &["threads", "4"]);
    let programs = [crowd, Program::start_on(&cpus, &["hog"])];
    support::wait_for_threads(programs[0].pid(), 5);
    world.enter("crowd", 1, &programs[0]);
    world.enter("hog", 1, &programs[1]);
    sleep(Duration::from_millis(200));
    // With two CPUs and equal tickets each is due one whole CPU. Left alone,
    // the crowd would use one and a half.
    let start = Instant::now();
    let used_ns = used_during(Duration::from_secs(2), &programs);
    let elapsed_ns = start.elapsed().as_nanos() as u64;
    assert!(
        used_ns[0] <= elapsed_ns + 2 * QUANTUM_NS,
        "{used_ns:?} in {elapsed_ns} ns"
    );
    let cpus_of = |program: &Program| support::cpus_of_threads(program.pid());
    assert!(
        cpus_of(&programs[0]).iter().all(|&count| count == 1),
        "the crowd is bound"
    );
    assert!(
        cpus_of(&programs[1]).iter().all(|&count| count == 1),
        "the hog is, elsewhere"
    );
    world.end_engine();
    assert!(programs.iter().flat_map(cpus_of).all(|count| count == 2));
}
