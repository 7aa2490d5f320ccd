//! Children and threads belong to their client, however they come and go.

use std::thread::sleep;
use std::time::Duration;

use prorata_user::ownership::KnownClient;
use prorata_user::{ClientActivity, Mechanism};

use crate::MechanismTests;
use crate::shares::{assert_shares, excuse, used_during};
use crate::support::witness::judge;
use crate::support::{self, MS, Program, World, wait_until};

pub const TESTS: MechanismTests = &[
    (
        "thousands of short processes share as one client",
        fork_storm,
    ),
    (
        "a shell between two of its short processes has not blocked",
        serial_tree,
    ),
    (
        "present and future children join their parent's client",
        children,
    ),
    ("orphans join their foster parent's client", orphans),
    ("escaped processes are found by their marker", marked),
    (
        "a child born during its parent's release is released too",
        born_at_release,
    ),
    ("the exit of a client is reported once", exits),
    ("suspended clients do not compete", suspension),
    ("a parent never finds its child stopped", hidden_stops),
    (
        "a process that its user stopped stays stopped",
        stopped_by_user,
    ),
    (
        "a process that its user continued is held down again",
        continued_by_user,
    ),
    (
        "children that ended during a suspension are not charged",
        children_while_suspended,
    ),
    (
        "a child with a client of its own is not charged to its parent",
        child_elsewhere,
    ),
];

const QUANTUM_NS: u64 = 20 * MS;

const ONE_BY_ONE: [&str; 4] = ["run", "sh", "-c", "while :; do /bin/true; done"];

/// It would lose the rest of its turn each time.
fn serial_tree(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let shell = Program::start(&ONE_BY_ONE);
    let hog = Program::hog();
    world.enter("shell", 9, &shell);
    world.enter("hog", 1, &hog);
    sleep(Duration::from_millis(500));
    judge(excuse(QUANTUM_NS), || {
        let clocks_ns = || vec![shell.tree_cpu_ns(), hog.cpu_ns()];
        let used_ns = used_during(Duration::from_secs(4), clocks_ns);
        let share = used_ns[0] as f64 / (used_ns[0] + used_ns[1]) as f64;
        match share >= 0.95 * 0.9 {
            true => Ok(()),
            false => Err(format!("{share:.3} of the CPU, {used_ns:?} ns")),
        }
    });
}

fn fork_storm(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let shell = Program::start(&ONE_BY_ONE);
    let hog = Program::hog();
    world.enter("shell", 1, &shell);
    world.enter("hog", 1, &hog);
    sleep(Duration::from_millis(500));
    judge(excuse(QUANTUM_NS), || {
        let clocks_ns = || vec![shell.tree_cpu_ns(), hog.cpu_ns()];
        let used_ns = used_during(Duration::from_secs(4), clocks_ns);
        // The shell's times are rounded to 10 ms, four of them, twice.
        let error_quanta = (used_ns[0] as f64 - used_ns[1] as f64) / 2.0 / QUANTUM_NS as f64;
        if error_quanta.abs() < 4.0 {
            Ok(())
        } else {
            Err(format!("shell and hog {used_ns:?} ns: {error_quanta:.1}"))
        }
    });
}

/// A shell with three hogs in the background and a fourth later. All of them end with the
/// shell, even if the tests are killed.
const FAMILY: &str = "hog() { while [ -d /proc/$$ ]; do :; done; }; \
    for i in 1 2 3; do hog & done; read x; hog & wait";

fn children(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let mut family = Program::start(&["run", "sh", "-c", FAMILY]);
    let hog = Program::hog();
    wait_until("three children", || {
        support::children_of(family.pid()).len() == 3
    });
    let client = world.enter("family", 1, &family);
    world.enter("hog", 1, &hog);
    family.say("one more");
    wait_until("all joined", || {
        let hogs = support::children_of(family.pid());
        let joined = |&pid: &u32| world.engine().find(pid) == Some(client);
        hogs.len() == 4 && hogs.iter().all(joined)
    });
    assert_eq!(world.engine().processes(client).len(), 5);
    let hogs = support::children_of(family.pid());
    let family_ns = || hogs.iter().map(|&pid| support::cpu_ns(pid)).sum::<u64>();
    let clocks_ns = || vec![family_ns(), hog.cpu_ns()];
    assert_shares(Duration::from_secs(2), clocks_ns, &[1, 1], QUANTUM_NS);
    world.engine().release(client);
    assert!(hogs.iter().all(|&pid| support::is_normal(pid)));
    assert_eq!(world.engine().state(client), None);
}

/// Has a hundred children a second. They live long enough for a look.
const FERTILE: &str = "while [ -d /proc/$PPID ]; do \
    for i in 1 2 3 4 5; do sleep 1 & done; sleep 0.05; done";

fn born_at_release(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let shell = Program::start(&["run", "sh", "-c", FERTILE]);
    let hog = Program::hog();
    world.enter("hog", 9, &hog);
    for round in 0..10 {
        let client = world.enter(&format!("shell {round}"), 1, &shell);
        sleep(Duration::from_millis(150 + 7 * round));
        world.engine().release(client);
        // A child whose birth had begun before the release is put right when it is seen.
        wait_until("no child is held down", || {
            let children = support::children_of(shell.pid());
            !children.into_iter().any(support::is_held_down)
        });
        assert!(support::is_normal(shell.pid()));
    }
}

/// Starts a child whose parent ends at once, under a subreaper.
fn orphans(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let mut foster_parent = Program::start(&[
        "foster",
        "sh",
        "-c",
        "read x; (while [ -d /proc/$PPID ]; do :; done) & exit",
    ]);
    let client = world.client("orphan", 1);
    let root = support::wait_for_child(foster_parent.pid());
    world
        .engine()
        .manage(client, support::id_of(root))
        .expect("it can be managed");
    world
        .engine()
        .also_children_of(client, foster_parent.id())
        .expect("it runs");
    foster_parent.say("go");
    wait_until("the orphan is left", || {
        let processes = world.engine().processes(client);
        processes.len() == 1 && processes[0].pid != root
    });
    let orphan = world.engine().processes(client)[0].pid;
    assert_eq!(
        support::stat_field(orphan, 4),
        foster_parent.pid().to_string()
    );
    assert_eq!(world.engine().find(foster_parent.pid()), None);
    assert!(world.engine().take_exited().is_empty());
}

fn marked(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let client = world.client("marked", 1);
    let marker = format!("{}={client}", prorata_user::CLIENT_MARKER);
    let socket = |path: &str| format!("{}={path}", prorata_user::SOCKET_MARKER);
    let ours = socket(support::socket().to_str().expect("plain text"));
    let script = "read x; (while [ -d /proc/$$ ]; do :; done) & exec sleep 100";
    let mut program = Program::start(&["run", "env", &marker, &ours, "sh", "-c", script]);
    world
        .engine()
        .manage(client, program.id())
        .expect("it can be managed");
    // A process that carries the marker and descends from no managed process.
    let escaped = Program::start(&["run", "env", &marker, &ours, "sleep", "100"]);
    // A process with the same marker, but of another daemon.
    let theirs = socket("/nonexistent/another/socket");
    let foreign = Program::start(&["run", "env", &marker, &theirs, "sleep", "100"]);
    wait_until("the escaped process is found", || {
        world.engine().find(escaped.pid()) == Some(client)
    });
    program.say("go");
    wait_until("the child is found", || {
        world.engine().processes(client).len() == 3
    });
    assert_eq!(world.engine().find(foreign.pid()), None);
    // While it becomes another program it shows no marker.
    wait_until("the program is sleep", || {
        support::program_of(program.pid()) == "sleep"
    });
    // What is left of the client is found again, but nothing of another user's.
    world.engine().release(client);
    let start = program.id().start_time_ticks;
    let found_for = |user| {
        let known = KnownClient {
            id: client,
            user,
            since_ticks: start,
        };
        world.engine().manage_marked(&[known]).expect("it works")
    };
    let user = rustix::process::getuid().as_raw();
    assert_eq!(found_for(user + 1), [0]);
    assert_eq!(found_for(user), [3]);
}

fn exits(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let hogs = [Program::hog(), Program::hog()];
    let [first, second] = world.enter_all(&[1, 1], &hogs)[..] else {
        unreachable!("there are two");
    };
    sleep(Duration::from_millis(100));
    assert!(world.engine().take_exited().is_empty());
    let [gone, stays] = hogs;
    drop(gone);
    support::wait_readable(world.engine().exits());
    assert_eq!(world.engine().take_exited(), [first]);
    assert!(world.engine().take_exited().is_empty());
    assert_eq!(world.engine().processes(first), []);
    wait_until("the other one wins", || {
        world.engine().state(second) == Some(ClientActivity::Running)
    });
    assert!(support::is_normal(stays.pid()));
}

fn suspension(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let hogs = [Program::hog(), Program::hog()];
    let [first, second] = world.enter_all(&[1, 1], &hogs)[..] else {
        unreachable!("there are two");
    };
    sleep(Duration::from_millis(200));
    world.engine().suspend(first);
    assert!(
        support::is_normal(hogs[0].pid()),
        "nothing is done to a suspended client"
    );
    wait_until("the other one goes on alone", || {
        world.engine().state(first) == Some(ClientActivity::Suspended)
            && world.engine().state(second) == Some(ClientActivity::Running)
    });
    // After two decisions all that it used before has been charged.
    world.wait_for_decisions(2);
    let received_ns = world.usage(first).received_ns;
    sleep(Duration::from_millis(200));
    assert_eq!(world.usage(first).received_ns, received_ns);
    world.engine().resume(first);
    wait_until("it competes again", || {
        world.usage(first).received_ns > received_ns
    });
}

/// A shell would take the child for a stopped job.
fn hidden_stops(mechanism: Mechanism) {
    judge(excuse(QUANTUM_NS), || {
        let world = World::new(Some(mechanism), QUANTUM_NS);
        let mut observer = Program::start(&["observer", "3"]);
        let hog = Program::hog();
        world.enter("observer", 1, &observer);
        world.enter("hog", 1, &hog);
        match observer.hear().as_str() {
            "0" => Ok(()),
            stops => Err(format!("{stops} stops")),
        }
    });
}

fn stopped_by_user(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let hogs = [Program::hog(), Program::hog()];
    support::signal(hogs[0].pid(), libc::SIGSTOP);
    wait_until("it stops", || support::stat_field(hogs[0].pid(), 3) == "T");
    let [first, second] = world.enter_all(&[1, 1], &hogs)[..] else {
        unreachable!("there are two");
    };
    wait_until("the other one goes on alone", || {
        world.engine().state(first) == Some(ClientActivity::Blocked)
            && world.engine().state(second) == Some(ClientActivity::Running)
    });
    sleep(Duration::from_millis(500));
    assert_eq!(support::stat_field(hogs[0].pid(), 3), "T");
    support::signal(hogs[0].pid(), libc::SIGCONT);
    wait_until("it competes", || {
        world.engine().state(first) == Some(ClientActivity::Running)
    });
}

/// The user stops one of a loser's two processes; then the engine stops the other.
fn continued_by_user(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let hogs = [Program::hog(), Program::hog(), Program::hog()];
    let stopped = |hog: &Program| support::stat_field(hog.pid(), 3) == "T";
    support::signal(hogs[0].pid(), libc::SIGSTOP);
    wait_until("it stops", || stopped(&hogs[0]));
    let loser = world.enter("loser", 1, &hogs[0]);
    world
        .engine()
        .manage(loser, hogs[1].id())
        .expect("it can be managed");
    world.enter("winner", 1000, &hogs[2]);
    wait_until("the other is held down", || {
        !support::is_normal(hogs[1].pid())
    });
    support::signal(hogs[0].pid(), libc::SIGCONT);
    wait_until("it is held down", || !support::is_normal(hogs[0].pid()));
    world.engine().release(loser);
    assert!(hogs.iter().take(2).all(|hog| support::is_normal(hog.pid())));
    // If its user stops it, that stays so.
    support::signal(hogs[0].pid(), libc::SIGSTOP);
    wait_until("it stops", || stopped(&hogs[0]));
}

fn children_while_suspended(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let shell = Program::start(&["run", "sh", "-c", "while :; do /bin/true; done"]);
    let client = world.enter("shell", 1, &shell);
    sleep(Duration::from_millis(300));
    judge(excuse(QUANTUM_NS), || {
        world.engine().suspend(client);
        world.wait_for_decisions(2);
        let before_ns = world.usage(client).received_ns;
        let suspended_ns = shell.tree_cpu_ns();
        wait_until("it uses a second", || {
            shell.tree_cpu_ns() - suspended_ns > 1000 * MS
        });
        let held_back_ns = world.usage(client).received_ns;
        let resumed_ns = shell.tree_cpu_ns();
        world.engine().resume(client);
        wait_until("it is charged again", || {
            world.usage(client).received_ns > before_ns
        });
        let charged_ns = world.usage(client).received_ns - before_ns;
        let used_ns = shell.tree_cpu_ns() - resumed_ns;
        // The engine looks every 100 ms at a client without rivals, and times are rounded.
        if held_back_ns == before_ns && charged_ns < used_ns + 300 * MS {
            Ok(())
        } else {
            Err(format!("{charged_ns} ns, of which {used_ns} ns were due"))
        }
    });
}

fn child_elsewhere(mechanism: Mechanism) {
    judge(excuse(QUANTUM_NS), || {
        let world = World::new(Some(mechanism), QUANTUM_NS);
        let mut parent = Program::start(&["waiter", "burn-later", "1000"]);
        let child = support::wait_for_child(parent.pid());
        let [inner, outer] = ["inner", "outer"].map(|name| world.client(name, 1));
        for (client, pid) in [(inner, child), (outer, parent.pid())] {
            let managed = world.engine().manage(client, support::id_of(pid));
            managed.expect("it can be managed");
        }
        parent.say("now");
        wait_until("the child ends", || {
            support::children_of(parent.pid()).is_empty()
        });
        // The engine looks at its parent when that runs, and every second.
        sleep(Duration::from_millis(1500));
        let [inner_ns, outer_ns] = [inner, outer].map(|id| world.usage(id).received_ns);
        // A turn of the child may show first in its parent's account.
        if inner_ns > 700 * MS && outer_ns < 100 * MS {
            Ok(())
        } else {
            Err(format!("{inner_ns} ns, {outer_ns} ns"))
        }
    });
}
