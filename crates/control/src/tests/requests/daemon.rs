//! Requests to the daemon itself, and events without a request.

use super::*;

#[test]
fn settings_change_live_within_their_limits() {
    let mut world = World::of(ALICE);
    let configure = |quantum_ns, policy| Request::Configure {
        quantum_ns,
        policy,
        hybrid: None,
        stay: false,
        users: false,
    };
    for quantum_ns in [0, 999_999, 1_000_000_001, u64::MAX] {
        let message = world.refused(ALICE, configure(Some(quantum_ns), None));
        assert!(
            message.ends_with("cannot be enforced: give one from 1ms to 1s"),
            "{message}"
        );
    }
    for policy in [
        PolicyName::Lottery,
        PolicyName::HierarchicalStride,
        PolicyName::ClassLottery,
        PolicyName::Stride,
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
    let Response::Status(status) = world.ask(ALICE, configure(None, Some(PolicyName::Lottery)))
    else {
        panic!()
    };
    assert_eq!(
        (status.quantum_ns, status.policy),
        (1_000_000_000, PolicyName::Lottery)
    );
    let quantum_ns = world.control.dispatcher.lock().unwrap().quantum_ns();
    assert_eq!(quantum_ns, 1_000_000_000);
    // Any user may ask for the settings that hold already.
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
