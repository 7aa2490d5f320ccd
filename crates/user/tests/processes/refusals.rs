//! What the engine refuses, and that nothing changes then.

use libtest_mimic::Trial;
use prorata_core::ids::ClientId;
use prorata_core::policy::Stride;
use prorata_user::{EngineConfig, EngineError, UserEngine};

use crate::add_once;
use crate::support::{self, MS, Program, World};

pub fn list(trials: &mut Vec<Trial>) {
    add_once(
        trials,
        "processes that cannot be managed are refused",
        processes,
    );
    add_once(trials, "unknown clients are no trouble", unknown_clients);
    add_once(trials, "CPUs that cannot be shared out are refused", cpus);
    add_once(
        trials,
        "a second engine in a directory is refused",
        second_engine,
    );
    add_once(
        trials,
        "more processes than descriptors are refused",
        too_many,
    );
}

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
        let somebody = support::somebody_elses_process().unwrap_or(parent);
        let refused = engine.manage(other, support::id_of(somebody));
        assert!(
            matches!(refused, Err(EngineError::NotPermitted(_))),
            "{refused:?}"
        );
    }
}

fn unknown_clients() {
    let world = World::new(None, 20 * MS);
    let engine = world.engine();
    let nobody = ClientId::from_parts(7, 7);
    engine.release(nobody);
    engine.resume(nobody);
    assert!(!engine.suspend(nobody));
    assert_eq!(engine.state(nobody), None);
    assert_eq!(engine.processes(nobody), []);
    assert_eq!(engine.find(1), None);
    // The ledger does not know it, so it is never charged and never wins; the
    // engine does no harm.
    let hog = Program::hog();
    engine.manage(nobody, hog.id()).expect("it can be managed");
    std::thread::sleep(std::time::Duration::from_millis(100));
    engine.release(nobody);
    assert!(support::is_normal(hog.pid()));
}

fn start(config: EngineConfig) -> Result<UserEngine, EngineError> {
    UserEngine::start(
        config,
        support::dispatcher(Box::new(Stride::new()), 20 * MS),
    )
}

fn cpus() {
    let directory = tempfile::tempdir().expect("a directory");
    for cpus in [vec![], vec![5000], vec![support::shared_cpu() as u32, 1023]] {
        let config = EngineConfig {
            cpus: Some(cpus.clone()),
            state_directory: directory.path().to_owned(),
            socket: support::socket(),
            mechanism: None,
        };
        let refused = start(config).err();
        assert!(matches!(refused, Some(EngineError::BadCpus(named)) if named == cpus));
    }
}

fn second_engine() {
    let world = World::new(None, 20 * MS);
    let config = EngineConfig {
        cpus: None,
        state_directory: world.directory.path().to_owned(),
        socket: support::socket(),
        mechanism: None,
    };
    let refused = start(config.clone()).err();
    assert!(matches!(refused, Some(EngineError::AlreadyRunning(_))));
    let file = world.directory.path().join("file");
    std::fs::write(&file, b"").expect("it is ours");
    let refused = start(EngineConfig {
        state_directory: file,
        ..config
    })
    .err();
    assert!(matches!(refused, Some(EngineError::StateDirectory { .. })));
}

/// The limit on open files, tested at it and one past it.
fn too_many() {
    let mut daemon = Program::start(&["limited", "256", "260"]);
    assert_eq!(daemon.hear(), "2 of 3");
}
