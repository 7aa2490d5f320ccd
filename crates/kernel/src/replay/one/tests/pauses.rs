//! Clients that pause by their limits.

use super::*;

impl Kernel {
    /// Turns of clients 1 and 2 in the order of their passes.
    fn turns_without_3(&mut self, count: u32) {
        for _ in 0..count {
            let pass = |node: u32| self.core.pass(ClientIndex(node)).expect("it competes");
            let next = if pass(1) < pass(2) { 1 } else { 2 };
            self.run(next, QUANTUM_NS);
        }
    }
}

fn three_have_run() -> Kernel {
    let mut kernel = Kernel::new();
    [3, 2, 1].into_iter().for_each(|node| kernel.join(node));
    kernel.turns(30);
    kernel
}

#[test]
fn no_client_waits_for_a_pausing_one() {
    for is_paused in [true, false] {
        let mut kernel = three_have_run();
        if is_paused {
            kernel.tell(DecisionKind::Pause, 3, 0);
        }
        kernel.turns_without_3(10);
        if is_paused {
            kernel.tell(DecisionKind::Resume, 3, 0);
        }
        kernel.turns(10);
        let found = kernel.replay();
        assert_eq!(found.is_ok(), is_paused, "{found:?}");
        if !is_paused {
            assert!(
                matches!(found, Err(Disallowed::Pick { instead_of: 3, .. })),
                "{found:?}"
            );
        }
    }
    // After the pause the client comes first again.
    let mut kernel = three_have_run();
    kernel.tell(DecisionKind::Pause, 3, 0);
    kernel.turns_without_3(10);
    kernel.tell(DecisionKind::Resume, 3, 0);
    kernel.turns_without_3(1);
    assert!(kernel.replay().is_err());
}

#[test]
fn use_during_a_pause_is_found() {
    let most_ns = TICK_NS + TOLERANCE_NS as u64;
    for (used_ns, is_spared, is_allowed) in [
        (most_ns, false, true),
        (most_ns + 1, false, false),
        (most_ns + 1, true, true),
    ] {
        let mut kernel = three_have_run();
        kernel.tell(DecisionKind::Pause, 3, 0);
        // The turn in progress is charged afterwards.
        kernel.run(3, QUANTUM_NS);
        if is_spared {
            kernel.tell(DecisionKind::Spare, 3, 0);
        }
        kernel.run(3, used_ns);
        let found = kernel.replay();
        assert_eq!(found.is_ok(), is_allowed, "{used_ns}: {found:?}");
        if !is_allowed {
            assert!(
                matches!(found, Err(Disallowed::Limit { node: 3, .. })),
                "{found:?}"
            );
        }
    }
}
