//! Programs that compute without end get CPU time in proportion to tickets.

use std::thread::sleep;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use prorata_core::ids::ClientId;
use prorata_user::{ClientActivity, Mechanism};

use crate::add;
use crate::support::witness::judge;
use crate::support::{self, MS, Program, World, wait_until};

pub fn list(mechanism: Mechanism, trials: &mut Vec<Trial>) {
    add(trials, "three to one", mechanism, three_to_one);
    add(
        trials,
        "shares move when tickets change",
        mechanism,
        inflation,
    );
    add(trials, "a short quantum", mechanism, short_quantum);
    add(trials, "quanta of their own", mechanism, own_quanta);
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

/// What may be said against a judgement by so many quanta: that somebody had to
/// wait for half of one.
pub fn excuse(quantum_ns: u64) -> Duration {
    Duration::from_nanos(quantum_ns / 2)
}

/// Asserts that programs use the CPU as their tickets demand while `time`
/// passes. Not what passes counts, but what their clocks say that they used.
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
    let total_ns: u64 = used_ns.iter().sum();
    let total_tickets: u32 = tickets.iter().sum();
    for (&used_ns, &tickets) in used_ns.iter().zip(tickets) {
        let due_ns = total_ns as f64 * f64::from(tickets) / f64::from(total_tickets);
        let error_quanta = (used_ns as f64 - due_ns) / quantum_ns as f64;
        if error_quanta.abs() > TOLERANCE_QUANTA {
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
    let time = Duration::from_secs(2);
    assert_shares(time, clocks_of(&programs), &[3, 1], QUANTUM_NS);
    assert_eq!(world.engine().status().mechanism, mechanism);
}

fn inflation(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let programs = hogs(&world, &[1, 1]);
    let time = Duration::from_secs(1);
    assert_shares(time, clocks_of(&programs), &[1, 1], QUANTUM_NS);
    {
        let mut dispatcher = world.dispatcher.lock().expect("nobody panicked");
        let first = dispatcher.ledger().find_client("hog 0").expect("it exists");
        support::issue(&mut dispatcher, first, 3);
    }
    world.engine().nudge();
    assert_shares(time * 2, clocks_of(&programs), &[4, 1], QUANTUM_NS);
}

/// Below what the kernel's tick can tell apart, shares still hold; the
/// tolerance is what a demoted process may run on until the tick.
fn short_quantum(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), 2 * MS);
    let programs = hogs(&world, &[2, 1]);
    let time = Duration::from_secs(2);
    assert_shares(time, clocks_of(&programs), &[2, 1], QUANTUM_NS);
}

/// Turns last for a client's own quantum, however often the engine looks; shares stay
/// what they are.
fn own_quanta(mechanism: Mechanism) {
    const LONG_NS: u64 = 5 * QUANTUM_NS;
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let programs = [Program::hog(), Program::hog()];
    let clients = [0, 1].map(|index| world.enter(&format!("hog {index}"), 1, &programs[index]));
    let set = |quantum_ns| {
        for client in clients {
            world.engine().set_client_quantum(client, quantum_ns);
        }
    };
    set(Some(LONG_NS));
    let time = Duration::from_secs(2);
    let (turns, time_ns) = turns_during(&world, clients[0], time);
    let most = time_ns / (2 * LONG_NS) + 2;
    assert!(turns <= most, "{turns} turns, at most {most} are as long");
    assert_shares(time, clocks_of(&programs), &[1, 1], LONG_NS);
    set(None);
    judge(excuse(QUANTUM_NS), || {
        let (turns, time_ns) = turns_during(&world, clients[0], time);
        match turns > time_ns / LONG_NS {
            true => Ok(()),
            false => Err(format!("{turns} turns in {time_ns} ns")),
        }
    });
}

/// How often a client was seen to win while some time passed, and how much did.
fn turns_during(world: &World, client: ClientId, time: Duration) -> (u64, u64) {
    let start = Instant::now();
    let (mut turns, mut ran) = (0, false);
    while start.elapsed() < time {
        sleep(Duration::from_millis(2));
        let runs = world.engine().state(client) == Some(ClientActivity::Running);
        turns += u64::from(runs && !ran);
        ran = runs;
    }
    (turns, start.elapsed().as_nanos() as u64)
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
    judge(excuse(quantum_ns), || {
        let used_ns = used_during(Duration::from_secs(3), clocks_of(&programs));
        let small_ns: u64 = used_ns[10..].iter().sum();
        let total_ns: u64 = used_ns.iter().sum();
        let (least, most) = (used_ns[..10].iter().min(), used_ns[..10].iter().max());
        let spread_ns = most.expect("ten") - least.expect("ten");
        // Their due is 0.3 percent together; each may be ahead by a quantum and
        // by what it gets until that is noticed.
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
    world.enter("threads", 1, &programs[0]);
    world.enter("hog", 1, &programs[1]);
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
    for (index, program) in programs.iter().enumerate() {
        world.enter(&format!("hog {index}"), 1, program);
    }
    judge(excuse(QUANTUM_NS), || three_on_two(&programs));
}

/// Other load may leave less of one CPU than of the other, and whoever the
/// kernel puts there gets less than his due, however often he wins. Then he has
/// to win always.
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
    world.enter("crowd", 1, &programs[0]);
    world.enter("hog", 1, &programs[1]);
    sleep(Duration::from_millis(200));
    // With two CPUs and equal tickets each is due one whole CPU. Left alone,
    // the crowd would use one and a half.
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
