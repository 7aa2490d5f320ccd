//! What users run without a request.

use std::time::Duration;

use prorata_core::ids::ClientId;
use prorata_protocol::{CpuLimit, UsersReport};

use super::*;
use crate::engine::Engine as _;
use crate::host::{CpuUse, Host as _, Origin};

const UNMANAGEABLE: u32 = 199;

/// A daemon on this host, without anything yet.
fn over(host: FakeHost) -> World {
    let directory = fast_directory();
    let engine = FakeEngine::default();
    let now_ns = Rc::clone(&host.now_ns);
    World {
        control: control(directory.path(), host, &engine),
        engine,
        now_ns,
        directory,
    }
}

fn sweeping() -> World {
    let mut host = FakeHost::new(0);
    // The engine of these tests knows no descendants.
    host.processes.remove(&91);
    let mut world = over(host);
    assert!(matches!(
        world.ask(0, manage_users()),
        Response::Status(status) if status.users == Some(UsersReport { left_out: 0 })
    ));
    world
}

fn manage_users() -> Request {
    Request::Configure {
        quantum_ns: None,
        policy: None,
        hybrid: None,
        stay: true,
        users: true,
    }
}

impl World {
    fn journal(&self) -> std::path::PathBuf {
        self.directory.path().join("journal")
    }

    fn id(&self, name: &str) -> Option<ClientId> {
        self.control.state.ledger.find_client(name)
    }

    /// Processes that are in no client though they should.
    fn left_out(&mut self) -> u32 {
        let Response::Status(status) = self.ask(0, Request::Status) else {
            panic!("no status")
        };
        status.users.map_or(0, |users| users.left_out)
    }

    /// Pids of the processes of a client.
    fn pids(&self, user: u32) -> Vec<u32> {
        let client = self.control.state.rests[&user];
        let books = self.engine.books();
        books.clients[&client].iter().map(|id| id.pid).collect()
    }

    /// All processes of the client of what a user runs end.
    fn end_rest(&mut self, user: u32) {
        let client = self.control.state.rests[&user];
        let processes = self.engine.books().clients[&client].clone();
        for process in processes {
            self.engine.end(process);
        }
        self.control.remove_exited();
    }

    fn names(&mut self) -> Vec<String> {
        let clients = self.clients(0).into_iter();
        clients.map(|client| client.name).collect()
    }
}

fn release(client: &str) -> Request {
    Request::Release {
        client: client.into(),
    }
}

fn set_funding(user: &str, amount: u32) -> Request {
    Request::SetFunding {
        user: user.into(),
        amount,
    }
}

#[test]
fn what_users_run_is_a_client_of_each() {
    let mut world = sweeping();
    world.register(ALICE, 100, "mine");
    world.control.sweep_users();
    assert_eq!(world.names(), ["mine", "rest-of-alice", "rest-of-bob"]);
    let expected: Vec<u32> = [ASKER].into_iter().chain(101..UNMANAGEABLE).collect();
    assert_eq!(world.pids(ALICE), expected);
    assert_eq!(world.pids(BOB), (200..300).collect::<Vec<_>>());
    assert_eq!(
        world.client_tickets("rest-of-bob"),
        [(100, "bob".to_owned())]
    );
    // Nothing is new, and the journal learns nothing of the process that cannot be managed.
    let journal = std::fs::read(world.journal()).unwrap();
    for _ in 0..40 {
        world.control.sweep_users();
    }
    assert_eq!(world.pids(ALICE), expected);
    assert_eq!(world.names().len(), 3);
    assert_eq!(std::fs::read(world.journal()).unwrap(), journal);
    assert_eq!(world.left_out(), 1);
    // Each user was asked for once, before there was a client.
    assert_eq!(world.engine.books().questions, 2);
}

#[test]
fn what_a_user_runs_can_be_named_for_a_client() {
    let mut world = sweeping();
    world.control.sweep_users();
    world.register(ALICE, 100, "mine");
    assert_eq!(world.engine.find(100), world.id("mine"));
    // By its pid, a process is in no client.
    for pid in ["102", "103"] {
        let refused = world.refused(ALICE, release(pid));
        assert!(refused.contains("not managed"), "{refused}");
    }
    let set = Request::SetTickets {
        client: "102".into(),
        funding: funding(300, None),
    };
    let Response::Client(client) = world.ask(ALICE, set) else {
        panic!("a new client")
    };
    assert_eq!(
        world.client_tickets(&client.name),
        [(300, "alice".to_owned())]
    );
    let change = Request::ChangeUser {
        client: "104".into(),
        user: "alice".into(),
    };
    assert!(matches!(world.ask(0, change), Response::Client(_)));
    let rest = world.pids(ALICE);
    assert!([100, 102, 104].iter().all(|pid| !rest.contains(pid)));
    // Others may not, and the client itself can be named.
    assert!(
        world
            .refused(BOB, register(105, None, 100, None))
            .contains("105")
    );
    let tickets = Request::SetTickets {
        client: "rest-of-alice".into(),
        funding: funding(50, None),
    };
    world.done(ALICE, tickets);
    // What is released comes back.
    world.done(ALICE, release("mine"));
    world.control.sweep_users();
    assert!(world.pids(ALICE).contains(&100));
}

#[test]
fn a_process_that_changes_its_user_changes_its_client() {
    let host = FakeHost::new(0);
    let mut world = over(host.clone());
    world.ask(0, manage_users());
    world.control.sweep_users();
    let mut changed = host;
    changed.add(100, 1, BOB, "any");
    changed.add(101, 1, 0, "any");
    changed.add(102, 1, 65_534, "any");
    world.control.host = Box::new(changed);
    world.control.sweep_users();
    assert!(world.pids(BOB).contains(&100));
    let alices = world.pids(ALICE);
    assert!((100..=102).all(|pid| !alices.contains(&pid)));
    assert_eq!([101, 102].map(|pid| world.engine.find(pid)), [None; 2]);
}

/// Such a process is root's from the start as far as a sweep knows, as is that of `sudo`, or it keeps
/// its real user.
#[test]
fn programs_with_roots_rights_leave_the_client_that_they_were_born_to() {
    let mut world = sweeping();
    world.control.sweep_users();
    let client = world.control.state.rests[&ALICE];
    let mut host = FakeHost::new(0);
    host.processes.remove(&91);
    host.add(400, 101, 0, "sudo");
    host.add(401, 101, ALICE, "passwd");
    let of_passwd = Origin {
        effective_uid: 0,
        ..host.origin(401).unwrap()
    };
    host.origins.insert(401, of_passwd);
    host.owners.insert(401, 0);
    // Not to be looked into, but alice's all the same.
    host.add(402, 101, ALICE, "agent");
    host.owners.insert(402, 0);
    let of_agent = Origin {
        effective_uid: ALICE,
        ..host.origin(402).unwrap()
    };
    host.origins.insert(402, of_agent);
    for pid in [400, 401, 402] {
        let process = host.process(pid).unwrap().id;
        let mut books = world.engine.books();
        books.clients.get_mut(&client).unwrap().push(process);
    }
    world.control.host = Box::new(host);
    world.control.sweep_users();
    let rest = world.pids(ALICE);
    let stay = [400, 401, 402].map(|pid| rest.contains(&pid));
    assert_eq!(stay, [false, false, true]);
    world.control.sweep_users();
    assert_eq!([400, 401].map(|pid| world.engine.find(pid)), [None; 2]);
}

#[test]
fn nobody_takes_what_users_run_out_of_the_competition() {
    let mut world = sweeping();
    world.control.sweep_users();
    let client = || "rest-of-alice".to_owned();
    let limit = Request::SetMax {
        client: client(),
        max: CpuLimit::from_thousandths(500),
    };
    for (request, what) in [
        (release("rest-of-alice"), "nobody can release it"),
        (
            Request::Suspend { client: client() },
            "nobody can suspend it",
        ),
        (limit, "nobody can limit it"),
    ] {
        for user in [ALICE, 0] {
            let refused = world.refused(user, request.clone());
            assert!(refused.contains(what), "{refused}");
        }
    }
}

/// Its `prorata run` was stopped, and something else continued its programs.
#[test]
fn a_suspended_client_competes_again_once_its_programs_run() {
    let mut world = sweeping();
    world.register(ALICE, 100, "mine");
    let mut host = FakeHost::new(0);
    host.processes.remove(&91);
    host.stopped.insert(100);
    world.control.host = Box::new(host.clone());
    let suspend = Request::Suspend {
        client: "mine".into(),
    };
    assert!(matches!(
        world.ask(ALICE, suspend),
        Response::Suspended { .. }
    ));
    world.control.sweep_users();
    assert_eq!(world.engine.books().suspended.len(), 1);
    host.stopped.clear();
    world.control.host = Box::new(host);
    world.control.sweep_users();
    assert!(world.engine.books().suspended.is_empty());
    assert!(world.control.state.suspended.is_empty());
    // That its user continues it then is no error.
    let resume = Request::Resume {
        client: "mine".into(),
    };
    world.done(ALICE, resume);
}

#[test]
fn what_is_released_joins_at_the_next_sweep_though_it_did_not_before() {
    let mut world = sweeping();
    world.engine.books().stops = true;
    world.control.sweep_users();
    assert_eq!(world.left_out(), 201);
    world.engine.books().stops = false;
    world.register(ALICE, 100, "mine");
    world.done(ALICE, release("mine"));
    world.control.sweep_users();
    assert!(world.pids(ALICE).contains(&100));
}

#[test]
fn many_users_get_their_clients_one_after_another() {
    let mut host = FakeHost::new(0);
    (0..200).for_each(|user| host.add(1_000 + user, 1, 2_000 + user, "any"));
    let mut world = over(host);
    world.ask(0, manage_users());
    world.control.sweep_users();
    assert_eq!(world.control.state.rests.len(), 64);
    for _ in 0..3 {
        world.control.sweep_users();
    }
    // And alice, and bob.
    assert_eq!(world.control.state.rests.len(), 202);
    assert!(world.names().contains(&"rest-of-uid2199".to_owned()));
}

#[test]
fn processes_that_logins_need_are_left_alone() {
    let mut host = FakeHost::new(0);
    for pid in [100, 101, 102] {
        let origin = Origin {
            control_group: "/user.slice/user@1000.service/init.scope".into(),
            ..host.origin(pid).unwrap()
        };
        host.origins.insert(pid, origin);
    }
    let sudo = Origin {
        effective_uid: 0,
        ..host.origin(103).unwrap()
    };
    host.origins.insert(103, sudo);
    let mut world = over(host);
    world.ask(0, manage_users());
    world.control.sweep_users();
    let rest = world.pids(ALICE);
    // A third one may hide there.
    let left_alone = [100, 101, 102, 103].map(|pid| !rest.contains(&pid));
    assert_eq!(left_alone, [true, true, false, true]);
    assert_eq!(world.left_out(), 1, "the one that cannot be managed");
}

/// Its user can choose its control group.
#[test]
fn a_process_of_the_service_manager_that_computes_is_not_left_alone() {
    let mut host = FakeHost::new(0);
    let origin = Origin {
        control_group: "/user.slice/user@1000.service/init.scope".into(),
        ..host.origin(100).unwrap()
    };
    host.origins.insert(100, origin);
    let mut world = sweeping();
    world.control.host = Box::new(host.clone());
    world.control.sweep_users();
    assert!(!world.pids(ALICE).contains(&100));
    let use_of = CpuUse {
        used: Duration::from_secs(1),
        at: Duration::from_secs(1),
    };
    host.cpu_uses.insert(100, use_of);
    world.control.host = Box::new(host);
    world.control.sweep_users();
    assert!(world.pids(ALICE).contains(&100));
    // Nor does it leave again by a client of its own.
    world
        .engine
        .let_out(&[world.control.host.process(100).unwrap().id]);
    world.register(ALICE, 100, "mine");
    world.done(ALICE, release("mine"));
    world.control.sweep_users();
    assert!(world.pids(ALICE).contains(&100));
}

#[test]
fn the_client_goes_with_its_last_process_and_so_does_the_currency() {
    let mut world = sweeping();
    world.control.sweep_users();
    assert_eq!(world.currency_names(0), ["base", "alice", "bob"]);
    world.end_rest(BOB);
    assert_eq!(world.names(), ["rest-of-alice"]);
    assert_eq!(world.currency_names(0), ["base", "alice"]);
    assert!(!world.control.state.rests.contains_key(&BOB));
    world.control.sweep_users();
    assert_eq!(world.names(), ["rest-of-alice", "rest-of-bob"]);
}

#[test]
fn funding_that_was_set_is_remembered() {
    let mut world = sweeping();
    world.control.sweep_users();
    world.done(0, set_funding("bob", 300));
    world.end_rest(BOB);
    assert_eq!(world.currency_names(0), ["base", "alice"]);
    world.control.sweep_users();
    let base = world.tickets(0, Some("base"));
    let backs_bob = |ticket: &&TicketReport| {
        ticket
            .target
            .as_deref()
            .is_some_and(|to| to.ends_with("bob"))
    };
    let of_bob = base.iter().find(backs_bob);
    assert_eq!(of_bob.map(|ticket| ticket.amount), Some(300));
}

#[test]
fn a_currency_that_is_used_stays() {
    let mut world = sweeping();
    world.register(ALICE, 100, "mine");
    world.control.sweep_users();
    world.end_rest(ALICE);
    assert_eq!(world.names(), ["mine", "rest-of-bob"]);
    assert_eq!(world.currency_names(0), ["base", "alice", "bob"]);
    // Its own last client takes it along.
    let mine = world.control.state.ledger.find_client("mine").unwrap();
    let process = world.engine.books().clients[&mine][0];
    world.engine.end(process);
    world.control.remove_exited();
    assert_eq!(world.currency_names(0), ["base", "bob"]);
    // A ticket in it keeps it.
    world.created(
        BOB,
        Request::Issue {
            funding: funding(5, Some("bob")),
            target: None,
        },
    );
    world.end_rest(BOB);
    assert_eq!(world.currency_names(0), ["base", "bob"]);
}

#[test]
fn processes_that_would_be_stopped_by_signals_are_left_alone() {
    let mut world = sweeping();
    world.engine.books().stops = true;
    world.control.sweep_users();
    assert_eq!(world.names(), [""; 0]);
    assert_eq!(world.currency_names(0), ["base"]);
    assert_eq!(world.left_out(), 201);
    // They are tried again, in turn.
    world.engine.books().stops = false;
    for _ in 0..16 {
        world.control.sweep_users();
    }
    assert_eq!(world.names(), ["rest-of-alice", "rest-of-bob"]);
    assert_eq!(world.left_out(), 1);
}

#[test]
fn only_roots_daemon_manages_what_users_run() {
    let mut world = World::of(ALICE);
    let message = world.refused(ALICE, manage_users());
    assert!(
        message.starts_with("only root's daemon can manage what users run"),
        "{message}"
    );
    let mut world = World::of_root();
    let message = world.refused(ALICE, manage_users());
    assert!(
        message.contains("change how the daemon decides"),
        "{message}"
    );
}

#[test]
fn a_stop_ends_it_and_a_restart_does_not() {
    let mut world = sweeping();
    world.control.sweep_users();
    let opened = crate::journal::Journal::open(world.journal(), "boot".into()).unwrap();
    let (mut state, _) = opened.found.unwrap();
    assert_eq!(image(&state), image(&world.control.state));
    // The next daemon begins anew, with the currencies that there are.
    let users = crate::restore::reconcile(&mut state, true);
    assert_eq!(users, [ALICE, BOB]);
    assert!(state.settings.users && state.rests.is_empty());
    assert_eq!(state.ledger.clients().count(), 0);
    assert_eq!(state.ledger.currencies().count(), 3);
    crate::restore::reconcile(&mut state, false);
    assert!(!state.settings.users);
    world.done(0, Request::Stop);
    assert!(!world.control.state.settings.users);
    assert!(world.control.state.rests.is_empty());
    // The currencies that were made for those clients go, if nothing else needs them.
    let mut journal = opened.journal;
    journal.rewrite(&state).unwrap();
    let mut next = control(world.directory.path(), FakeHost::new(0), &world.engine);
    users
        .into_iter()
        .for_each(|user| next.collect_currency(user));
    assert_eq!(next.state.ledger.currencies().count(), 1);
}
