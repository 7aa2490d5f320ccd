//! The start and the end of daemons.

use std::fs;
use std::io;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use prorata_protocol::{
    ConnectError, Connection, EngineChoice, KernelChoice, Request, Response, is_starting,
    open_if_started, open_or_start,
};
use rustix::process::Signal;

use super::harness::{
    DEMANDS_KERNEL, Daemon, GATE, LONG, REFUSES_KERNEL, Sleeper, WAITS_TO_START, directory,
    eventually, paths, refusal, tickets,
};
use crate::testing::CURSED;

const SHORT: Duration = Duration::from_millis(200);

fn create_currency(daemon: &Daemon, name: &str) {
    let request = Request::CreateCurrency {
        name: name.into(),
        owner: None,
        mode: None,
    };
    assert!(matches!(daemon.ask(request), Response::Created(_)));
}

fn has_currency(daemon: &Daemon, name: &str) -> bool {
    let Response::Currencies(currencies) = daemon.ask(Request::Currencies) else {
        panic!()
    };
    currencies.iter().any(|currency| currency.name == name)
}

#[test]
fn an_idle_daemon_ends() {
    let directory = directory();
    let begun = Instant::now();
    // A daemon without any connection lingers longer.
    let mut daemon = Daemon::spawn(&directory, SHORT);
    daemon.connect();
    assert_eq!(daemon.wait().code(), Some(0));
    assert!(begun.elapsed() >= SHORT);
    assert!(!daemon.paths.socket.path().exists());
    assert!(!daemon.paths.was_stopped(), "no request stopped it");
    let refused = Connection::open(&daemon.paths.socket);
    assert!(
        matches!(refused, Err(ConnectError::NotRunning { .. })),
        "{refused:?}"
    );
}

#[test]
fn a_daemon_stays_for_clients_and_connections_but_not_for_currencies() {
    let directory = directory();
    let mut daemon = Daemon::spawn(&directory, SHORT);
    let connection = daemon.connect();
    std::thread::sleep(SHORT * 2);
    assert!(daemon.is_alive());
    let sleeper = Sleeper::start();
    daemon.register(&sleeper, "sleeper");
    drop(connection);
    std::thread::sleep(SHORT * 2);
    assert!(daemon.is_alive());
    create_currency(&daemon, "lasting");
    drop(sleeper);
    assert_eq!(daemon.wait().code(), Some(0));
    assert!(has_currency(&Daemon::start(&directory), "lasting"));
}

#[test]
fn a_starting_daemon_is_waited_for_and_then_stopped() {
    let directory = directory();
    let mut daemon = Daemon::spawn_with(&directory, &[WAITS_TO_START]);
    eventually(|| is_starting(&daemon.paths).then_some(()));
    std::thread::scope(|scope| {
        let stopper = scope.spawn(|| open_if_started(&daemon.paths, &|_| ()).unwrap().unwrap());
        std::thread::sleep(SHORT);
        assert!(!stopper.is_finished());
        fs::write(daemon.paths.runtime.join(GATE), "").unwrap();
        let mut connection = stopper.join().unwrap();
        assert_eq!(connection.call(&Request::Stop).unwrap(), Response::Done);
    });
    assert_eq!(daemon.wait().code(), Some(0));
    assert!(!is_starting(&daemon.paths));
    let none = open_if_started(&daemon.paths, &|_| ()).unwrap();
    assert!(none.is_none(), "{none:?}");
}

fn stay() -> Request {
    Request::Configure {
        quantum_ns: None,
        policy: None,
        hybrid: None,
        stay: true,
        users: false,
    }
}

#[test]
fn a_daemon_that_is_told_to_stay_stays_until_it_is_stopped() {
    let directory = directory();
    let mut daemon = Daemon::spawn(&directory, SHORT);
    assert!(matches!(daemon.ask(stay()), Response::Status(status) if status.stays));
    std::thread::sleep(SHORT * 3);
    assert!(daemon.is_alive());
    daemon.signal(Signal::KILL);
    daemon.wait();

    let mut next = Daemon::spawn(&directory, SHORT);
    assert!(next.status().stays, "a crash is no stop");
    std::thread::sleep(SHORT * 3);
    assert!(next.is_alive());
    assert_eq!(next.ask(Request::Stop), Response::Done);
    assert_eq!(next.wait().code(), Some(0));

    let mut last = Daemon::spawn(&directory, SHORT);
    assert!(!last.status().stays);
    assert_eq!(last.wait().code(), Some(0));
}

#[test]
fn a_chosen_engine_is_kept_and_gives_way_only_where_it_does_not_start() {
    let directory = directory();
    let kernel = EngineChoice::Kernel(KernelChoice::default());
    let stop = |mut daemon: Daemon| {
        assert_eq!(daemon.ask(Request::Stop), Response::Done);
        assert_eq!(daemon.wait().code(), Some(0));
    };
    let demanded = Daemon::start_with(&directory, &[DEMANDS_KERNEL]);
    assert_eq!(demanded.status().engine_choice, kernel);
    stop(demanded);

    let fallen_back = Daemon::start_with(&directory, &[REFUSES_KERNEL]);
    let status = fallen_back.status();
    assert_eq!(status.engine_choice, EngineChoice::User);
    let trouble = status.trouble.unwrap();
    assert!(
        trouble.contains("(kernel) did not start: there is no sched_ext"),
        "{trouble}"
    );
    stop(fallen_back);

    let kept = Daemon::start(&directory);
    assert_eq!(kept.status().engine_choice, kernel);
    assert_eq!(kept.status().trouble, None);
}

#[test]
fn a_demanded_engine_that_does_not_start_ends_the_daemon_and_is_not_kept() {
    let directory = directory();
    let variables = [DEMANDS_KERNEL, REFUSES_KERNEL];
    let mut refused = Daemon::spawn_with(&directory, &variables);
    assert_eq!(refused.wait().code(), Some(3));
    let log = fs::read_to_string(refused.paths.log()).unwrap();
    assert!(log.contains("the engine did not start"), "{log}");

    let next = Daemon::start(&directory);
    assert_eq!(next.status().engine_choice, EngineChoice::User);
    assert_eq!(next.status().trouble, None);
}

/// What clients see of a daemon that no request stopped.
fn needs_another(daemon: &Daemon) -> bool {
    daemon.paths.socket.path().exists() && !daemon.paths.was_stopped()
}

#[test]
fn a_signal_ends_the_daemon_and_the_next_one_finds_its_clients() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mut daemon = Daemon::start(&directory());
        let sleeper = Sleeper::start();
        let before = daemon.register(&sleeper, "sleeper");
        daemon.signal(signal);
        assert_eq!(daemon.wait().code(), Some(0), "{signal:?}");
        assert!(daemon.paths.runtime.join("released").exists(), "{signal:?}");
        assert!(needs_another(&daemon), "{signal:?}");

        let daemon = Daemon::start(&daemon.directory);
        let Response::Clients(clients) = daemon.ask(Request::Clients) else {
            panic!()
        };
        assert_eq!(clients, [before], "{signal:?}");
    }
}

#[test]
fn a_stopped_daemon_forgets_its_clients_and_keeps_its_currencies() {
    let mut daemon = Daemon::start(&directory());
    let sleeper = Sleeper::start();
    daemon.register(&sleeper, "sleeper");
    create_currency(&daemon, "lasting");
    assert_eq!(daemon.ask(Request::Stop), Response::Done);
    assert_eq!(daemon.wait().code(), Some(0));
    assert!(daemon.paths.runtime.join("released").exists());
    assert!(daemon.paths.was_stopped());
    assert!(!daemon.paths.socket.path().exists());

    let daemon = Daemon::start(&daemon.directory);
    assert!(!daemon.paths.was_stopped());
    assert!(daemon.client_names().is_empty());
    assert!(has_currency(&daemon, "lasting"));
}

#[test]
fn a_bug_releases_everything_and_is_logged() {
    let mut daemon = Daemon::start(&directory());
    let sleeper = Sleeper::start();
    daemon.register(&sleeper, "sleeper");
    let answer = daemon.connect().call(&Request::Release {
        client: CURSED.to_string(),
    });
    assert!(matches!(answer, Err(ConnectError::HungUp)), "{answer:?}");
    assert_eq!(daemon.wait().code(), Some(3));
    assert!(daemon.paths.runtime.join("released").exists());
    assert!(needs_another(&daemon));
    let log = fs::read_to_string(daemon.paths.log()).unwrap();
    assert!(
        log.lines()
            .last()
            .unwrap()
            .contains("ended by a bug of its own"),
        "{log}"
    );

    assert_eq!(Daemon::start(&daemon.directory).client_names(), ["sleeper"]);
}

#[test]
fn removed_directories_are_made_again() {
    let daemon = Daemon::start(&directory());
    let sleeper = Sleeper::start();
    daemon.register(&sleeper, "sleeper");
    fs::remove_dir_all(&daemon.paths.runtime).unwrap();
    fs::remove_dir_all(&daemon.paths.state).unwrap();
    assert_eq!(daemon.client_names(), ["sleeper"]);
    let mut second = Daemon::spawn(&daemon.directory, SHORT);
    assert_eq!(second.wait().code(), Some(3), "the locks are held");
    assert_eq!(daemon.succeed().client_names(), ["sleeper"]);
}

#[test]
fn a_second_daemon_in_the_same_directory_refuses() {
    let mut first = Daemon::start(&directory());
    let mut second = Daemon::spawn(&first.directory, SHORT);
    assert_eq!(second.wait().code(), Some(3));
    assert!(first.is_alive());
    let log = fs::read_to_string(first.paths.log()).unwrap();
    assert!(log.contains("a daemon uses"), "{log}");
}

#[test]
fn suspended_clients_are_suspended_after_a_crash_and_others_are_not() {
    let daemon = Daemon::start(&directory());
    let sleepers = [Sleeper::start(), Sleeper::start(), Sleeper::start()];
    for (sleeper, name) in sleepers.iter().zip(["a", "b", "c"]) {
        daemon.register(sleeper, name);
    }
    let suspend = |client: &str| Request::Suspend {
        client: client.into(),
    };
    for client in ["a", "b", "a"] {
        assert_eq!(
            daemon.ask(suspend(client)),
            Response::Suspended { was_stopped: false }
        );
    }
    assert_eq!(
        daemon.ask(Request::Resume { client: "b".into() }),
        Response::Done
    );
    let states = |daemon: &Daemon| match daemon.ask(Request::Clients) {
        Response::Clients(clients) => clients.iter().map(|one| one.state).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    let before = states(&daemon);
    use prorata_protocol::ClientState::{Suspended, Waiting};
    assert_eq!(before, [Suspended, Waiting, Waiting]);
    assert_eq!(states(&daemon.succeed()), before);
}

#[test]
fn of_many_programs_that_want_a_daemon_one_starts_it() {
    let directory = directory();
    let paths = paths(directory.path());
    let started = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let start = || {
                    started
                        .lock()
                        .unwrap()
                        .push(Daemon::spawn(&directory, LONG));
                    Ok(())
                };
                let mut connection = open_or_start(&paths, &start, &|_| ()).unwrap();
                assert!(matches!(
                    connection.call(&Request::Status),
                    Ok(Response::Status(_))
                ));
            });
        }
    });
    assert_eq!(started.lock().unwrap().len(), 1);
}

#[test]
fn a_daemon_can_be_wanted_at_the_moment_when_the_last_one_goes() {
    let directory = directory();
    let paths = paths(directory.path());
    let started = Mutex::new(Vec::new());
    let start = || {
        started
            .lock()
            .unwrap()
            .push(Daemon::spawn(&directory, Duration::from_millis(300)));
        Ok(())
    };
    for round in 0..10 {
        let mut connection = open_or_start(&paths, &start, &|_| ()).unwrap();
        assert!(matches!(
            connection.call(&Request::Status),
            Ok(Response::Status(_))
        ));
        drop(connection);
        std::thread::sleep(Duration::from_millis(296 + round));
    }
    for daemon in started.lock().unwrap().iter_mut() {
        assert_eq!(daemon.wait().code(), Some(0));
    }
}

#[test]
fn a_failed_starter_explains_itself() {
    let directory = directory();
    let paths = paths(directory.path());
    let start = || Err(io::Error::other("the moon is full"));
    let error = open_or_start(&paths, &start, &|_| ()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the daemon did not start: the moon is full"
    );
}

#[test]
fn roots_that_end_are_replaced_by_those_that_live() {
    let daemon = Daemon::start(&directory());
    let sleeper = Sleeper::start();
    daemon.register(&sleeper, "sleeper");
    let message = refusal(daemon.ask(Request::Register {
        pid: daemon.pid().as_raw_nonzero().get() as u32,
        name: None,
        funding: tickets(1),
        quantum_ns: None,
        max: None,
        adopts: false,
    }));
    assert!(message.contains("is part of the daemon"), "{message}");
    let message = refusal(daemon.ask(Request::Register {
        pid: std::process::id(),
        name: None,
        funding: tickets(1),
        quantum_ns: None,
        max: None,
        adopts: false,
    }));
    assert!(
        message.contains("has the daemon among its descendants"),
        "{message}"
    );
    eventually(|| (daemon.client_names() == ["sleeper"]).then_some(()));
}
