//! What only the mechanisms with control groups do.

use libtest_mimic::Trial;
use prorata_user::Mechanism;

use crate::support::control_groups::{group_of, holds_down, is_held_down};
use crate::support::{self, MS, Program, World, wait_until};
use crate::{MechanismTests, add};

const TESTS: MechanismTests = &[
    (
        "a released process is back in its own control group",
        released,
    ),
    (
        "a process that was moved elsewhere is held down again",
        moved,
    ),
    (
        "a program that forks all the while leaves no control group",
        forking,
    ),
    ("children are held down with their parents", children),
    ("a frozen program can be killed", killed),
];

pub fn list(mechanism: Mechanism, trials: &mut Vec<Trial>) {
    for (name, test) in TESTS {
        add(trials, name, mechanism, test);
    }
}

/// Enters a program and a rival that is worth everything. Returns the rival when the program is
/// held down.
fn hold_down(world: &World, program: &Program) -> Program {
    let rival = Program::hog();
    world.enter("loser", 1, program);
    world.enter("rival", 100_000, &rival);
    wait_until("it is held down", || is_held_down(program.pid()));
    rival
}

fn released(mechanism: Mechanism) {
    let hogs = [Program::hog(), Program::hog()];
    let homes = hogs.each_ref().map(|hog| group_of(hog.pid()));
    let mut world = World::new(Some(mechanism), 20 * MS);
    let clients = world.enter_all(&[1, 1], &hogs);
    let groups = || hogs.each_ref().map(|hog| group_of(hog.pid()));
    wait_until("both have groups of their own", || {
        groups()
            .iter()
            .zip(&homes)
            .all(|(group, home)| group != home)
    });
    let base = groups()[0].clone().expect("it runs");
    let base = base.parent().expect("it is below the base").to_owned();
    world.engine().release(clients[0]);
    wait_until("the released one is back", || groups()[0] == homes[0]);
    world.end_engine();
    assert_eq!(groups(), homes, "the engine's end releases all");
    assert!(!base.exists(), "no group is left");
}

fn forking(mechanism: Mechanism) {
    let shell = Program::start(&["run", "sh", "-c", "while :; do /bin/true; done"]);
    let hog = Program::hog();
    let home = group_of(shell.pid());
    let mut world = World::new(Some(mechanism), 20 * MS);
    world.enter("shell", 1, &shell);
    world.enter("hog", 1, &hog);
    wait_until("both have groups of their own", || {
        [&shell, &hog]
            .iter()
            .all(|program| group_of(program.pid()) != home)
    });
    let base = group_of(hog.pid()).expect("it runs");
    let base = base.parent().expect("it is below the base").to_owned();
    std::thread::sleep(std::time::Duration::from_millis(300));
    world.end_engine();
    assert_eq!(group_of(shell.pid()), home);
    assert!(!base.exists(), "no group is left");
}

fn moved(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), 20 * MS);
    let loser = Program::hog();
    let home = group_of(loser.pid()).expect("it runs");
    let _rival = hold_down(&world, &loser);
    let pid = loser.pid().to_string();
    // (Once it is there, the engine may be faster than a look.)
    assert!(!holds_down(&home), "nothing holds it down there");
    std::fs::write(home.join("cgroup.procs"), pid).expect("both groups are ours");
    wait_until("it is held down", || is_held_down(loser.pid()));
}

fn children(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), 20 * MS);
    let parent = Program::start(&["session"]);
    let child = support::wait_for_child(parent.pid());
    let _rival = hold_down(&world, &parent);
    // Between two looks the loser may have a turn.
    wait_until("its child is held down with it", || {
        group_of(child) == group_of(parent.pid()) && is_held_down(child)
    });
}

fn killed(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), 20 * MS);
    let loser = Program::hog();
    let _rival = hold_down(&world, &loser);
    support::signal(loser.pid(), libc::SIGKILL);
    wait_until("it ends", || support::has_ended(loser.pid()));
}
