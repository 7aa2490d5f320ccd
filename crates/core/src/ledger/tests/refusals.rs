//! Every rule that refuses an operation, and the sentence it gives.

use super::*;

/// Base, `x` backed by 100 of it and `y` backed by 10 of `x`; client `a` holds
/// 50 of the base, client `b` nothing.
struct Scene {
    fixture: Fixture,
    base: CurrencyId,
    x: CurrencyId,
    y: CurrencyId,
    a: ClientId,
    b: ClientId,
    /// The ticket that funds `a`.
    ticket: TicketId,
}

fn scene() -> Scene {
    let mut fixture = Fixture::new();
    let base = fixture.ledger.base();
    let x = fixture.backed("x", base, 100);
    let y = fixture.backed("y", x, 10);
    let a = fixture.client("a");
    let ticket = fixture.issue(base, 50, Target::Client(a));
    let b = fixture.client("b");
    Scene {
        fixture,
        base,
        x,
        y,
        a,
        b,
        ticket,
    }
}

impl Scene {
    #[track_caller]
    fn refuses(&self, operation: Operation, sentence: &str) {
        assert_eq!(self.fixture.refusal(operation).to_string(), sentence);
    }

    fn part(&self, currency: Option<CurrencyId>, shares: &[(Target, u32)]) -> Operation {
        part(self.a, currency, shares)
    }

    fn whole(&self, targets: &[Target]) -> Operation {
        whole(self.a, targets)
    }
}

#[test]
fn stale_and_unknown_identifiers() {
    let mut scene = scene();
    scene
        .fixture
        .run(Operation::DestroyClient { client: scene.a });
    let (ticket, client) = (scene.ticket, scene.a);
    scene.refuses(
        Operation::DestroyTicket { ticket },
        "there is no ticket t2: name one that exists",
    );
    scene.refuses(
        Operation::DestroyClient { client },
        "there is no client c0: name one that exists",
    );
    let currency = CurrencyId::from_parts(1, 1);
    scene.refuses(
        Operation::DestroyCurrency { currency },
        "there is no currency u1.1: name one that exists",
    );
    let transfer = TransferId::from_parts(0, 0);
    scene.refuses(
        Operation::EndTransfer { transfer },
        "there is no transfer x0: name one that is under way",
    );
    let target = Some(Target::Client(client));
    scene.refuses(
        issue(scene.base, 1, target),
        "there is no client c0: name one that exists",
    );
    let successor = scene.fixture.client("successor");
    assert_eq!(
        successor,
        ClientId::from_parts(0, 1),
        "the index is used again"
    );
    scene.refuses(
        Operation::DestroyClient { client },
        "there is no client c0: name one that exists",
    );
}

#[test]
fn names() {
    let scene = scene();
    for create in [create_currency, |name: &str| create_client(name, 0)] {
        scene.refuses(create(""), "a name is empty: give one of at least one byte");
        scene.refuses(
            create("a\u{1b}[2J"),
            "name \"a\\u{1b}[2J\" holds the control character '\\u{1b}': leave it out",
        );
        let long = "seventeen letters".repeat(4);
        scene.refuses(
            create(&long),
            "name \"seventeen letter\"... has 68 bytes: shorten it to 64 or fewer",
        );
    }
    scene.refuses(
        create_currency("x"),
        "currency 'x' exists already as u1: choose another name",
    );
    scene.refuses(
        create_currency("base"),
        "currency 'base' exists already as u0: choose another name",
    );
    scene.refuses(
        create_client("b", 0),
        "client 'b' exists already as c1: choose another name",
    );
}

#[test]
fn a_name_is_free_again_after_its_bearer_is_destroyed() {
    let mut scene = scene();
    scene
        .fixture
        .run(Operation::DestroyClient { client: scene.b });
    scene.fixture.client("b");
    scene
        .fixture
        .run(Operation::DestroyCurrency { currency: scene.y });
    scene.fixture.currency("y");
}

#[test]
fn amounts() {
    let mut scene = scene();
    let zero = "an amount is zero: give one from 1 to 4294967295";
    scene.refuses(issue(scene.x, 0, None), zero);
    scene.refuses(set_amount(scene.ticket, 0), zero);
    let b = Target::Client(scene.b);
    scene.refuses(scene.part(None, &[(b, 1), (b, 0)]), zero);
    scene.fixture.part(scene.a, b, 30);
    scene.refuses(
        set_amount(scene.ticket, 29),
        "ticket t2 cannot shrink to 29 while 30 of it are lent: end transfer x0 first",
    );
    scene.fixture.run(set_amount(scene.ticket, 30));
    scene.fixture.run(set_amount(scene.ticket, u32::MAX));
}

#[test]
fn cycles_are_named() {
    let mut scene = scene();
    let z = scene.fixture.backed("z", scene.y, 1);
    let issue = |currency, target| issue(currency, 1, Target::Currency(target));
    scene.refuses(
        issue(z, scene.x),
        "currency 'x' would back itself through x -> y -> z -> x: fund it with another currency",
    );
    scene.refuses(
        issue(scene.x, scene.x),
        "currency 'x' would back itself through x -> x: fund it with another currency",
    );
    scene.refuses(
        issue(scene.y, scene.base),
        "currency 'base' is the base and cannot be backed: issue tickets in it instead",
    );

    // The same by moving a ticket, and by a transfer.
    let idle = scene.fixture.idle(z, 4);
    let cycle = "currency 'y' would back itself through y -> z -> y: fund it with another currency";
    scene.refuses(fund(idle, Target::Currency(scene.y)), cycle);
    scene.fixture.run(fund(idle, Target::Client(scene.a)));
    scene.refuses(
        scene.part(
            Some(z),
            &[(Target::Client(scene.b), 1), (Target::Currency(scene.y), 1)],
        ),
        cycle,
    );
    scene.refuses(
        scene.whole(&[Target::Client(scene.b), Target::Currency(scene.y)]),
        cycle,
    );
}

#[test]
fn currencies_that_cannot_be_destroyed() {
    let mut scene = scene();
    scene.refuses(
        Operation::DestroyCurrency {
            currency: scene.base,
        },
        "currency 'base' is the base and cannot be destroyed: destroy what it funds instead",
    );
    scene.refuses(
        Operation::DestroyCurrency { currency: scene.x },
        "currency 'x' has issued t1 (currency 'y'): destroy those tickets first",
    );
    scene.fixture.run(issue(scene.x, 5, None));
    scene.fixture.issue(scene.x, 5, Target::Client(scene.b));
    scene.refuses(
        Operation::DestroyCurrency { currency: scene.x },
        "currency 'x' has issued t1 (currency 'y'), t3 (idle), t4 (client 'b'): destroy those tickets first",
    );
    for _ in 0..6 {
        scene.fixture.run(issue(scene.x, 5, None));
    }
    let LedgerError::HasIssued {
        dependants, others, ..
    } = scene
        .fixture
        .refusal(Operation::DestroyCurrency { currency: scene.x })
    else {
        panic!()
    };
    assert_eq!((dependants.len(), others), (8, true));
}

#[test]
fn tickets_that_cannot_be_moved() {
    let mut scene = scene();
    let idle = scene.fixture.idle(scene.x, 5);
    scene.refuses(
        Operation::Unfund { ticket: idle },
        "ticket t3 funds nothing: name one that does",
    );
    scene.fixture.part(scene.a, Target::Client(scene.b), 20);
    let piece = scene.fixture.ledger.funding(scene.b).next().unwrap();
    let lent = "ticket t2 has 20 of its tickets lent: end transfer x0 first";
    let borrowed = "ticket t4 is borrowed through transfer x0: change t2, from which it was taken";
    let target = Target::Currency(scene.x);
    for (ticket, sentence) in [(scene.ticket, lent), (piece, borrowed)] {
        scene.refuses(fund(ticket, target), sentence);
        scene.refuses(Operation::Unfund { ticket }, sentence);
        scene.refuses(Operation::DestroyTicket { ticket }, sentence);
    }
    scene.refuses(set_amount(piece, 20), borrowed);
}

#[test]
fn transfers() {
    let mut scene = scene();
    let (b, base) = (Target::Client(scene.b), scene.base);
    let none = "a transfer from 'a' names no receiver: name at least one";
    scene.refuses(scene.whole(&[]), none);
    scene.refuses(scene.part(None, &[]), none);
    let itself = "client 'a' would transfer tickets to itself: name another receiver";
    scene.refuses(scene.whole(&[b, Target::Client(scene.a)]), itself);
    scene.refuses(scene.part(None, &[(Target::Client(scene.a), 1)]), itself);
    scene.refuses(
        scene.part(None, &[(b, 30), (b, 21)]),
        "client 'a' holds 50 tickets of 'base', not 51: transfer at most what it holds",
    );
    scene.refuses(
        scene.part(Some(base), &[(b, u32::MAX), (b, u32::MAX)]),
        "client 'a' holds 50 tickets of 'base', not 8589934590: transfer at most what it holds",
    );
    scene.refuses(
        scene.part(Some(scene.x), &[(b, 1)]),
        "client 'a' holds 0 tickets of 'x', not 1: transfer at most what it holds",
    );
    scene.fixture.issue(scene.y, 1, Target::Client(scene.a));
    scene.refuses(
        scene.part(None, &[(b, 1)]),
        "client 'a' holds tickets of 'base' and 'y': say which currency to transfer",
    );
    scene.fixture.whole(scene.a, scene.b);
    let nothing = "client 'a' holds no tickets that it could transfer: fund it first";
    scene.refuses(scene.whole(&[b]), nothing);
    scene.refuses(scene.part(None, &[(b, 1)]), nothing);
}

#[test]
#[should_panic(expected = "the ledger has changed since the operation was checked")]
fn an_operation_checked_before_another_is_not_applied() {
    let mut scene = scene();
    let root = Principal::ROOT;
    let checked = scene
        .fixture
        .ledger
        .check(&root, create_client("late", 0))
        .unwrap();
    scene.fixture.client("early");
    scene.fixture.ledger.apply(checked);
}

#[test]
fn activity_between_check_and_apply_does_not_matter() {
    let mut scene = scene();
    let checked = scene
        .fixture
        .ledger
        .check(&Principal::ROOT, scene.whole(&[Target::Client(scene.b)]))
        .unwrap();
    assert_eq!(
        *checked.operation(),
        scene.whole(&[Target::Client(scene.b)])
    );
    scene.fixture.activate(&[scene.a, scene.b]);
    scene.fixture.ledger.apply(checked);
    assert_eq!(scene.fixture.values(&[scene.a, scene.b]), [0, 50]);
}

#[test]
fn an_unknown_client_has_no_value_and_does_not_wake() {
    let mut scene = scene();
    let epoch = scene.fixture.ledger.epoch();
    let never = ClientId::from_parts(9, 9);
    scene.fixture.ledger.activate(never);
    scene.fixture.ledger.deactivate(never);
    assert_eq!(scene.fixture.ledger.value(never), Value(0));
    assert_eq!(scene.fixture.ledger.funding(never).count(), 0);
    assert_eq!(scene.fixture.ledger.epoch(), epoch);
}

#[test]
fn a_ledger_can_be_sent_to_another_thread() {
    fn sendable<T: Send>() {}
    sendable::<Ledger>();
    sendable::<Checked>();
}

#[cfg(feature = "serde")]
#[test]
fn a_refusal_survives_the_wire() {
    let scene = scene();
    let target = Some(Target::Currency(scene.x));
    let refused = scene.fixture.refusal(issue(scene.y, 1, target));
    let wire = serde_json::to_string(&refused).unwrap();
    assert_eq!(wire, r#"{"cycle":{"path":["x","y","x"]}}"#);
    assert_eq!(serde_json::from_str::<LedgerError>(&wire).unwrap(), refused);
}
