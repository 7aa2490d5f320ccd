//! Requests about clients.

use super::*;

#[test]
fn a_users_first_client_brings_its_currency_into_being() {
    let mut world = World::of_root();
    let report = world.register(ALICE, 100, "encoder");
    assert_eq!(
        (report.id.as_str(), report.owner, report.pid),
        ("c0", ALICE, 100)
    );
    assert_eq!(report.tickets, [(100, "alice".to_owned())]);
    assert_eq!((report.state, report.processes), (ClientState::Waiting, 1));
    world.register(ALICE, 101, "encoder");
    let currencies = world.currencies(0);
    let alice = currencies
        .iter()
        .find(|currency| currency.name == "alice")
        .unwrap();
    assert_eq!(
        (alice.owner, alice.mode.as_str(), alice.issued),
        (ALICE, "744", 200)
    );
    let backing = &world.tickets(0, Some("base"))[..];
    assert_eq!(backing.len(), 1, "made once");
    assert_eq!(
        (backing[0].amount, backing[0].target.as_deref()),
        (1_000, Some("currency:alice"))
    );
    assert_eq!(world.engine.books().clients.len(), 2);
}

#[test]
fn a_made_up_name_is_unique_and_comes_from_the_program() {
    let mut world = World::of_root();
    for (pid, wanted, given) in [
        (100, Some("job"), "job"),
        (101, Some("job"), "job-2"),
        (104, None, "encoder"),
        (108, None, "encoder-2"),
        (105, None, "program c3"),
        (106, None, "program 7"),
        (107, None, "a-b"),
    ] {
        let Response::Client(report) = world.ask(ALICE, register(pid, wanted, 1, None)) else {
            panic!()
        };
        assert_eq!(report.name, given);
    }
    for name in ["c3", "12", "a:b", "-x", "", "a\nb"] {
        world.refused(ALICE, register(110, Some(name), 1, None));
    }
    let longest = "x".repeat(64);
    world.register(ALICE, 111, &longest);
    assert_eq!(
        world.register(ALICE, 112, &longest).name,
        "x".repeat(62) + "-2"
    );
    world.refused(ALICE, register(113, Some(&"x".repeat(65)), 1, None));
}

#[test]
fn only_fit_processes_are_managed() {
    let mut world = World::of_root();
    world.register(ALICE, 100, "encoder");
    for (uid, pid, why) in [
        (0, 0, "no process 0"),
        (0, 5_000, "no process 5000"),
        (0, u32::MAX, "no process 4294967295"),
        (0, 1, "the first of all processes"),
        (0, 2, "a thread of the kernel"),
        (0, 50, "part of the daemon"),
        (0, 51, "part of the daemon"),
        (0, 40, "has the daemon among its descendants"),
        (
            ALICE,
            200,
            "belongs to user 1001: user 1000 may manage only its own",
        ),
        (ALICE, 100, "is managed already, as client 'encoder' (c0)"),
        (ALICE, 199, "cannot be managed: it has just ended"),
    ] {
        if pid == 199 {
            // Only identifiers are used up, which no client sees.
            let response = ask(&mut world.control, &user(uid), register(pid, None, 1, None));
            let Response::Refused { message } = response else {
                panic!()
            };
            assert!(message.contains(why), "{message}");
            continue;
        }
        let message = world.refused(uid, register(pid, None, 1, None));
        assert!(message.contains(why), "{message}");
    }
    assert_eq!(world.clients(0).len(), 1);

    // Root manages all users' processes, under their users' currencies.
    assert_eq!(
        world.register(0, 200, "backup").tickets,
        [(100, "bob".to_owned())]
    );
    let mut world = World::of(ALICE);
    let message = world.refused(0, register(200, None, 1, None));
    assert!(
        message.contains("this daemon runs as user 1000"),
        "{message}"
    );
}

#[test]
fn a_process_that_cannot_be_managed_leaves_nothing_behind() {
    let mut world = World::of_root();
    ask(
        &mut world.control,
        &user(ALICE),
        register(199, None, 100, None),
    );
    assert_eq!(world.currency_names(0), ["base"]);
    assert!(world.tickets(0, None).is_empty() && world.clients(0).is_empty());
    assert!(world.engine.books().clients.is_empty());
}

/// Processes 101 and 103 are jobs of the shell 100, and 102 is a job's child.
fn host_with_jobs() -> FakeHost {
    let mut host = FakeHost::new(0);
    let parents = [
        (100, 1, 100),
        (101, 100, 101),
        (102, 101, 101),
        (103, 100, 103),
    ];
    for (pid, parent, process_group) in parents {
        let process = host.processes.get_mut(&pid).unwrap();
        process.parent = parent;
        process.process_group = process_group;
        process.session = 100;
        process.has_terminal = true;
    }
    host
}

#[test]
fn a_job_of_a_shell_outside_is_refused_where_it_would_be_stopped() {
    let mut world = World::of_root();
    world.control.host = Box::new(host_with_jobs());
    world.engine.books().stops = true;
    let message = world.refused(ALICE, register(101, None, 1, None));
    assert!(
        message.starts_with("process 101 is a job of the shell 'encoder' (100)"),
        "{message}"
    );
    world.register(ALICE, 102, "child of the job");
    world.engine.books().stops = false;
    world.register(ALICE, 101, "job");
    world.engine.books().stops = true;
    // A shell in a client is stopped before its jobs.
    world.register(ALICE, 100, "shell");
    world.register(ALICE, 103, "job of a client");
}

#[test]
fn a_job_of_a_shell_outside_gets_no_limit_where_pauses_would_stop_it() {
    let mut world = World::of_root();
    world.control.host = Box::new(host_with_jobs());
    world.engine.books().stops_in_pauses = true;
    let half = CpuLimit::from_thousandths(500);
    let limited = |pid| Request::Register {
        pid,
        name: None,
        funding: funding(1, None),
        quantum_ns: None,
        max: half,
        adopts: false,
    };
    let message = world.refused(ALICE, limited(101));
    assert!(
        message.contains("whenever its limit makes it pause"),
        "{message}"
    );
    world.register(ALICE, 101, "job");
    let message = world.refused(ALICE, set_max("job", half));
    assert!(
        message.starts_with("process 101 is a job of the shell"),
        "{message}"
    );
    world.done(ALICE, set_max("job", None));
    world.register(ALICE, 102, "child");
    world.done(ALICE, set_max("child", half));
    world.engine.books().stops_in_pauses = false;
    world.done(ALICE, set_max("job", half));
    // A job that began without a shell outside may have a limit.
    world.engine.books().stops_in_pauses = true;
    world.register(ALICE, 100, "shell");
    world.done(ALICE, set_max("job", None));
    world.done(ALICE, set_max("job", half));
}

#[test]
fn only_a_parent_adopts_the_orphans_of_its_child() {
    let mut world = World::of_root();
    let adopt = |pid| Request::Register {
        pid,
        name: None,
        funding: funding(1, None),
        quantum_ns: None,
        max: None,
        adopts: true,
    };
    let message = world.refused(ALICE, adopt(100));
    assert!(message.contains("process 90 cannot adopt"), "{message}");
    assert!(matches!(world.ask(ALICE, adopt(91)), Response::Client(_)));
    assert_eq!(world.engine.books().adopters.len(), 1);
    assert!(world.engine.books().adopters.contains_key(&ASKER));
}

#[test]
fn clients_are_named_by_identifier_pid_and_name() {
    let mut world = World::of_root();
    world.register(ALICE, 100, "encoder");
    for name in ["c0", "100", "encoder", "client:encoder", "client:c0"] {
        world.done(ALICE, set_tickets(name, 7, None));
    }
    for (name, why) in [
        ("c1", "there is no client c1"),
        ("c0.1", "there is no client c0.1"),
        ("200", "process 200 belongs to user 1001"),
        ("4294967296", "no client named '4294967296'"),
        (
            "encodre",
            "no client named 'encodre': see `prorata ps` for those that exist (did you mean 'encoder'?)",
        ),
        ("alice", "no client named 'alice'"),
        ("currency:alice", "no client named 'currency:alice'"),
    ] {
        let message = world.refused(ALICE, set_tickets(name, 7, None));
        assert!(message.contains(why), "{name}: {message}");
    }
}

#[test]
fn tickets_are_set_in_the_currency_that_is_meant() {
    let mut world = World::of_root();
    world.register(ALICE, 100, "encoder");
    world.created(ALICE, create("work", 0o744));
    world.done(ALICE, set_tickets("encoder", u32::MAX, None));
    assert_eq!(
        world.client_tickets("encoder"),
        [(u32::MAX, "alice".to_owned())]
    );
    world.refused(ALICE, set_tickets("encoder", 0, None));
    let message = world.refused(ALICE, set_tickets("encoder", 1, Some("work")));
    assert!(
        message.contains("holds no tickets of 'work' but 'alice'"),
        "{message}"
    );

    world.created(ALICE, issue(5, "work", Some("encoder")));
    let message = world.refused(ALICE, set_tickets("encoder", 1, None));
    assert!(
        message.contains("holds tickets of 'alice' and 'work'"),
        "{message}"
    );
    // Another user may change neither, and need not choose.
    let message = world.refused(BOB, set_tickets("encoder", 1, None));
    assert!(!message.contains("name one of them"), "{message}");
    world.done(ALICE, set_tickets("encoder", 6, Some("work")));
    let expected = [(u32::MAX, "alice".to_owned()), (6, "work".to_owned())];
    assert_eq!(world.client_tickets("encoder"), expected);

    world.created(ALICE, issue(5, "work", Some("encoder")));
    let message = world.refused(ALICE, set_tickets("encoder", 1, Some("work")));
    assert!(
        message.contains("t2 and t3, both of currency 'work'"),
        "{message}"
    );

    for ticket in ["t1", "t2", "t3"] {
        world.done(
            ALICE,
            Request::DestroyTicket {
                ticket: ticket.into(),
            },
        );
    }
    world.done(ALICE, set_tickets("encoder", 8, Some("work")));
    assert_eq!(world.client_tickets("encoder"), [(8, "work".to_owned())]);

    let Response::Client(report) = world.ask(ALICE, set_tickets("101", 9, None)) else {
        panic!()
    };
    assert_eq!(
        (report.pid, report.tickets),
        (101, vec![(9, "alice".to_owned())])
    );
    let message = world.refused(ALICE, set_tickets("5000", 9, None));
    assert!(message.contains("no process 5000"), "{message}");
}

#[test]
fn a_client_moves_under_another_user() {
    let mut world = World::of_root();
    world.register(0, 300, "server");
    world.created(0, issue(11, "base", Some("server")));
    let change = |user: &str| Request::ChangeUser {
        client: "server".into(),
        user: user.into(),
    };
    world.done(0, change("alice"));
    assert_eq!(world.client_tickets("server"), [(111, "alice".to_owned())]);
    assert_eq!(world.tickets(0, Some("root")), []);

    let most = world.created(0, issue(u32::MAX, "base", Some("server")));
    let message = world.refused(0, change("bob"));
    assert!(
        message.contains("holds 4294967406 tickets together"),
        "{message}"
    );
    world.done(0, Request::DestroyTicket { ticket: most });

    world.register(ALICE, 100, "encoder");
    world.created(0, lend("server", "encoder", 1));
    let message = world.refused(0, change("bob"));
    assert!(message.contains("has 1 of its tickets lent"), "{message}");
    assert!(
        !world.currency_names(0).contains(&"bob".to_owned()),
        "all or nothing"
    );
}

#[test]
fn a_process_without_client_comes_under_another_users_currency() {
    let mut world = World::of_root();
    let change = |client: &str| Request::ChangeUser {
        client: client.into(),
        user: "bob".into(),
    };
    let Response::Client(client) = world.ask(0, change("100")) else {
        panic!("no client")
    };
    assert_eq!(
        (client.owner, client.tickets),
        (ALICE, vec![(100, "bob".to_owned())])
    );
    let message = world.refused(ALICE, change("101"));
    assert!(message.contains("'bob'"), "{message}");
    assert!(world.refused(0, change("7")).contains("no process 7"));
    assert_eq!(world.clients(0).len(), 1);
}

#[test]
fn suspended_clients_say_so_until_they_are_resumed() {
    let mut world = World::of_root();
    world.register(ALICE, 100, "encoder");
    let suspend = Request::Suspend {
        client: "encoder".into(),
    };
    for _ in 0..2 {
        let response = world.ask(ALICE, suspend.clone());
        assert_eq!(response, Response::Suspended { was_stopped: false });
    }
    assert_eq!(world.clients(ALICE)[0].state, ClientState::Suspended);
    assert_eq!(world.engine.books().suspended.len(), 1);
    for _ in 0..2 {
        world.done(
            ALICE,
            Request::Resume {
                client: "encoder".into(),
            },
        );
    }
    assert_eq!(world.clients(ALICE)[0].state, ClientState::Waiting);
    assert!(world.engine.books().suspended.is_empty());
}

fn set_quantum(client: &str, quantum_ns: Option<u64>) -> Request {
    Request::SetQuantum {
        client: client.into(),
        quantum_ns,
    }
}

#[test]
fn a_clients_quantum_is_within_the_common_limits() {
    let mut world = World::of(ALICE);
    let client = world.register(ALICE, 100, "player").id.parse().unwrap();
    assert_eq!(world.clients(ALICE)[0].quantum_ns, None);
    for quantum_ns in [0, 999_999, 1_000_000_001, u64::MAX] {
        let message = world.refused(ALICE, set_quantum("player", Some(quantum_ns)));
        assert!(
            message.ends_with("cannot be enforced: give one from 1ms to 1s"),
            "{message}"
        );
    }
    for quantum_ns in [Some(1_000_000), Some(1_000_000_000), None] {
        world.done(ALICE, set_quantum("player", quantum_ns));
        assert_eq!(world.clients(ALICE)[0].quantum_ns, quantum_ns);
        assert_eq!(world.engine.books().quanta_ns[&client], quantum_ns);
    }
    let message = world.refused(ALICE, set_quantum("plyer", None));
    assert!(message.contains("did you mean 'player'?"), "{message}");
    // The quantum goes with the client.
    world.done(ALICE, set_quantum("player", Some(1_000_000)));
    let release = Request::Release {
        client: "player".into(),
    };
    world.done(ALICE, release);
    assert!(world.control.state.quanta_ns.is_empty());
    assert_eq!(world.register(ALICE, 101, "player").quantum_ns, None);
}

#[test]
fn a_client_is_registered_with_its_quantum_or_not_at_all() {
    let mut world = World::of(ALICE);
    let register = |quantum_ns| Request::Register {
        pid: 100,
        name: Some("player".into()),
        funding: funding(100, None),
        quantum_ns: Some(quantum_ns),
        max: None,
        adopts: false,
    };
    world.refused(ALICE, register(999_999));
    assert!(world.clients(ALICE).is_empty());
    let Response::Client(report) = world.ask(ALICE, register(4_000_000)) else {
        panic!()
    };
    assert_eq!(report.quantum_ns, Some(4_000_000));
    let client = report.id.parse().unwrap();
    assert_eq!(world.engine.books().quanta_ns[&client], Some(4_000_000));
}

/// A long quantum makes other clients wait.
#[test]
fn owners_set_quanta_and_the_daemons_owner_long_ones() {
    let mut world = World::of_root();
    world.register(ALICE, 100, "player");
    let message = world.refused(BOB, set_quantum("player", Some(4_000_000)));
    assert!(
        message.contains("may not change the quantum of client 'player'"),
        "{message}"
    );
    world.done(ALICE, set_quantum("player", Some(20_000_000)));
    let message = world.refused(ALICE, set_quantum("player", Some(20_000_001)));
    assert!(
        message.contains("may not give a client a longer quantum than that of all"),
        "{message}"
    );
    world.done(0, set_quantum("player", Some(20_000_001)));
    world.done(ALICE, set_quantum("player", None));
}

fn set_max(client: &str, max: Option<CpuLimit>) -> Request {
    Request::SetMax {
        client: client.into(),
        max,
    }
}

#[test]
fn a_limit_is_kept_and_shown_until_it_ends() {
    let mut world = World::of(ALICE);
    let half = CpuLimit::from_thousandths(500);
    world.register(ALICE, 100, "backup");
    for max in [half, Some(CpuLimit::LEAST), Some(CpuLimit::MOST), None] {
        world.done(ALICE, set_max("backup", max));
        assert_eq!(world.clients(ALICE)[0].max, max);
    }
    let message = world.refused(ALICE, set_max("bakup", half));
    assert!(message.contains("did you mean 'backup'?"), "{message}");
    let register = Request::Register {
        pid: 101,
        name: Some("index".into()),
        funding: funding(100, None),
        quantum_ns: None,
        max: half,
        adopts: false,
    };
    let Response::Client(report) = world.ask(ALICE, register) else {
        panic!()
    };
    assert_eq!(report.max, half);
}

#[test]
fn only_a_clients_owner_limits_it() {
    let mut world = World::of_root();
    world.register(ALICE, 100, "backup");
    let half = CpuLimit::from_thousandths(500);
    let message = world.refused(BOB, set_max("backup", half));
    assert!(
        message.contains("user 1001 may not limit client 'backup'"),
        "{message}"
    );
    world.done(0, set_max("backup", half));
    world.done(ALICE, set_max("backup", None));
}
