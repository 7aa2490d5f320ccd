//! What is usual in a whole machine: small worths that change, and long waits.

use super::*;

#[test]
fn a_task_that_began_to_wait_long_ago_precedes_its_client_s_pass() {
    for (is_latest, is_allowed) in [(true, true), (false, false)] {
        let mut kernel = Kernel::new();
        [3, 1].into_iter().for_each(|node| kernel.join(node));
        kernel.turns(12);
        for _ in 0..3 {
            kernel.run(1, QUANTUM_NS + TICK_NS);
            let pick = kernel.trace.len() - 2;
            let pick = &mut kernel.trace[pick];
            assert_eq!(pick.kind, DecisionKind::Pick);
            if is_latest {
                pick.key = pick.present - pick.present / 2;
            }
        }
        assert_eq!(kernel.replay().is_ok(), is_allowed, "{is_latest}");
    }
}

#[test]
fn a_small_worth_is_rescaled_exactly() {
    let mut kernel = Kernel::new();
    [3, 1].into_iter().for_each(|node| kernel.join(node));
    kernel.turns(12);
    let (from, to) = (0.0104, 0.0316);
    let remain = (QUANTUM_NS as f64 / from * PASS_UNITS) as u64;
    for (worth, remain, kind) in [
        (from, remain, DecisionKind::New),
        (
            to,
            (remain as f64 * from / to) as u64,
            DecisionKind::Tickets,
        ),
    ] {
        kernel.tell(kind, 7, 0);
        let told = kernel.trace.last_mut().expect("it was told");
        (told.tickets, told.pass) = (worth, told.present + remain);
    }
    assert!(kernel.replay().is_ok(), "{:?}", kernel.replay());
    // More than rounding explains.
    let told = kernel.trace.last_mut().expect("it was told");
    told.pass += (150_000.0 / to * PASS_UNITS) as u64;
    assert!(matches!(
        kernel.replay(),
        Err(Disallowed::Pass { node: 7, .. })
    ));
}
