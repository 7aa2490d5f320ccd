//! What each request does, and whom it is refused, on a made-up machine.

use crate::control::Control;
use crate::peer::Peer;
use crate::protocol::{
    ClientReport, ClientState, CurrencyReport, Funding, PolicyKind, Request, Response,
    TicketReport, TransferPortion,
};
use crate::testing::{
    ALICE, ASKER, BOB, FakeEngine, FakeHost, ask, control, fast_directory, image, user,
};

/// A daemon on a made-up machine.
struct World {
    control: Control,
    engine: FakeEngine,
    _directory: tempfile::TempDir,
}

impl World {
    /// Root's daemon, which serves everybody.
    fn of_root() -> World {
        Self::of(0)
    }

    fn of(daemon_uid: u32) -> World {
        let directory = fast_directory();
        let engine = FakeEngine::default();
        let control = control(directory.path(), FakeHost::new(daemon_uid), &engine);
        World {
            control,
            engine,
            _directory: directory,
        }
    }

    fn ask(&mut self, uid: u32, request: Request) -> Response {
        self.ask_as(&user(uid), request)
    }

    fn ask_as(&mut self, peer: &Peer, request: Request) -> Response {
        let before = image(&self.control.state);
        let response = ask(&mut self.control, peer, request);
        if matches!(response, Response::Refused { .. }) {
            assert_eq!(
                before,
                image(&self.control.state),
                "{response:?} changed something"
            );
        }
        response
    }

    fn done(&mut self, uid: u32, request: Request) {
        assert_eq!(self.ask(uid, request), Response::Done);
    }

    fn created(&mut self, uid: u32, request: Request) -> String {
        match self.ask(uid, request) {
            Response::Created(id) => id,
            other => panic!("{other:?}"),
        }
    }

    fn refused(&mut self, uid: u32, request: Request) -> String {
        match self.ask(uid, request) {
            Response::Refused { message } => message,
            other => panic!("{other:?}"),
        }
    }

    fn register(&mut self, uid: u32, pid: u32, name: &str) -> ClientReport {
        match self.ask(uid, register(pid, Some(name), 100, None)) {
            Response::Client(report) => report,
            other => panic!("{other:?}"),
        }
    }

    fn clients(&mut self, uid: u32) -> Vec<ClientReport> {
        match self.ask(uid, Request::Clients) {
            Response::Clients(clients) => clients,
            other => panic!("{other:?}"),
        }
    }

    fn client_tickets(&mut self, name: &str) -> Vec<(u32, String)> {
        let clients = self.clients(0);
        clients
            .into_iter()
            .find(|client| client.name == name)
            .unwrap()
            .tickets
    }

    fn currencies(&mut self, uid: u32) -> Vec<CurrencyReport> {
        match self.ask(uid, Request::Currencies) {
            Response::Currencies(currencies) => currencies,
            other => panic!("{other:?}"),
        }
    }

    fn currency_names(&mut self, uid: u32) -> Vec<String> {
        self.currencies(uid)
            .into_iter()
            .map(|currency| currency.name)
            .collect()
    }

    fn tickets(&mut self, uid: u32, currency: Option<&str>) -> Vec<TicketReport> {
        let currency = currency.map(str::to_owned);
        match self.ask(uid, Request::Tickets { currency }) {
            Response::Tickets(tickets) => tickets,
            other => panic!("{other:?}"),
        }
    }
}

fn register(pid: u32, name: Option<&str>, amount: u32, currency: Option<&str>) -> Request {
    let (name, funding) = (name.map(str::to_owned), funding(amount, currency));
    Request::Register {
        pid,
        name,
        funding,
        adopts: false,
    }
}

fn funding(amount: u32, currency: Option<&str>) -> Funding {
    Funding {
        amount,
        currency: currency.map(str::to_owned),
    }
}

fn set_tickets(client: &str, amount: u32, currency: Option<&str>) -> Request {
    Request::SetTickets {
        client: client.into(),
        funding: funding(amount, currency),
    }
}

fn create(name: &str, mode: u16) -> Request {
    Request::CreateCurrency {
        name: name.into(),
        owner: None,
        mode: Some(mode),
    }
}

fn issue(amount: u32, currency: &str, target: Option<&str>) -> Request {
    let target = target.map(str::to_owned);
    Request::Issue {
        funding: funding(amount, Some(currency)),
        target,
    }
}

fn lend(from: &str, to: &str, amount: u32) -> Request {
    Request::Transfer {
        from: from.into(),
        portion: TransferPortion::Part {
            currency: None,
            shares: vec![(to.into(), amount)],
        },
        hold: false,
    }
}

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
fn names_are_made_unique_and_fit_what_is_run() {
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
            // It takes up identifiers, which nobody can see.
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

    // Root manages whose processes it wants, under their users' currencies.
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

#[test]
fn only_a_parent_adopts_the_orphans_of_its_child() {
    let mut world = World::of_root();
    let adopt = |pid| Request::Register {
        pid,
        name: None,
        funding: funding(1, None),
        adopts: true,
    };
    let message = world.refused(ALICE, adopt(100));
    assert!(
        message.contains("is no child of the asker, process 90"),
        "{message}"
    );
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
fn targets_that_fit_two_are_refused_by_naming_both() {
    let mut world = World::of_root();
    world.register(ALICE, 100, "play");
    world.created(ALICE, create("play", 0o744));
    let message = world.refused(ALICE, issue(1, "alice", Some("play")));
    let both = "'play' names client c0 and currency u2: write client:play or currency:play";
    assert_eq!(message, both);
    world.created(ALICE, issue(1, "alice", Some("client:play")));
    world.created(ALICE, issue(1, "alice", Some("currency:play")));
    let message = world.refused(ALICE, issue(1, "alice", Some("ply")));
    assert!(
        message.starts_with("neither a client nor a currency is named 'ply'"),
        "{message}"
    );
    assert!(message.ends_with("(did you mean 'play'?)"), "{message}");
}

#[test]
fn the_papers_verbs_work_on_tickets() {
    let mut world = World::of_root();
    world.register(ALICE, 100, "encoder");
    world.created(ALICE, create("work", 0o744));
    let ticket = world.created(ALICE, issue(30, "alice", None));
    let fund = |target: &str| Request::Fund {
        ticket: ticket.clone(),
        target: target.into(),
    };
    world.done(ALICE, fund("work"));
    let target = |world: &mut World| {
        let tickets = world.tickets(ALICE, Some("alice"));
        tickets
            .into_iter()
            .find(|one| one.id == ticket)
            .unwrap()
            .target
    };
    assert_eq!(target(&mut world).as_deref(), Some("currency:work"));
    world.done(ALICE, fund("encoder"));
    assert_eq!(target(&mut world).as_deref(), Some("client:encoder"));
    world.done(
        ALICE,
        Request::Unfund {
            ticket: ticket.clone(),
        },
    );
    assert_eq!(target(&mut world), None);
    world.done(
        ALICE,
        Request::SetAmount {
            ticket: ticket.clone(),
            amount: 9,
        },
    );
    let message = world.refused(
        ALICE,
        Request::SetAmount {
            ticket: ticket.clone(),
            amount: 0,
        },
    );
    assert!(message.contains("an amount is zero"), "{message}");
    let message = world.refused(
        ALICE,
        Request::DestroyCurrency {
            name: "alice".into(),
        },
    );
    assert!(message.contains("currency 'alice' has issued"), "{message}");
    world.done(
        ALICE,
        Request::DestroyTicket {
            ticket: ticket.clone(),
        },
    );
    let message = world.refused(ALICE, Request::DestroyTicket { ticket });
    assert!(message.contains("there is no ticket"), "{message}");
    let message = world.refused(
        ALICE,
        Request::DestroyTicket {
            ticket: "seven".into(),
        },
    );
    assert!(
        message.contains("'seven' is no ticket: give an identifier such as t3"),
        "{message}"
    );
    world.done(
        ALICE,
        Request::DestroyCurrency {
            name: "work".into(),
        },
    );
    let message = world.refused(ALICE, Request::DestroyCurrency { name: "wrk".into() });
    assert!(message.contains("no currency named 'wrk'"), "{message}");
}

#[test]
fn a_cycle_is_refused_by_naming_it() {
    let mut world = World::of_root();
    for name in ["one", "two"] {
        world.created(ALICE, create(name, 0o744));
    }
    world.created(ALICE, issue(1, "one", Some("two")));
    let message = world.refused(ALICE, issue(1, "two", Some("one")));
    assert!(message.contains("one -> two -> one"), "{message}");
}

#[test]
fn currencies_have_owners_modes_and_fit_names() {
    let mut world = World::of_root();
    world.created(ALICE, create("work", 0o744));
    let message = world.refused(ALICE, create("work", 0o744));
    assert!(
        message.contains("currency 'work' exists already"),
        "{message}"
    );
    for name in ["", "u3", "12", "currency:x", "-x", "a\nb", &"x".repeat(65)] {
        world.refused(ALICE, create(name, 0o744));
    }
    world.created(ALICE, create(&"x".repeat(64), 0o777));
    let message = world.refused(ALICE, create("odd", 0o1000));
    assert!(
        message.contains("mode 1000 is not three octal digits"),
        "{message}"
    );
    let message = world.refused(ALICE, create("bob", 0o744));
    assert_eq!(
        message,
        "currency name 'bob' is kept for user 1001: choose another name"
    );
    world.refused(ALICE, create("uid4711", 0o744));
    world.created(ALICE, create("alice", 0o744));
    let for_bob = Request::CreateCurrency {
        name: "b".into(),
        owner: Some(BOB),
        mode: None,
    };
    let message = world.refused(ALICE, for_bob.clone());
    assert!(
        message.contains("may not create 'b' for user 1001"),
        "{message}"
    );
    world.created(0, for_bob);
    // Nobody else is on a daemon of one user, so names are its own affair.
    World::of(ALICE).created(ALICE, create("bob", 0o744));
}

#[test]
fn modes_say_who_may_read_fund_and_issue() {
    let mut world = World::of_root();
    world.register(ALICE, 100, "encoder");
    world.register(BOB, 200, "backup");
    for (name, mode) in [
        ("closed", 0o700),
        ("shown", 0o744),
        ("open", 0o777),
        ("backed", 0o746),
    ] {
        world.created(ALICE, create(name, mode));
        world.created(ALICE, issue(1, name, None));
    }
    let visible = world.currency_names(BOB);
    assert!(!visible.contains(&"closed".to_owned()) && visible.contains(&"shown".to_owned()));
    let message = world.refused(
        BOB,
        Request::Tickets {
            currency: Some("closed".into()),
        },
    );
    assert!(
        message.contains("user 1001 may not read currency 'closed'"),
        "{message}"
    );
    assert!(
        world
            .tickets(BOB, None)
            .iter()
            .all(|ticket| ticket.currency != "closed")
    );
    for name in ["closed", "shown", "backed"] {
        let message = world.refused(BOB, issue(1, name, Some("backup")));
        assert!(message.contains("may not issue tickets in"), "{message}");
    }
    world.created(BOB, issue(1, "open", Some("backup")));
    world.created(BOB, issue(1, "bob", Some("backed")));
    let message = world.refused(BOB, issue(1, "bob", Some("shown")));
    assert!(
        message.contains("may not fund currency 'shown'"),
        "{message}"
    );
    for request in [
        issue(1, "bob", Some("encoder")),
        Request::Release {
            client: "encoder".into(),
        },
        Request::Suspend {
            client: "encoder".into(),
        },
        Request::Resume {
            client: "encoder".into(),
        },
        set_tickets("encoder", 1, None),
        lend("encoder", "backup", 1),
        Request::ChangeUser {
            client: "encoder".into(),
            user: "bob".into(),
        },
        Request::DestroyCurrency {
            name: "shown".into(),
        },
        Request::SetFunding {
            user: "bob".into(),
            amount: 5_000,
        },
        Request::SetFunding {
            user: "1002".into(),
            amount: 5_000,
        },
        Request::Configure {
            quantum_ns: Some(5_000_000),
            policy: None,
        },
        Request::Stop,
    ] {
        let message = world.refused(BOB, request);
        assert!(message.contains("may not"), "{message}");
    }
    assert_eq!(
        world.currency_names(0).len(),
        7,
        "no currency was made for user 1002"
    );
}

#[test]
fn clients_are_shown_to_their_owners_and_to_readers_of_their_currencies() {
    let mut world = World::of_root();
    world.register(ALICE, 100, "public");
    world.created(ALICE, create("closed", 0o700));
    let private = register(101, Some("private"), 5, Some("closed"));
    assert!(matches!(world.ask(ALICE, private), Response::Client(_)));
    world.created(ALICE, issue(7, "closed", Some("public")));
    let names = |world: &mut World, uid| -> Vec<String> {
        world
            .clients(uid)
            .into_iter()
            .map(|client| client.name)
            .collect()
    };
    assert_eq!(names(&mut world, ALICE), ["public", "private"]);
    assert_eq!(names(&mut world, 0), ["public", "private"]);
    assert_eq!(names(&mut world, BOB), ["public"]);
    assert_eq!(world.clients(BOB)[0].tickets, [(100, "alice".to_owned())]);
    assert_eq!(world.clients(ALICE)[0].tickets.len(), 2);
    // Nor are those suggested who are not shown.
    world.register(BOB, 200, "backup");
    let message = world.refused(BOB, set_tickets("privat", 1, None));
    assert!(!message.contains("did you mean"), "{message}");
    let message = world.refused(BOB, set_tickets("publik", 1, None));
    assert!(message.contains("did you mean 'public'"), "{message}");
    world.created(ALICE, lend("private", "public", 1));
    world.created(
        ALICE,
        Request::Transfer {
            from: "public".into(),
            portion: TransferPortion::Part {
                currency: Some("alice".into()),
                shares: vec![("private".into(), 1)],
            },
            hold: false,
        },
    );
    let Response::Transfers(transfers) = world.ask(BOB, Request::Transfers) else {
        panic!()
    };
    assert_eq!(transfers.len(), 1, "{transfers:?}");
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
fn borrowed_tickets_are_not_set() {
    let mut world = World::of_root();
    world.register(ALICE, 100, "giver");
    world.register(ALICE, 101, "taker");
    world.created(ALICE, lend("giver", "taker", 40));
    assert_eq!(world.client_tickets("giver"), [(60, "alice".to_owned())]);
    world.done(ALICE, set_tickets("taker", 10, None));
    let taken = [(10, "alice".to_owned()), (40, "alice".to_owned())];
    assert_eq!(world.client_tickets("taker"), taken);
    let message = world.refused(ALICE, set_tickets("giver", 39, None));
    assert!(
        message.contains("cannot shrink to 39 while 40 of it are lent"),
        "{message}"
    );
    world.done(
        ALICE,
        Request::EndTransfer {
            transfer: "x0".into(),
        },
    );
    assert_eq!(world.client_tickets("giver"), [(100, "alice".to_owned())]);
}

#[test]
fn funding_resizes_what_backs_a_user() {
    let mut world = World::of_root();
    let set = |user: &str, amount| Request::SetFunding {
        user: user.into(),
        amount,
    };
    let backing = |world: &mut World, name: &str| -> Vec<u32> {
        let target = Some(format!("currency:{name}"));
        let tickets = world.tickets(0, Some("base")).into_iter();
        tickets
            .filter(|ticket| ticket.target == target)
            .map(|ticket| ticket.amount)
            .collect()
    };
    world.done(0, set("alice", 3_000));
    assert_eq!(backing(&mut world, "alice"), [3_000]);
    world.done(0, set("1000", 4_000));
    assert_eq!(backing(&mut world, "alice"), [4_000]);
    world.done(0, set("1002", 5_000));
    assert_eq!(backing(&mut world, "uid1002"), [5_000]);
    world.done(
        0,
        Request::Unfund {
            ticket: "t0".into(),
        },
    );
    world.done(0, set("alice", 6_000));
    assert_eq!(backing(&mut world, "alice"), [6_000]);
    world.created(0, issue(1, "base", Some("alice")));
    let message = world.refused(0, set("alice", 7_000));
    assert!(
        message.contains("is backed by base tickets t2 and t3"),
        "{message}"
    );
    world.refused(0, set("bob", 0));
    for nobody in ["carol", "-1", "4294967295", "4294967296", ""] {
        let message = world.refused(0, set(nobody, 1));
        assert!(message.starts_with("no user named"), "{message}");
    }
    // On a daemon of her own alice owns the base.
    World::of(ALICE).done(ALICE, set("alice", 10));
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
fn transfers_are_listed_and_lent_in_parts_or_whole() {
    let mut world = World::of_root();
    for (pid, name) in [(100, "a"), (101, "b"), (102, "c")] {
        world.register(ALICE, pid, name);
    }
    let whole = Request::Transfer {
        from: "a".into(),
        portion: TransferPortion::Whole(vec!["b".into(), "c".into()]),
        hold: false,
    };
    assert_eq!(world.created(ALICE, whole), "x0");
    let Response::Transfers(transfers) = world.ask(ALICE, Request::Transfers) else {
        panic!()
    };
    let share = |target: &str| (target.to_owned(), "alice".to_owned(), 50);
    assert_eq!(transfers[0].shares, [share("client:b"), share("client:c")]);
    assert_eq!(transfers[0].from, "a");
    assert_eq!(world.client_tickets("a"), [(0, "alice".to_owned())]);
    for (request, why) in [
        (lend("b", "b", 1), "would transfer tickets to itself"),
        (lend("b", "c", 151), "not 151"),
        (lend("b", "c", 0), "an amount is zero"),
        (
            lend("b", "nobody", 1),
            "neither a client nor a currency is named 'nobody'",
        ),
        (
            Request::EndTransfer {
                transfer: "x1".into(),
            },
            "there is no transfer x1",
        ),
        (
            Request::EndTransfer {
                transfer: "a".into(),
            },
            "'a' is no transfer",
        ),
    ] {
        let message = world.refused(ALICE, request);
        assert!(message.contains(why), "{message}");
    }
    world.done(
        ALICE,
        Request::EndTransfer {
            transfer: "x0".into(),
        },
    );
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

#[test]
fn the_way_of_deciding_is_changed_live_within_its_limits() {
    let mut world = World::of(ALICE);
    let configure = |quantum_ns, policy| Request::Configure { quantum_ns, policy };
    for quantum_ns in [0, 999_999, 1_000_000_001, u64::MAX] {
        let message = world.refused(ALICE, configure(Some(quantum_ns), None));
        assert!(message.contains("cannot be enforced"), "{message}");
    }
    for policy in [
        PolicyKind::Lottery,
        PolicyKind::HierarchicalStride,
        PolicyKind::ClassLottery,
        PolicyKind::Stride,
    ] {
        for quantum_ns in [1_000_000, 1_000_000_000] {
            let Response::Status(status) =
                world.ask(ALICE, configure(Some(quantum_ns), Some(policy)))
            else {
                panic!()
            };
            assert_eq!((status.quantum_ns, status.policy), (quantum_ns, policy));
        }
    }
    let Response::Status(status) = world.ask(ALICE, configure(None, Some(PolicyKind::Lottery)))
    else {
        panic!()
    };
    assert_eq!(
        (status.quantum_ns, status.policy),
        (1_000_000_000, PolicyKind::Lottery)
    );
    let machine = world.control.dispatcher.lock().unwrap().machine();
    assert_eq!(machine.quantum_ns, 1_000_000_000);
    // Asking for what is so already is asking for the status.
    assert!(matches!(
        world.ask(BOB, configure(None, None)),
        Response::Status(_)
    ));
}

#[test]
fn stopping_releases_all_clients() {
    let mut world = World::of(ALICE);
    world.register(ALICE, 100, "a");
    world.register(ALICE, 101, "b");
    world.created(ALICE, lend("a", "b", 10));
    world.done(ALICE, Request::Stop);
    assert!(world.clients(ALICE).is_empty());
    assert!(world.engine.books().clients.is_empty());
    assert_eq!(world.currency_names(ALICE), ["base", "alice"]);
}

#[test]
fn processes_that_end_are_found_to_have_ended() {
    let mut world = World::of_root();
    world.register(ALICE, 100, "a");
    world.register(ALICE, 101, "b");
    world.created(ALICE, lend("a", "b", 10));
    let first = world.control.state.roots.values().next().unwrap()[0];
    world.engine.end(first);
    world.control.remove_exited();
    assert_eq!(world.clients(0).len(), 1);
    assert_eq!(
        world.client_tickets("b"),
        [(100, "alice".to_owned())],
        "the loan has ended"
    );
    world.register(ALICE, 102, "a");
}
