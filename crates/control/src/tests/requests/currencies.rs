//! Requests about currencies and tickets.

use super::*;

#[test]
fn an_ambiguous_target_is_refused_and_both_meanings_are_named() {
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
    // A daemon of one user has no other user's name to keep.
    World::of(ALICE).created(ALICE, create("bob", 0o744));
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
    // On her own daemon, alice owns the base currency.
    World::of(ALICE).done(ALICE, set("alice", 10));
}
