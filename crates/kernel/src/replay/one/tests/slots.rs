//! Slots of the timetable.

use super::*;
use crate::scheduler::BY_CLAIM;

impl Kernel {
    /// Client 3 takes the CPU in its slot, and sleeps soon.
    fn run_in_slot(&mut self) {
        self.begin_slot();
        self.tell(DecisionKind::TakeInSlot, 3, 0);
        let pick = self.trace.len();
        self.run(3, QUANTUM_NS / 20);
        self.trace[pick].queue = BY_CLAIM;
    }

    fn begin_slot(&mut self) {
        self.tell(DecisionKind::LookAtSlot, 3, 0);
        self.trace.last_mut().expect("it was told").tid = 0;
    }
}

#[test]
fn a_turn_that_a_slot_interrupted_goes_on_until_the_kernel_looks() {
    for looks in [false, true] {
        let mut kernel = Kernel::new();
        [3, 2, 1].into_iter().for_each(|node| kernel.join(node));
        while kernel.core.pick() != Some(ClientIndex(1)) {
            kernel.turns(1);
        }
        kernel.run(1, QUANTUM_NS / 2);
        kernel.run_in_slot();
        if looks {
            kernel.tell(DecisionKind::Look, 0, 0);
        }
        kernel.run(1, QUANTUM_NS / 2);
        let found = kernel.replay();
        assert_eq!(found.is_err(), looks, "{found:?}");
        if looks {
            assert!(
                matches!(found, Err(Disallowed::Pick { node: 1, .. })),
                "{found:?}"
            );
        }
    }
}

#[test]
fn the_fallback_decides_if_the_client_of_the_slot_does_not_want_to_run() {
    for competes in [false, true] {
        let mut kernel = Kernel::new();
        kernel.join(1);
        if competes {
            kernel.join(3);
        }
        kernel.begin_slot();
        kernel.tell(DecisionKind::FallBack, 0, 0);
        let found = kernel.replay();
        match competes {
            false => assert_eq!(found, Ok(0)),
            true => assert_eq!(found, Err(Disallowed::FallBack { pick: 0, node: 3 })),
        }
    }
}
