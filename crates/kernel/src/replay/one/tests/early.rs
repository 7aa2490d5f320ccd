//! Early tasks.

use super::*;

impl Kernel {
    /// A task of the node waits early, and the kernel looks at it.
    fn wait_early(&mut self, node: u32, rank: u64) {
        self.tell(DecisionKind::WaitEarly, node, 0);
        let told = self.trace.last_mut().expect("it was told");
        (told.early, told.queue) = (Some(rank), crate::scheduler::EARLY);
        self.tell(DecisionKind::Look, 0, 0);
    }

    /// It runs with this lead.
    fn run_early(&mut self, node: u32, rank: u64, lead_ns: u64) {
        self.run(node, QUANTUM_NS / 10);
        let place = self.trace.len() - 2;
        let pick = &mut self.trace[place];
        (pick.early, pick.lead_ns) = (Some(rank), lead_ns);
    }
}

/// Three clients that have run; the poor one would be last by its pass.
fn three_of_which_one_is_poor() -> Kernel {
    let mut kernel = Kernel::new();
    [3, 2, 1].into_iter().for_each(|node| kernel.join(node));
    kernel.turns(5);
    kernel.run(1, QUANTUM_NS);
    kernel.trace.clear();
    kernel.begin(&[3, 2, 1]);
    kernel.turns(UNKNOWN_TURNS - 1);
    kernel.run(2, QUANTUM_NS + TICK_NS);
    kernel
}

#[test]
fn an_early_task_runs_first() {
    let mut kernel = three_of_which_one_is_poor();
    kernel.wait_early(1, 7);
    kernel.run_early(1, 7, 90_000_000);
    kernel.turns(9);
    assert!(kernel.replay().is_ok(), "{:?}", kernel.replay());
}

#[test]
fn an_early_task_that_is_passed_over_is_found() {
    let mut kernel = three_of_which_one_is_poor();
    kernel.wait_early(1, 7);
    kernel.run(3, QUANTUM_NS);
    let found = kernel.replay();
    assert!(
        matches!(found, Err(Disallowed::Early { instead_of: 1, .. })),
        "{found:?}"
    );
    // Of two early tasks that with the lesser rank runs first.
    for (first, other, is_allowed) in [(7, 8, true), (8, 7, false)] {
        let mut kernel = three_of_which_one_is_poor();
        kernel.wait_early(1, first);
        kernel.wait_early(2, other);
        kernel.run_early(1, first, 0);
        assert_eq!(kernel.replay().is_ok(), is_allowed, "{first} {other}");
    }
}

#[test]
fn an_early_task_beyond_the_bound_of_leads_is_found() {
    let bound_ns = prorata_core::hybrid::LEAD_BOUND_NS + QUANTUM_NS + TICK_NS;
    for (lead_ns, is_allowed) in [(bound_ns, true), (bound_ns + 1, false)] {
        let mut kernel = three_of_which_one_is_poor();
        kernel.wait_early(1, 7);
        kernel.run_early(1, 7, lead_ns);
        let found = kernel.replay();
        assert_eq!(found.is_ok(), is_allowed, "{found:?}");
        if !is_allowed {
            assert!(
                matches!(found, Err(Disallowed::Lead { node: 1, .. })),
                "{found:?}"
            );
        }
    }
}

#[test]
fn a_rank_that_is_not_of_what_a_task_received_is_found() {
    use prorata_core::hybrid::{EarlyRank, FRACTION_ONE, WakeClass};
    const DESERVED_NS: u64 = 2_000_000_000;
    let half = FRACTION_ONE / 2;
    for (class, stated, received_ns, is_allowed) in [
        (WakeClass::User, half, DESERVED_NS / 2, true),
        (WakeClass::User, half - 2, DESERVED_NS / 2, false),
        (WakeClass::User, half + 2, DESERVED_NS / 2, false),
        (WakeClass::User, 0, DESERVED_NS, false),
        (WakeClass::User, FRACTION_ONE, 2 * DESERVED_NS, false),
        (WakeClass::Lock, 0, 2 * DESERVED_NS, true),
    ] {
        let mut kernel = three_of_which_one_is_poor();
        kernel.wait_early(1, EarlyRank::new(class, stated, 5).bits());
        let place = kernel.trace.len() - 2;
        let told = &mut kernel.trace[place];
        (told.key, told.service_ns) = (received_ns, DESERVED_NS);
        let found = kernel.replay();
        let is_found = matches!(found, Err(Disallowed::Fraction { node: 1, .. }));
        assert_eq!(is_found, !is_allowed, "{class:?} {stated}: {found:?}");
    }
}

#[test]
fn an_overdue_task_goes_before_an_early_one() {
    for (waited_ns, is_allowed) in [(OVERDUE_NS + 1, true), (OVERDUE_NS, false)] {
        let mut kernel = three_of_which_one_is_poor();
        kernel.wait_early(1, 7);
        kernel.tell(DecisionKind::Overdue, 2, waited_ns);
        kernel.run(2, QUANTUM_NS);
        kernel.run_early(1, 7, 0);
        kernel.turns(9);
        let found = kernel.replay();
        let is_found = matches!(found, Err(Disallowed::Overdue { node: 2, .. }));
        assert_eq!(is_found, !is_allowed, "{found:?}");
    }
    // One turn only.
    let mut kernel = three_of_which_one_is_poor();
    kernel.wait_early(1, 7);
    kernel.tell(DecisionKind::Overdue, 2, OVERDUE_NS + 1);
    kernel.run(2, QUANTUM_NS);
    kernel.run(3, QUANTUM_NS);
    let found = kernel.replay();
    assert!(
        matches!(found, Err(Disallowed::Early { instead_of: 1, .. })),
        "{found:?}"
    );
}
