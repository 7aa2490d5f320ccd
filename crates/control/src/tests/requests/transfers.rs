//! Requests about transfers.

use super::*;

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
