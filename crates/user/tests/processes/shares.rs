//! Programs that compute without end get CPU time in proportion to tickets.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use prorata_core::ids::ClientId;
use prorata_core::policy::Stride;
use prorata_user::Mechanism;

use crate::MechanismTests;
use crate::support::witness::judge;
use crate::support::{self, MS, Program, Watched, World, wait_until};

pub const TESTS: MechanismTests = &[
    ("three tickets get three times as much as one", three_to_one),
    ("shares move when tickets change", inflation),
    (
        "shares hold with a quantum below the kernel's tick",
        short_quantum,
    ),
    ("turns last for a client's own quantum", own_quanta),
    (
        "thirty small clients do not leak into ten large ones",
        many_clients,
    ),
    ("four threads count as one client", threads),
    ("three hogs share two CPUs equally", two_cpus),
    ("four threads get no more of two CPUs than one", crowd),
    ("clients of one of two CPUs share it 9:1", bound),
    (
        "a client beside bound ones has the other CPU to itself",
        beside_bound,
    ),
    (
        "clients without tickets share a CPU that would idle",
        without_tickets,
    ),
];

const QUANTUM_NS: u64 = 20 * MS;

/// Stride guarantees one quantum. At the moment of a look, the present turn, and the few
/// milliseconds by which a demoted process outlives its turn, may be charged by half.
const TOLERANCE_QUANTA: f64 = 2.0;

/// The delay that excuses a failure by quanta: half a quantum.
pub fn excuse(quantum_ns: u64) -> Duration {
    Duration::from_nanos(quantum_ns / 2)
}

/// Asserts that programs use the CPU as their tickets demand while `time`
/// passes, by their CPU clocks.
pub fn assert_shares(
    time: Duration,
    clocks_ns: impl Fn() -> Vec<u64>,
    tickets: &[u32],
    quantum_ns: u64,
) {
    judge(excuse(quantum_ns), || {
        check_shares(&used_during(time, &clocks_ns), tickets, quantum_ns)
    });
}

fn check_shares(used_ns: &[u64], tickets: &[u32], quantum_ns: u64) -> Result<(), String> {
    check_within(TOLERANCE_QUANTA, used_ns, tickets, quantum_ns)
}

/// Whether each client received what it is due, within so many quanta.
pub fn check_within(
    tolerance_quanta: f64,
    used_ns: &[u64],
    tickets: &[u32],
    quantum_ns: u64,
) -> Result<(), String> {
    let total_ns: u64 = used_ns.iter().sum();
    let total_tickets: u32 = tickets.iter().sum();
    for (&used_ns, &tickets) in used_ns.iter().zip(tickets) {
        let due_ns = total_ns as f64 * f64::from(tickets) / f64::from(total_tickets);
        let error_quanta = (used_ns as f64 - due_ns) / quantum_ns as f64;
        if error_quanta.abs() > tolerance_quanta {
            return Err(format!(
                "with {tickets} of {total_tickets} tickets: {used_ns} of {total_ns} ns, \
                 off by {error_quanta:.2} quanta"
            ));
        }
    }
    Ok(())
}

/// By how much each of these clocks advances during `time`.
pub fn used_during(time: Duration, clocks_ns: impl Fn() -> Vec<u64>) -> Vec<u64> {
    let before = support::at_once(&clocks_ns);
    sleep(time);
    let after = support::at_once(&clocks_ns);
    after
        .iter()
        .zip(before)
        .map(|(after, before)| after - before)
        .collect()
}

/// The programs' clocks.
pub fn clocks_of(programs: &[Program]) -> impl Fn() -> Vec<u64> {
    || programs.iter().map(Program::cpu_ns).collect()
}

fn three_to_one(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let programs = world.hogs(&[3, 1]);
    let time = Duration::from_secs(2);
    assert_shares(time, clocks_of(&programs), &[3, 1], QUANTUM_NS);
    let status = world.engine().status();
    assert_eq!(status.mechanism, mechanism);
    let stops = matches!(mechanism, Mechanism::Stop | Mechanism::GroupFreeze);
    assert_eq!(status.missing_right.is_some(), stops);
}

fn inflation(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let programs = world.hogs(&[1, 1]);
    let time = Duration::from_secs(1);
    assert_shares(time, clocks_of(&programs), &[1, 1], QUANTUM_NS);
    {
        let mut dispatcher = world.lock();
        let first = dispatcher.ledger().find_client("program 0");
        support::issue(&mut dispatcher, first.expect("it exists"), 3);
    }
    world.engine().nudge();
    assert_shares(time * 2, clocks_of(&programs), &[4, 1], QUANTUM_NS);
}

/// The tolerance covers that a demoted process may run on until the kernel's tick.
fn short_quantum(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), 2 * MS);
    let programs = world.hogs(&[2, 1]);
    let time = Duration::from_secs(2);
    assert_shares(time, clocks_of(&programs), &[2, 1], QUANTUM_NS);
}

/// Each turn begins with a pick of the policy, however often the engine looks.
fn own_quanta(mechanism: Mechanism) {
    const LONG_NS: u64 = 5 * QUANTUM_NS;
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let picks = Arc::new(AtomicU64::new(0));
    let counted = picks.clone();
    world.set_policy(Watched {
        stride: Stride::new(),
        before_pick: move || {
            counted.fetch_add(1, Ordering::Relaxed);
        },
    });
    let programs = [Program::hog(), Program::hog()];
    let clients = world.enter_all(&[1, 1], &programs);
    let set = |quantum_ns| {
        for &client in &clients {
            world.engine().set_client_quantum(client, quantum_ns);
        }
    };
    let turns_and_long_ones = || {
        let (start, before) = (Instant::now(), picks.load(Ordering::Relaxed));
        sleep(Duration::from_secs(2));
        let turns = picks.load(Ordering::Relaxed) - before;
        (turns, start.elapsed().as_nanos() as u64 / LONG_NS)
    };
    set(Some(LONG_NS));
    let (turns, most) = turns_and_long_ones();
    assert!(turns <= most + 4, "{turns} turns in the time of {most}");
    let time = Duration::from_secs(2);
    assert_shares(time, clocks_of(&programs), &[1, 1], LONG_NS);
    set(None);
    judge(excuse(QUANTUM_NS), || {
        let (turns, long_ones) = turns_and_long_ones();
        match turns > 2 * long_ones {
            true => Ok(()),
            false => Err(format!(
                "{turns} turns in the time of {long_ones} long ones"
            )),
        }
    });
}

fn many_clients(mechanism: Mechanism) {
    let quantum_ns = 5 * MS;
    let world = World::new(Some(mechanism), quantum_ns);
    // Ten hold almost everything. While the other thirty wait in `SCHED_IDLE`, they receive
    // more than their due, unless the engine stops them.
    let tickets: Vec<u32> = (0..40)
        .map(|index| if index < 10 { 1000 } else { 1 })
        .collect();
    let programs = world.hogs(&tickets);
    sleep(Duration::from_secs(2));
    judge(excuse(quantum_ns), || {
        let used_ns = used_during(Duration::from_secs(3), clocks_of(&programs));
        let small_ns: u64 = used_ns[10..].iter().sum();
        let total_ns: u64 = used_ns.iter().sum();
        let (least, most) = (used_ns[..10].iter().min(), used_ns[..10].iter().max());
        let spread_ns = most.expect("ten") - least.expect("ten");
        // Their due is 0.3 percent together. Each may be ahead by a quantum, and by what it
        // receives until the engine notices.
        if small_ns <= total_ns * 3 / 1000 + 30 * 2 * quantum_ns && spread_ns <= 4 * quantum_ns {
            Ok(())
        } else {
            Err(format!("{small_ns} of {total_ns} ns: {used_ns:?}"))
        }
    });
}

fn threads(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let programs = [Program::start(&["threads", "4"]), Program::hog()];
    // Not before all threads are there.
    support::wait_for_threads(programs[0].pid(), 5);
    world.enter_all(&[1, 1], &programs);
    let time = Duration::from_secs(2);
    assert_shares(time, clocks_of(&programs), &[1, 1], QUANTUM_NS);
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
    world.enter_all(&[1, 1, 1], &programs);
    judge(excuse(QUANTUM_NS), || three_on_two(&programs));
}

/// Other load may leave less of one CPU than of the other. A program that the kernel puts there
/// receives less than its due, however often it wins; then it has to win always.
fn three_on_two(programs: &[Program]) -> Result<(), String> {
    const LOOKS: u32 = 600;
    let clocks_ns = clocks_of(programs);
    let (start, before) = (Instant::now(), support::at_once(&clocks_ns));
    let (mut used_ns, mut held_back) = (before.clone(), 0);
    for _ in 0..LOOKS {
        sleep(Duration::from_millis(5));
        let now = support::at_once(&clocks_ns);
        used_ns = now
            .iter()
            .zip(&before)
            .map(|(now, then)| now - then)
            .collect();
        let (least, most) = (used_ns.iter().min(), used_ns.iter().max());
        let is_behind = most > least.map(|ns| ns + 2 * QUANTUM_NS).as_ref();
        let last = used_ns
            .iter()
            .position(|ns| Some(ns) == least)
            .expect("three");
        held_back += u32::from(is_behind && support::is_held_down(programs[last].pid()));
    }
    let available_ns = 2 * start.elapsed().as_nanos() as u64;
    let is_all = used_ns.iter().sum::<u64>() >= available_ns / 20 * 19;
    let verdict = check_shares(&used_ns, &[1, 1, 1], QUANTUM_NS);
    if is_all || held_back > LOOKS / 10 {
        verdict.map_err(|fault| format!("{fault}; the last was held back {held_back} times"))
    } else {
        Ok(())
    }
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
    world.enter_all(&[1, 1], &programs);
    sleep(Duration::from_millis(200));
    // With two CPUs and equal tickets each client is due one whole CPU. Without the engine,
    // the four threads would use one and a half.
    judge(excuse(QUANTUM_NS), || {
        let start = Instant::now();
        let used_ns = used_during(Duration::from_secs(2), clocks_of(&programs));
        let elapsed_ns = start.elapsed().as_nanos() as u64;
        if used_ns[0] <= elapsed_ns + 2 * QUANTUM_NS {
            Ok(())
        } else {
            Err(format!("{used_ns:?} in {elapsed_ns} ns"))
        }
    });
    let cpus_of = |program: &Program| support::cpus_of_threads(program.pid());
    let is_bound = |program: &Program| cpus_of(program).iter().all(|&count| count == 1);
    wait_until("the crowd is bound, and the hog elsewhere", || {
        programs.iter().all(is_bound)
    });
    world.end_engine();
    assert!(programs.iter().flat_map(cpus_of).all(|count| count == 2));
}

/// Two hogs with 900 and 100 tickets on the second CPU.
fn bound_hogs(cpus: [usize; 2]) -> [Program; 2] {
    [(); 2].map(|()| Program::start_on(&cpus[1..], &["hog"]))
}

fn bound(mechanism: Mechanism) {
    let Some(cpus) = two_usable_cpus() else {
        return;
    };
    let world = World::with_cpus(Some(mechanism), QUANTUM_NS, &cpus.map(|cpu| cpu as u32));
    let programs = bound_hogs(cpus);
    let clients = world.enter_all(&[900, 100], &programs);
    let time = Duration::from_secs(2);
    assert_shares(time, clocks_of(&programs), &[900, 100], QUANTUM_NS);
    assert_specified(&world, &clients, &[0.45, 0.05]);
}

fn beside_bound(mechanism: Mechanism) {
    let Some(cpus) = two_usable_cpus() else {
        return;
    };
    let world = World::with_cpus(Some(mechanism), QUANTUM_NS, &cpus.map(|cpu| cpu as u32));
    let [rich, poor] = bound_hogs(cpus);
    let programs = [rich, poor, Program::start_on(&cpus, &["hog"])];
    let clients = world.enter_all(&[900, 100, 1], &programs);
    sleep(Duration::from_millis(200));
    judge(excuse(QUANTUM_NS), || {
        const LOOKS: u32 = 200;
        let before = support::at_once(clocks_of(&programs));
        let mut held_back = 0;
        for _ in 0..LOOKS {
            sleep(Duration::from_millis(10));
            held_back += u32::from(support::is_held_down(programs[2].pid()));
        }
        let after = support::at_once(clocks_of(&programs));
        let used_ns: Vec<u64> = after
            .iter()
            .zip(before)
            .map(|(now, then)| now - then)
            .collect();
        // With one ticket it is held back as soon as a bound one may win its CPU, too.
        match held_back {
            0 => check_shares(&used_ns[..2], &[900, 100], QUANTUM_NS),
            _ => Err(format!(
                "held back in {held_back} of {LOOKS} looks: {used_ns:?} ns"
            )),
        }
    });
    assert_specified(&world, &clients, &[0.45, 0.05, 0.5]);
}

/// Asserts which parts of the machine clients should get. Other load leaves less for all of them.
fn assert_specified(world: &World, clients: &[ClientId], shares: &[f64]) {
    let specified: Vec<f64> = {
        let dispatcher = world.lock();
        let clients = clients.iter();
        clients
            .map(|&client| dispatcher.usage(client).share)
            .collect()
    };
    let left = specified.iter().sum::<f64>() / shares.iter().sum::<f64>();
    assert!(left < 1.0 + 1e-6, "{specified:?} for {shares:?}");
    for (specified, share) in specified.iter().zip(shares) {
        let specified = specified / left;
        assert!((specified - share).abs() < 1e-6, "{specified} for {share}");
    }
}

/// Beside a client that sleeps for most of the time, and has all tickets.
fn without_tickets(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let sleeper = Program::start(&["bursts", "5000", "95000"]);
    let programs = [sleeper, Program::hog(), Program::hog()];
    world.enter_all(&[1, 0, 0], &programs);
    sleep(Duration::from_millis(500));
    judge(excuse(QUANTUM_NS), || {
        let used_ns = used_during(Duration::from_secs(3), clocks_of(&programs));
        // Either receives nearly half of the time. A quarter proves that neither has to wait.
        let least_ns = used_ns.iter().sum::<u64>() / 4;
        match used_ns[1] > least_ns && used_ns[2] > least_ns {
            true => Ok(()),
            false => Err(format!("{used_ns:?} ns")),
        }
    });
}
