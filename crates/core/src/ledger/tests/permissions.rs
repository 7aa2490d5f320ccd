//! Permissions: the table at the top of `permission.rs`, line by line.

use super::*;
use crate::cpu_limit::CpuLimit;

const OWNER: u32 = 10;
const MEMBER: u32 = 11;
const STRANGER: u32 = 12;
const GROUP: u32 = 100;

fn principal(uid: u32) -> Principal {
    let gids = if uid == MEMBER {
        [GROUP].into()
    } else {
        Vec::new()
    };
    Principal { uid, gids }
}

fn protect(currency: CurrencyId, mode: u16) -> Operation {
    Operation::Protect {
        currency,
        owner: OWNER,
        group: GROUP,
        mode: Mode::try_from(mode).unwrap(),
    }
}

/// The base belongs to the super-user; currency `x` of mode 0 and client `a`
/// with ten tickets of it belong to `OWNER`, client `b` to `STRANGER`.
struct Scene {
    fixture: Fixture,
    x: CurrencyId,
    a: ClientId,
    b: ClientId,
    ticket: TicketId,
    idle: TicketId,
}

fn scene() -> Scene {
    let mut fixture = Fixture::new();
    let base = fixture.ledger.base();
    let x = fixture.backed("x", base, 100);
    let [a, b] = [("a", OWNER), ("b", STRANGER)].map(|(name, owner)| {
        let outcome = fixture.run(create_client(name, owner));
        let Outcome::Client(client) = outcome else {
            panic!()
        };
        client
    });
    let ticket = fixture.issue(x, 10, Target::Client(a));
    let idle = fixture.idle(x, 5);
    let mut scene = Scene {
        fixture,
        x,
        a,
        b,
        ticket,
        idle,
    };
    scene.protect(0);
    scene
}

impl Scene {
    fn protect(&mut self, mode: u16) {
        self.fixture.run(protect(self.x, mode));
    }

    /// The sentence, if it is refused.
    fn ask(&self, uid: u32, operation: Operation) -> Option<alloc::string::String> {
        self.fixture
            .ledger
            .check(&principal(uid), operation)
            .err()
            .map(|error| error.to_string())
    }

    #[track_caller]
    fn only(&self, allowed: &[u32], operation: Operation) {
        for uid in [0, OWNER, MEMBER, STRANGER] {
            let refused = self.ask(uid, operation.clone());
            assert_eq!(
                refused.is_none(),
                uid == 0 || allowed.contains(&uid),
                "user {uid}: {refused:?}"
            );
        }
    }

    fn issue(&self, target: Option<Target>) -> Operation {
        issue(self.x, 1, target)
    }
}

#[test]
fn creating_is_for_oneself() {
    let scene = scene();
    let mode = Mode::DEFAULT;
    scene.only(
        &[MEMBER],
        Operation::CreateCurrency {
            name: "y".into(),
            owner: MEMBER,
            group: 0,
            mode,
        },
    );
    scene.only(&[MEMBER], create_client("c", MEMBER));
    assert_eq!(
        scene.ask(STRANGER, create_client("c", MEMBER)).unwrap(),
        "user 12 may not create 'c' for user 11: name user 12 as its owner"
    );
}

#[test]
fn a_currency_is_its_owners_whatever_the_mode() {
    let mut scene = scene();
    scene.protect(0o777);
    let protect = Operation::Protect {
        currency: scene.x,
        owner: OWNER,
        group: 0,
        mode: Mode::DEFAULT,
    };
    scene.only(&[OWNER], protect.clone());
    for ticket in [scene.ticket, scene.idle] {
        scene.fixture.run(Operation::DestroyTicket { ticket });
    }
    scene.only(&[OWNER], Operation::DestroyCurrency { currency: scene.x });
    assert_eq!(
        scene.ask(MEMBER, protect).unwrap(),
        "user 11 may not protect or destroy currency 'x': ask its owner, user 10"
    );
}

#[test]
fn a_client_is_its_owners() {
    let scene = scene();
    scene.only(&[OWNER], Operation::DestroyClient { client: scene.a });
    scene.only(&[STRANGER], Operation::DestroyClient { client: scene.b });
    assert_eq!(
        scene
            .ask(STRANGER, Operation::DestroyClient { client: scene.a })
            .unwrap(),
        "user 12 may not fund, limit, transfer from or destroy client 'a': ask its owner, user 10"
    );
}

#[test]
fn only_a_user_that_may_issue_changes_tickets() {
    let mut scene = scene();
    let operations = [
        scene.issue(None),
        Operation::DestroyTicket {
            ticket: scene.ticket,
        },
        set_amount(scene.ticket, 7),
    ];
    for (mode, allowed) in [
        (0o000, &[][..]),
        (0o100, &[OWNER]),
        (0o010, &[MEMBER]),
        (0o001, &[STRANGER]),
        (0o666, &[]),
        (0o111, &[OWNER, MEMBER, STRANGER]),
    ] {
        scene.protect(mode);
        operations
            .iter()
            .for_each(|operation| scene.only(allowed, operation.clone()));
    }
    scene.protect(0o750);
    assert_eq!(
        scene.ask(STRANGER, scene.issue(None)).unwrap(),
        "user 12 may not issue tickets in currency 'x' of user 10, mode 750: ask its owner"
    );
}

#[test]
fn funding_a_client_takes_its_owner_and_the_right_to_issue() {
    let mut scene = scene();
    let (a, b) = (Target::Client(scene.a), Target::Client(scene.b));
    scene.protect(0o111);
    scene.only(&[OWNER], scene.issue(Some(a)));
    scene.only(&[STRANGER], scene.issue(Some(b)));
    scene.only(&[STRANGER], fund(scene.idle, b));
    scene.only(
        &[OWNER],
        Operation::Unfund {
            ticket: scene.ticket,
        },
    );
    // Moving a ticket needs the right to take it away, too.
    scene.only(&[], fund(scene.ticket, b));
    scene.protect(0o666);
    scene.only(&[], scene.issue(Some(a)));
    scene.only(&[], fund(scene.idle, b));
    scene.only(
        &[],
        Operation::Unfund {
            ticket: scene.ticket,
        },
    );
}

#[test]
fn backing_a_currency_takes_fund_on_it_and_issue_on_the_other() {
    let mut scene = scene();
    let y = scene.fixture.currency("y");
    let target = Target::Currency(y);
    let mut allow = |x_mode, y_mode| {
        scene.protect(x_mode);
        scene.fixture.run(protect(y, y_mode));
        let operations = [scene.issue(Some(target)), fund(scene.idle, target)];
        let users = [OWNER, MEMBER, STRANGER]
            .into_iter()
            .filter(|uid| scene.ask(*uid, operations[0].clone()).is_none());
        let users: Vec<u32> = users.collect();
        operations
            .into_iter()
            .for_each(|operation| scene.only(&users, operation));
        users
    };
    assert_eq!(allow(0o111, 0o222), [OWNER, MEMBER, STRANGER]);
    assert_eq!(allow(0o111, 0o020), [MEMBER]);
    assert_eq!(allow(0o001, 0o222), [STRANGER]);
    assert!(allow(0o666, 0o777).is_empty());
    assert!(allow(0o777, 0o555).is_empty());
    assert_eq!(
        scene.ask(OWNER, scene.issue(Some(target))).unwrap(),
        "user 10 may not fund currency 'y' of user 10, mode 555: ask its owner"
    );

    // Taking away needs the same.
    let ticket = scene.fixture.issue(scene.x, 3, target);
    scene.only(&[], Operation::Unfund { ticket });
    scene.fixture.run(protect(y, 0o020));
    scene.only(&[MEMBER], Operation::Unfund { ticket });
    // Yet a user that may issue may take the ticket back for good.
    scene.only(
        &[OWNER, MEMBER, STRANGER],
        Operation::DestroyTicket { ticket },
    );
}

#[test]
fn a_limit_is_the_owners_to_set_and_to_end() {
    let mut scene = scene();
    let max = CpuLimit::from_thousandths(500);
    for max in [max, None] {
        scene.only(&[OWNER], limit(scene.a, max));
    }
    scene.fixture.run(limit(scene.a, max));
    assert_eq!(scene.fixture.ledger.cpu_limit(scene.a), max);
    let limited = |scene: &Scene| scene.fixture.ledger.limited_clients().count();
    assert_eq!(
        (limited(&scene), scene.fixture.ledger.cpu_limit(scene.b)),
        (1, None)
    );
    scene
        .fixture
        .run(Operation::DestroyClient { client: scene.a });
    assert_eq!(limited(&scene), 0);
}

fn limit(client: ClientId, max: Option<CpuLimit>) -> Operation {
    Operation::LimitClient { client, max }
}

#[test]
fn a_transfer_is_the_givers() {
    let mut scene = scene();
    let transfer = |target| whole(scene.a, &[target]);
    let y = scene.fixture.currency("y");
    scene.fixture.run(protect(y, 0o027));
    scene.only(&[OWNER], transfer(Target::Client(scene.b)));
    scene.only(&[], transfer(Target::Currency(y)));
    scene.fixture.run(protect(y, 0o200));
    scene.only(&[OWNER], transfer(Target::Currency(y)));
}

#[test]
fn a_transfer_is_ended_by_its_giver_or_the_issuer_of_what_it_moved() {
    let mut scene = scene();
    let transfer = scene.fixture.whole(scene.a, scene.b);
    scene.only(&[OWNER], Operation::EndTransfer { transfer });
    scene.protect(0o010);
    scene.only(&[OWNER, MEMBER], Operation::EndTransfer { transfer });
    scene.fixture.end(transfer);
    let base = scene.fixture.ledger.base();
    scene.fixture.issue(base, 1, Target::Client(scene.a));
    let transfer = scene.fixture.whole(scene.a, scene.b);
    scene.only(&[OWNER], Operation::EndTransfer { transfer });
}

#[test]
fn reading() {
    let mut scene = scene();
    scene.protect(0o740);
    let may = |uid| scene.fixture.ledger.may_read(&principal(uid), scene.x);
    assert_eq!(
        [0, OWNER, MEMBER, STRANGER].map(may),
        [true, true, true, false]
    );
    assert!(
        !scene
            .fixture
            .ledger
            .may_read(&Principal::ROOT, CurrencyId::from_parts(9, 0))
    );
}

#[test]
fn the_base_of_a_user_is_the_users() {
    let ledger = Ledger::with_base_owner(Limits::default(), OWNER, GROUP);
    let issue = issue(ledger.base(), 1, None);
    assert!(ledger.check(&principal(OWNER), issue.clone()).is_ok());
    assert!(ledger.check(&principal(MEMBER), issue.clone()).is_err());
    assert!(ledger.check(&Principal::ROOT, issue).is_ok());
    let base = ledger.currency(ledger.base()).unwrap();
    assert_eq!(
        (base.name, base.owner, base.group, base.mode),
        ("base", OWNER, GROUP, Mode::DEFAULT)
    );
}
