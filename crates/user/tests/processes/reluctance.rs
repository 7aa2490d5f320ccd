//! Processes that the engine may not put right at once. It forgets nothing that is still to be
//! undone.

use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use prorata_user::Mechanism;

use crate::Tests;
use crate::support::{self, MS, Program, World, wait_until};

pub const TESTS: Tests = &[
    ("a return that was refused is tried again (Idle)", || {
        tried_again(Mechanism::Idle)
    }),
    ("a return that was refused is tried again (Stop)", || {
        tried_again(Mechanism::Stop)
    }),
    (
        "a return that was refused is left to the next engine (Idle)",
        || left_to_the_next(Mechanism::Idle),
    ),
    (
        "a return that was refused is left to the next engine (Stop)",
        || left_to_the_next(Mechanism::Stop),
    ),
    (
        "a process that became another user's is let go",
        another_users,
    ),
];

/// A loser that is held down by an engine which has lost all power over it.
struct Powerless {
    /// Starts the engine's process and waits for its end.
    engine: Program,
    pid: u32,
    state: PathBuf,
    loser: Program,
    _winner: Program,
}

impl Powerless {
    fn start(mechanism: Mechanism) -> Powerless {
        let (loser, winner) = (Program::hog(), Program::hog());
        let pids = [&loser, &winner].map(|program| program.pid().to_string());
        let mechanism = format!("{mechanism:?}");
        let mut engine = Program::start(&["releaser", &mechanism, &pids[0], &pids[1]]);
        let state = PathBuf::from(engine.hear());
        let pid = support::wait_for_child(engine.pid());
        wait_until("one is held down", || !support::is_normal(loser.pid()));
        let mut powerless = Powerless {
            engine,
            pid,
            state,
            loser,
            _winner: winner,
        };
        powerless.order("lose");
        powerless
    }

    fn order(&mut self, order: &str) {
        self.engine.say(order);
        assert_eq!(self.engine.hear(), "done");
    }

    fn is_held_down(&self) -> bool {
        !support::is_normal(self.loser.pid())
    }
}

fn tried_again(mechanism: Mechanism) {
    let mut powerless = Powerless::start(mechanism);
    wait_until("it is held down", || powerless.is_held_down());
    powerless.order("release");
    sleep(Duration::from_millis(300));
    assert!(powerless.is_held_down(), "its return is refused");
    powerless.order("regain");
    wait_until("it returns", || !powerless.is_held_down());
}

fn left_to_the_next(mechanism: Mechanism) {
    let mut powerless = Powerless::start(mechanism);
    let engine = powerless.pid;
    let guardian = || support::children_of(engine).first().copied();
    let powerful = guardian().expect("there is one");
    support::signal(powerful, libc::SIGKILL);
    wait_until("its guardian is as powerless", || {
        let user = guardian().filter(|&pid| pid != powerful);
        user.and_then(support::effective_uid) == Some(65534)
    });
    let guardian = guardian().expect("there is one");
    powerless.order("release");
    assert!(powerless.is_held_down(), "its return is refused");
    support::signal(engine, libc::SIGKILL);
    wait_until("the guardian ends", || support::has_ended(guardian));
    assert!(
        powerless.is_held_down(),
        "nothing had the right to put it right"
    );
    let config = support::config(&powerless.state, None, None);
    let next = support::start_engine(config, 20 * MS).expect("the next engine starts");
    assert!(!powerless.is_held_down(), "the next engine has swept");
    drop(next);
    std::fs::remove_dir_all(&powerless.state).expect("it is there");
}

fn wait_for_user(pid: u32, user: u32) {
    wait_until("it is another user's", || {
        support::effective_uid(pid) == Some(user)
    });
}

/// Root's engine manages for a user what that user could manage, and no more.
fn another_users() {
    let copy = tempfile::tempdir().expect("a directory");
    let path = support::set_user_id_copy(copy.path());
    let path = path.to_str().expect("plain text");
    let world = World::new(None, 20 * MS);
    let mut program = Program::start(&["nobody", "mask", path]);
    wait_for_user(program.pid(), 65534);
    let client = world.enter("program", 1, &program);
    // The program is held down most of the time, and its child inherits that.
    let hog = Program::hog();
    world.enter("hog", 9, &hog);
    program.say("become set-user-id");
    wait_for_user(program.pid(), 0);
    // It acts for its user all the same.
    sleep(Duration::from_millis(1500));
    assert_eq!(world.engine().find(program.pid()), Some(client));
    program.say("become root's");
    let child = support::wait_for_child(program.pid());
    wait_until("it is let go", || {
        world.engine().find(program.pid()).is_none()
    });
    let is_free = |pid| world.engine().find(pid).is_none() && support::is_normal(pid);
    wait_until("its child is too", || is_free(child));
    sleep(Duration::from_millis(1500));
    assert!(is_free(program.pid()) && is_free(child));
}
