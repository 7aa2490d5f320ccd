//! What users run without a request.

use super::*;

const UNMANAGEABLE: u32 = 199;

fn sweeping() -> World {
    let directory = fast_directory();
    let engine = FakeEngine::default();
    let mut host = FakeHost::new(0);
    // The engine of these tests knows no descendants.
    host.processes.remove(&91);
    let control = control(directory.path(), host, &engine);
    let mut world = World {
        control,
        engine,
        _directory: directory,
    };
    assert!(matches!(
        world.ask(0, manage_users()),
        Response::Status(status) if status.users
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
    // Nothing is new but the process that cannot be managed.
    world.control.sweep_users();
    assert_eq!(world.pids(ALICE), expected);
    assert_eq!(world.names().len(), 3);
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
    let path = world._directory.path().join("journal");
    let opened = crate::journal::Journal::open(path, "boot".into()).unwrap();
    let (state, _) = opened.found.unwrap();
    assert_eq!(image(&state), image(&world.control.state));
    assert!(state.settings.users);
    world.done(0, Request::Stop);
    assert!(!world.control.state.settings.users);
    assert!(world.control.state.rests.is_empty());
}
