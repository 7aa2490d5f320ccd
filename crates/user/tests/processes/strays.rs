//! Clients that give way: processes leave them for any client that they are named for.

use std::time::Duration;

use prorata_core::ids::ClientId;
use prorata_core::rng::{Rng, SeedableRng, Xoshiro256PlusPlus};
use prorata_user::{Mechanism, ProcessId, Stray, procfs};

use crate::MechanismTests;
use crate::shares::excuse;
use crate::support::witness::judge;
use crate::support::{self, MS, Program, World, wait_until};

pub const TESTS: MechanismTests = &[
    (
        "a stray moves to the client that it is named for, and its descendants with it",
        moved,
    ),
    (
        "time is charged once to the clients before and after a move",
        charged_once,
    ),
    ("random moves leave no process held down", random_moves),
    (
        "what a child outside of all clients used is not charged to its parent's client",
        outsiders,
    ),
    (
        "what is another client's, or would be stopped or frozen, is no stray",
        no_strays,
    ),
    (
        "what nobody named makes way where it keeps SCHED_IDLE from working",
        makes_way,
    ),
];

const QUANTUM_NS: u64 = 20 * MS;

/// A shell with three hogs in the background.
const FAMILY: &str = "hog() { while [ -d /proc/$$ ]; do :; done; }; \
    for i in 1 2 3; do hog & done; read x";

fn family() -> (Program, Vec<ProcessId>) {
    let shell = Program::start(&["run", "sh", "-c", FAMILY]);
    wait_until("three children", || {
        support::children_of(shell.pid()).len() == 3
    });
    let children = support::children_of(shell.pid()).into_iter();
    let mut family = vec![shell.id()];
    family.extend(children.map(support::id_of));
    (shell, family)
}

/// Whether losers are held down without being stopped or frozen.
fn takes_strays(mechanism: Mechanism) -> bool {
    matches!(mechanism, Mechanism::Idle | Mechanism::GroupIdle)
}

fn as_strays(processes: &[ProcessId]) -> Vec<Stray> {
    let stray = |process: &ProcessId| Stray {
        process: *process,
        user: procfs::real_uid(process.pid).unwrap_or(0),
    };
    processes.iter().map(stray).collect()
}

fn take_in(world: &World, rest: ClientId, strays: &[ProcessId]) -> Vec<bool> {
    world
        .engine()
        .take_in(rest, &as_strays(strays))
        .expect("the engine works")
}

fn owners(world: &World, processes: &[ProcessId]) -> Vec<Option<ClientId>> {
    let pids: Vec<u32> = processes.iter().map(|process| process.pid).collect();
    world.engine().find_all(&pids)
}

fn moved(mechanism: Mechanism) {
    if !takes_strays(mechanism) {
        return;
    }
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let rival = Program::hog();
    world.enter("rival", 1000, &rival);
    let (shell, family) = family();
    let [rest, own] = ["rest", "own"].map(|name| world.client(name, 1));
    assert_eq!(take_in(&world, rest, &family), [true; 4]);
    assert_eq!(owners(&world, &family), [Some(rest); 4]);
    wait_until("the family is held down", || {
        family[1..].iter().all(|hog| support::is_held_down(hog.pid))
    });
    // A child first, by itself.
    world.engine().manage(own, family[3]).expect("it moves");
    let expected = [Some(rest), Some(rest), Some(rest), Some(own)];
    assert_eq!(owners(&world, &family), expected);
    let elsewhere = world.engine().manage(rest, family[3]);
    assert!(elsewhere.is_err(), "this client does not give way");
    let all = world.client("all", 1);
    world.engine().manage(all, shell.id()).expect("it moves");
    let expected = [Some(all), Some(all), Some(all), Some(own)];
    assert_eq!(owners(&world, &family), expected);
    wait_until("the empty client's exit", || {
        world.engine().take_exited() == [rest]
    });
    // It is held down for its new client, and not for the old one.
    wait_until("the family is held down again", || {
        family[1..].iter().all(|hog| support::is_held_down(hog.pid))
    });
    for client in [all, own] {
        world.engine().release(client);
    }
    wait_until("all are as before", || {
        family.iter().all(|process| support::is_normal(process.pid))
    });
}

/// On a busy host a process takes up to seconds to its control group, and an engine that stalls
/// forgives what was used meanwhile. So control groups are not tried.
fn charged_once(mechanism: Mechanism) {
    if mechanism != Mechanism::Idle {
        return;
    }
    judge(excuse(QUANTUM_NS), || {
        let world = World::new(Some(mechanism), QUANTUM_NS);
        let shell = Program::start(&["run", "sh", "-c", "while :; do /bin/true; done"]);
        let hog = Program::hog();
        world.enter("hog", 1, &hog);
        let before_ns = shell.tree_cpu_ns();
        let mut clients = Vec::new();
        for turn in 0..5 {
            let [rest, own] = ["rest", "own"].map(|name| world.client(&format!("{name}{turn}"), 1));
            clients.extend([rest, own]);
            assert_eq!(take_in(&world, rest, &[shell.id()]), [true]);
            use_some(&shell);
            world.engine().manage(own, shell.id()).expect("it moves");
            use_some(&shell);
            // Removed from this client without a trace.
            if turn < 4 {
                world.engine().release(own);
            }
        }
        world.wait_for_decisions(2);
        let used_ns = shell.tree_cpu_ns() - before_ns;
        let charged = clients
            .iter()
            .map(|client| world.usage(*client).received_ns);
        let charged_ns: u64 = charged.sum();
        // Times of ended children are rounded to 10 ms, and each client begins and ends once.
        let error_ns = charged_ns as i64 - used_ns as i64;
        if error_ns.unsigned_abs() < 200 * MS {
            Ok(())
        } else {
            let each: Vec<u64> = clients
                .iter()
                .map(|client| world.usage(*client).received_ns)
                .collect();
            Err(format!("{charged_ns} ns of {used_ns} ns: {each:?}"))
        }
    });
}

/// Waits until a tree has used a tenth of a second.
fn use_some(tree: &Program) {
    let before_ns = tree.tree_cpu_ns();
    wait_until("it runs", || tree.tree_cpu_ns() >= before_ns + 100 * MS);
}

fn random_moves(mechanism: Mechanism) {
    if !takes_strays(mechanism) {
        return;
    }
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    let mut world = World::new(Some(mechanism), QUANTUM_NS);
    let rival = Program::hog();
    world.enter("rival", 10, &rival);
    let (_shell, family) = family();
    let clients: Vec<ClientId> = (0..4)
        .map(|index| world.client(&format!("client{index}"), 1 + index))
        .collect();
    let (rests, named) = clients.split_at(2);
    for _ in 0..200 {
        let one = (random.next_u64() % 4) as usize;
        let other = (random.next_u64() % 2) as usize;
        let before = owners(&world, &family);
        match random.next_u64() % 5 {
            0 | 1 => {
                let taken = take_in(&world, rests[other], &family[one..]);
                assert!(taken.into_iter().all(|taken| taken), "{before:?}");
                let now = owners(&world, &family);
                let stayed = before.iter().zip(&now).skip(one);
                // A child of a client's process is that client's.
                stayed.for_each(|(before, now)| {
                    assert!(now.is_some() && (before.is_none() || before == now))
                });
            }
            2 => world.engine().let_out(&family[one..=one]),
            3 => {
                let gives_way = before[one].is_none_or(|client| rests.contains(&client));
                let done = world.engine().manage(named[other], family[one]);
                assert_eq!(done.is_ok(), gives_way, "{before:?}");
            }
            _ => world.engine().release(named[other]),
        }
        std::thread::sleep(Duration::from_millis(random.next_u64() % 8));
        let free = owners(&world, &family).into_iter().zip(&family);
        for (_, process) in free.filter(|(owner, _)| owner.is_none()) {
            assert!(support::is_normal(process.pid), "{process:?} is free");
        }
    }
    world.end_engine();
    assert!(family.iter().all(|process| support::is_normal(process.pid)));
}

/// As with `sudo`: the parent waits for a child that is no part of its client.
fn outsiders(mechanism: Mechanism) {
    if !takes_strays(mechanism) {
        return;
    }
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let mut parent = Program::start(&["waiter", "burn-later", "1000"]);
    let child = support::id_of(support::wait_for_child(parent.pid()));
    let rest = world.client("rest", 1);
    assert_eq!(take_in(&world, rest, &[parent.id(), child]), [true; 2]);
    let rival = Program::hog();
    world.enter("rival", 1, &rival);
    world.engine().let_out(&[child]);
    world.wait_for_decisions(4);
    let before_ns = world.usage(rest).received_ns;
    parent.say("compute");
    wait_until("the parent has waited for its child", || {
        support::children_of(parent.pid()).is_empty()
    });
    std::thread::sleep(Duration::from_millis(500));
    world.wait_for_decisions(4);
    let charged_ns = world.usage(rest).received_ns - before_ns;
    assert!(charged_ns < 200 * MS, "{charged_ns}");
}

fn no_strays(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let (mine, free) = (Program::hog(), Program::hog());
    let client = world.enter("mine", 1, &mine);
    let rest = world.client("rest", 1);
    let takes = takes_strays(mechanism);
    let strays = [mine.id(), free.id()];
    assert_eq!(
        world.engine().would_take_in(&as_strays(&strays[1..])),
        takes
    );
    assert_eq!(take_in(&world, rest, &strays), [true, takes]);
    assert_eq!(world.engine().find(mine.pid()), Some(client));
    world.engine().let_out(&strays);
    assert_eq!(owners(&world, &strays), [Some(client), None]);
    // An earlier process with the number.
    let earlier = ProcessId {
        start_time_ticks: free.id().start_time_ticks - 1,
        ..free.id()
    };
    assert_eq!(take_in(&world, rest, &[earlier]), [false]);
}

/// Processes of different sessions are in different scheduling groups.
fn makes_way(mechanism: Mechanism) {
    let enabled = std::fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled");
    if !enabled.is_ok_and(|text| text.trim() == "1") {
        return support::cannot_run("the kernel does not group by session");
    }
    // Control groups make up for that.
    if mechanism != Mechanism::Idle || support::control_groups::can_be_had() == Some(true) {
        return;
    }
    let world = World::new(None, QUANTUM_NS);
    let mechanism = || world.engine().status().mechanism;
    let (hog, rest) = (Program::hog(), world.client("rest", 1));
    const SCRIPT: &str = "export SHELL_PID=$$; read x; \
        setsid sh -c 'while [ -d /proc/$SHELL_PID ]; do :; done' & wait";
    let mut shell = Program::start(&["run", "sh", "-c", SCRIPT]);
    assert_eq!(take_in(&world, rest, &[hog.id(), shell.id()]), [true; 2]);
    // One of its own begins a session.
    shell.say("begin");
    let leader = support::wait_for_child(shell.pid());
    let leads = |pid| procfs::stat(pid).is_ok_and(|stat| stat.session == pid);
    wait_until("a session of its own", || leads(leader));
    world.wait_for_decisions(4);
    wait_until("it makes way", || world.engine().find(leader).is_none());
    assert_eq!(mechanism(), Mechanism::Idle);
    assert_eq!(owners(&world, &[hog.id(), shell.id()]), [Some(rest); 2]);
    assert!(support::is_normal(leader));
    // All of it makes way for a process that is named.
    let leader = support::id_of(leader);
    assert!(!world.engine().would_take_in(&as_strays(&[leader])));
    assert!(!world.engine().would_stop(leader, false));
    let named = world.client("named", 1);
    world.engine().manage(named, leader).expect("it is free");
    let all = [hog.id(), shell.id(), leader];
    assert_eq!(owners(&world, &all), [None, None, Some(named)]);
    assert_eq!(mechanism(), Mechanism::Idle);
    assert!(support::is_normal(hog.pid()) && support::is_normal(shell.pid()));
}
