//! Early tasks.

use super::*;

impl Words {
    fn early(&mut self, kind: DecisionKind, cpu: u32, task: u32, rank: u64) -> &mut Decision {
        let told = self.word(kind, cpu, task, 0);
        (told.queue, told.early) = (EARLY, Some(rank));
        told
    }
}

/// Two that wait, for certain, and two CPUs; the second one was heard.
fn two_early() -> Words {
    let mut words = Words::default();
    words.says(1);
    words.early(DecisionKind::WaitEarly, 0, 10, 1);
    words.early(DecisionKind::WaitEarly, 0, 30, 3);
    words.says(0);
    words
}

#[test]
fn the_least_rank_is_taken() {
    for (task, rank, allowed) in [(10, 1, true), (30, 3, false)] {
        let mut words = two_early();
        words.says(0);
        words.early(DecisionKind::Take, 0, task, rank);
        assert!(words.judged().is_ok(), "the other CPU may have taken it");
        words.says(1);
        let judged = words.judged();
        assert_eq!(judged.is_ok(), allowed, "{task}: {judged:?}");
        if !allowed {
            let expected = Disallowed::Early {
                pick: 1,
                node: 30,
                instead_of: 10,
            };
            assert_eq!(judged, Err(expected));
        }
    }
}

#[test]
fn an_early_task_that_is_elsewhere_by_the_other_cpu_s_next_record_was_gone() {
    use DecisionKind::{EndEarly, Go, Pick, Take, WaitEarly};
    for kind in [Take, Go, Pick, EndEarly, WaitEarly] {
        let mut words = two_early();
        words.says(0);
        words.early(Take, 0, 30, 3);
        words.early(kind, 1, 10, 1);
        words.says(1);
        assert!(words.judged().is_ok(), "{kind:?}");
    }
}

#[test]
fn an_early_task_that_came_during_the_look_may_be_missed() {
    let mut words = Words::default();
    words.says(1);
    words.early(DecisionKind::WaitEarly, 0, 30, 3);
    words.says(0);
    words.early(DecisionKind::WaitEarly, 1, 10, 1);
    words.early(DecisionKind::Take, 0, 30, 3);
    words.says(1);
    assert!(words.judged().is_ok());
}

#[test]
fn a_task_that_some_cpus_may_not_run_is_passed_over() {
    let mut words = two_early();
    for told in words.words.iter_mut().filter(|told| told.tid == 10) {
        told.is_bound = true;
    }
    words.says(0);
    words.early(DecisionKind::Take, 0, 30, 3);
    words.says(1);
    assert!(words.judged().is_ok());
}

#[test]
fn a_task_beyond_the_bound_of_leads_is_found() {
    let bound_ns = prorata_core::hybrid::LEAD_BOUND_NS + 20_000_000 + TOLERANCE_NS as u64;
    for kind in [DecisionKind::WaitEarly, DecisionKind::Take] {
        for (lead_ns, allowed) in [(bound_ns, true), (bound_ns + 1, false)] {
            let mut words = two_early();
            words.says(0);
            words.early(kind, 0, 10, 1).lead_ns = lead_ns;
            let judged = words.judged();
            assert_eq!(judged.is_ok(), allowed, "{kind:?} {judged:?}");
        }
    }
}
