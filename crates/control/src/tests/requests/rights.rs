//! The rights of users.

use prorata_protocol::HybridChoice;

use super::*;
use crate::decode::QUOTA;
use crate::state::LIMITS;

#[test]
fn modes_limit_reading_funding_and_issuing() {
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
        Request::Processes {
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
            hybrid: None,
            stay: false,
            users: false,
        },
        Request::Configure {
            quantum_ns: None,
            policy: None,
            hybrid: Some(HybridChoice::NONE),
            stay: false,
            users: false,
        },
        Request::Configure {
            quantum_ns: None,
            policy: None,
            hybrid: None,
            stay: true,
            users: false,
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
    // A client that is not shown is not suggested either.
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
fn one_user_does_not_fill_the_ledger_for_all() {
    let mut world = World::of_root();
    let number_of = |n: u32| create(&format!("number {n}"), 0o744);
    for n in 0..LIMITS.currencies / QUOTA {
        world.created(ALICE, number_of(n));
    }
    let message = world.refused(ALICE, number_of(9_999));
    assert!(
        message.starts_with("user 1000 has 512 currencies, the most"),
        "{message}"
    );
    // Other users have room, and requests that take none are accepted.
    world.created(BOB, number_of(9_999));
    world.created(0, number_of(10_000));
    let message = world.refused(ALICE, issue(1, "alice", None));
    assert!(message.contains("no currency named 'alice'"), "{message}");
    world.created(ALICE, issue(1, "number 0", None));
    world.done(
        ALICE,
        Request::DestroyCurrency {
            name: "number 1".into(),
        },
    );
    world.created(ALICE, number_of(9_998));
    // The daemon's owner may fill the ledger.
    let mut world = World::of(ALICE);
    for n in 0..=LIMITS.currencies / QUOTA {
        world.created(ALICE, number_of(n));
    }
}

#[test]
fn one_user_does_not_take_all_transfers() {
    let mut world = World::of_root();
    world.register(ALICE, 100, "giver");
    world.register(ALICE, 101, "taker");
    world.done(ALICE, set_tickets("giver", 10_000, None));
    for _ in 0..LIMITS.transfers / QUOTA {
        world.created(ALICE, lend("giver", "taker", 1));
    }
    let message = world.refused(ALICE, lend("giver", "taker", 1));
    assert!(
        message.starts_with("user 1000 has 512 transfers"),
        "{message}"
    );
    world.created(0, lend("giver", "taker", 1));
}
