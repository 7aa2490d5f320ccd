//! What the engine refuses, without any change.

use std::path::Path;

use prorata_core::ids::ClientId;
use prorata_user::EngineError;

use crate::Tests;
use crate::support::{self, MS, Program, World};

pub const TESTS: Tests = &[
    ("processes that cannot be managed are refused", processes),
    ("unknown clients do no harm", unknown_clients),
    ("CPUs that cannot be shared out are refused", cpus),
    ("a second engine in a directory is refused", second_engine),
    ("more processes than descriptors are refused", too_many),
];

fn processes() {
    let world = World::new(None, 20 * MS);
    let client = world.client("client", 1);
    let engine = world.engine();
    let mut ended = Program::hog();
    let gone = ended.id();
    ended.child().kill().expect("it runs");
    support::wait_until("it ends", || support::stat_field(gone.pid, 3) == "Z");
    assert!(
        matches!(
            engine.manage(client, gone),
            Err(EngineError::NoSuchProcess(_))
        ),
        "a zombie"
    );
    drop(ended);
    assert!(matches!(
        engine.manage(client, gone),
        Err(EngineError::NoSuchProcess(_))
    ));
    let hog = Program::hog();
    let mut another_time = hog.id();
    another_time.start_time_ticks += 1;
    let refused = engine.manage(client, another_time);
    assert!(matches!(refused, Err(EngineError::NoSuchProcess(_))));
    let myself = support::id_of(std::process::id());
    assert!(matches!(
        engine.manage(client, myself),
        Err(EngineError::Indispensable(_))
    ));
    let guardian = engine.status().guardian.expect("there is one");
    let guardian = support::id_of(guardian);
    assert!(matches!(
        engine.manage(client, guardian),
        Err(EngineError::Indispensable(_))
    ));
    let init = support::id_of(1);
    assert!(matches!(
        engine.manage(client, init),
        Err(EngineError::Indispensable(_))
    ));
    engine.manage(client, hog.id()).expect("it can be managed");
    let other = world.client("other", 1);
    let refused = engine.manage(other, hog.id());
    assert!(matches!(refused, Err(EngineError::AlreadyManaged { client: c, .. }) if c == client));
    assert_eq!(engine.state(other), None);
    if !rustix::process::geteuid().is_root() {
        let parent = rustix::process::getppid()
            .expect("root runs us")
            .as_raw_pid() as u32;
        let foreign = support::process_of_root().unwrap_or(parent);
        let refused = engine.manage(other, support::id_of(foreign));
        assert!(
            matches!(refused, Err(EngineError::NotPermitted(_))),
            "{refused:?}"
        );
    }
}

fn unknown_clients() {
    let world = World::new(None, 20 * MS);
    let engine = world.engine();
    let unknown = ClientId::from_parts(7, 7);
    engine.release(unknown);
    engine.resume(unknown);
    assert!(!engine.suspend(unknown));
    assert_eq!(engine.state(unknown), None);
    assert_eq!(engine.processes(unknown), []);
    assert_eq!(engine.find(1), None);
    // The ledger does not know the client, so the dispatcher neither charges it nor lets it
    // win.
    let hog = Program::hog();
    engine.manage(unknown, hog.id()).expect("it can be managed");
    std::thread::sleep(std::time::Duration::from_millis(100));
    engine.release(unknown);
    assert!(support::is_normal(hog.pid()));
}

fn start(directory: &Path, cpus: Option<Vec<u32>>) -> Option<EngineError> {
    let config = support::config(directory, None, cpus);
    support::start_engine(config, 20 * MS).err()
}

fn cpus() {
    let directory = tempfile::tempdir().expect("a directory");
    for cpus in [vec![], vec![5000], vec![support::shared_cpu() as u32, 1023]] {
        let refused = start(directory.path(), Some(cpus.clone()));
        assert!(matches!(refused, Some(EngineError::BadCpus(named)) if named == cpus));
    }
}

fn second_engine() {
    let world = World::new(None, 20 * MS);
    let refused = start(world.directory.path(), None);
    assert!(matches!(refused, Some(EngineError::AlreadyRunning(_))));
    let file = world.directory.path().join("file");
    std::fs::write(&file, b"").expect("it is ours");
    let refused = start(&file, None);
    assert!(matches!(refused, Some(EngineError::StateDirectory { .. })));
}

/// The limit on open files, tested at it and one past it.
fn too_many() {
    let mut daemon = Program::start(&["limited", "380", "386"]);
    assert_eq!(daemon.hear(), "2 of 3");
}
