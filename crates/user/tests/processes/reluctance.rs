//! Processes that cannot be put right at once, because of what they became
//! meanwhile: nothing that is still to be undone is forgotten.

use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use libtest_mimic::Trial;
use prorata_core::policy::Stride;
use prorata_user::{EngineConfig, Mechanism, UserEngine};

use crate::add_for_root;
use crate::support::{self, MS, Program, World, wait_until};

pub fn list(trials: &mut Vec<Trial>) {
    for mechanism in [Mechanism::Idle, Mechanism::Stop] {
        let name = format!("a return that was refused is tried again ({mechanism:?})");
        add_for_root(trials, &name, move || tried_again(mechanism));
        let name = format!("a return that was refused is left to the next ({mechanism:?})");
        add_for_root(trials, &name, move || left_to_the_next(mechanism));
    }
    add_for_root(
        trials,
        "what became another user's is let go",
        another_users,
    );
}

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
    assert!(powerless.is_held_down(), "nobody could put it right");
    let config = EngineConfig {
        cpus: None,
        state_directory: powerless.state.clone(),
        socket: support::socket(),
        mechanism: None,
    };
    let dispatcher = support::dispatcher(Box::new(Stride::new()), 20 * MS);
    let next = UserEngine::start(config, dispatcher).expect("the next engine starts");
    assert!(!powerless.is_held_down(), "the next engine has swept");
    drop(next);
    std::fs::remove_dir_all(&powerless.state).expect("it is there");
}

fn wait_for_user(pid: u32, user: u32) {
    wait_until("it is another user's", || {
        support::effective_uid(pid) == Some(user)
    });
}

/// A daemon that may do everything shares out what its clients' users may
/// give away, and no more.
fn another_users() {
    let copy = tempfile::tempdir().expect("a directory");
    let path = support::set_user_id_copy(copy.path());
    let path = path.to_str().expect("plain text");
    let world = World::new(None, 20 * MS);
    let mut program = Program::start(&["nobody", "mask", path]);
    wait_for_user(program.pid(), 65534);
    let client = world.enter("program", 1, &program);
    // It waits most of the time, and so its child inherits that.
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
