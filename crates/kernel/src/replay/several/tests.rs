use super::*;

mod early;

const QUEUE: u32 = 0;

/// Words of two CPUs and more about tasks, each of a client of its number.
#[derive(Default)]
struct Words {
    words: Vec<Decision>,
    clock_ns: u64,
}

impl Words {
    fn word(&mut self, kind: DecisionKind, cpu: u32, task: u32, pass_ns: i64) -> &mut Decision {
        self.clock_ns += 1000;
        let pass = (pass_ns << 20).cast_unsigned();
        self.words.push(Decision {
            kind,
            node: task,
            tid: task,
            cpu,
            time_ns: self.clock_ns,
            pass,
            tickets: 1.0,
            quantum_ns: 20_000_000,
            tasks: 1,
            key: pass,
            queue: QUEUE,
            ..Decision::default()
        });
        self.words.last_mut().expect("it was told")
    }

    /// It waits, for certain.
    fn waits(&mut self, cpu: u32, task: u32, pass_ms: i64) {
        self.word(DecisionKind::Wait, cpu, task, pass_ms * 1_000_000);
        self.says(cpu);
    }

    /// A record about no task.
    fn says(&mut self, cpu: u32) {
        self.word(DecisionKind::Look, cpu, 0, 0);
    }

    fn takes(&mut self, cpu: u32, task: u32, pass_ms: i64) {
        self.says(cpu);
        self.word(DecisionKind::Take, cpu, task, pass_ms * 1_000_000);
    }

    fn runs(&mut self, cpu: u32, task: u32, pass_ms: i64) {
        self.word(DecisionKind::Pick, cpu, task, pass_ms * 1_000_000);
    }

    fn judged(&self) -> Result<u64, Disallowed> {
        let mut replay = OnSeveral::default();
        let judged = self.words.iter().try_for_each(|word| replay.step(word));
        judged.map(|()| replay.picks())
    }
}

/// Two that wait, and two CPUs, of which the second one was heard.
fn two() -> Words {
    let mut words = Words::default();
    words.says(1);
    words.waits(0, 10, 10);
    words.waits(0, 30, 30);
    words
}

#[test]
fn the_task_with_the_smallest_pass_is_taken() {
    let mut words = two();
    for task in [10, 30] {
        words.takes(0, task, task.into());
        words.runs(0, task, task.into());
        words.says(1);
    }
    assert_eq!(words.judged(), Ok(2));
}

#[test]
fn a_wrong_pick_is_found_once_all_cpus_have_written_again() {
    let mut words = two();
    words.takes(0, 30, 30);
    words.runs(0, 30, 30);
    assert_eq!(words.judged(), Ok(1), "the other CPU may have taken it");
    words.says(1);
    let expected = Disallowed::Pick {
        pick: 1,
        node: 30,
        instead_of: 10,
        early_ns: 20_000_000,
    };
    assert_eq!(words.judged(), Err(expected));
}

#[test]
fn a_cpu_that_is_silent_for_long_is_idle() {
    for (silent_ns, allowed) in [(SILENCE_NS, true), (SILENCE_NS + 1, false)] {
        let mut words = two();
        words.takes(0, 30, 30);
        words.clock_ns += silent_ns - 1000;
        words.runs(0, 30, 30);
        assert_eq!(words.judged().is_ok(), allowed, "{silent_ns}");
    }
}

#[test]
fn a_task_that_goes_by_another_cpu_s_next_record_may_have_gone_before() {
    use DecisionKind::{Go, Pick, Take, Wait};
    for kind in [Take, Go, Pick, Wait] {
        let mut words = two();
        words.takes(0, 30, 30);
        words.word(kind, 1, 10, 10_000_000);
        words.says(1);
        let judged = words.judged();
        assert!(judged.is_ok(), "{kind:?}: {judged:?}");
        // One word later it is none of that.
        let mut words = two();
        words.takes(0, 30, 30);
        words.says(1);
        words.word(kind, 1, 10, 10_000_000);
        assert!(words.judged().is_err(), "{kind:?}");
    }
}

#[test]
fn a_task_is_in_its_queue_only_after_its_cpu_s_next_record() {
    for (is_there, allowed) in [(false, true), (true, false)] {
        let mut words = Words::default();
        words.waits(0, 30, 30);
        words.word(DecisionKind::Wait, 1, 10, 10_000_000);
        if is_there {
            words.says(1);
        }
        words.takes(0, 30, 30);
        words.says(1);
        words.says(1);
        assert_eq!(words.judged().is_ok(), allowed, "{is_there}");
    }
}

#[test]
fn a_requeued_task_is_taken_from_either_place_until_its_cpu_s_next_record() {
    // A bound task may be taken from its former place, which is not its pass.
    for (cpu, is_there, is_bound, allowed) in [
        (1, false, false, false),
        (1, false, true, true),
        (1, true, true, false),
        (0, false, true, false),
    ] {
        let mut words = two();
        words.says(0);
        words.word(DecisionKind::Wait, cpu, 30, 30_000_000).is_bound = is_bound;
        if is_there {
            words.says(cpu);
        }
        words.word(DecisionKind::Take, 0, 30, 30_000_000);
        words.says(1);
        words.says(1);
        assert_eq!(
            words.judged().is_ok(),
            allowed,
            "{cpu} {is_there} {is_bound}"
        );
    }
}

#[test]
fn a_look_may_miss_a_task_enqueued_during_it() {
    let mut words = Words::default();
    words.says(1);
    words.waits(0, 30, 30);
    words.says(0);
    words.waits(1, 10, 10);
    words.word(DecisionKind::Take, 0, 30, 30_000_000);
    words.says(1);
    assert_eq!(words.judged(), Ok(0));
}

#[test]
fn queues_are_judged_by_themselves() {
    for (queue, allowed) in [(QUEUE, false), (QUEUE + 1, true)] {
        let mut words = Words::default();
        words.says(1);
        words.word(DecisionKind::Wait, 0, 10, 10_000_000).queue = queue;
        words.waits(0, 30, 30);
        words.takes(0, 30, 30);
        words.says(1);
        assert_eq!(words.judged().is_ok(), allowed, "{queue}");
    }
    // Where the first may not run on this CPU.
    let mut words = two();
    let waits = |word: &&mut Decision| word.kind == DecisionKind::Wait;
    words
        .words
        .iter_mut()
        .filter(waits)
        .for_each(|word| word.queue = ROAMERS);
    words.takes(0, 30, 30);
    words.says(1);
    assert_eq!(words.judged(), Ok(0));
}

#[test]
fn passes_move_while_their_tasks_wait() {
    // Another task of the node's has used so much by then, or some.
    for (pass_ms, allowed) in [(31, true), (29, false)] {
        // Told before, or by the other CPU's next word.
        for told_before in [true, false] {
            let mut words = two();
            let charge = |words: &mut Words| {
                words.word(DecisionKind::Charge, 1, 10, pass_ms * 1_000_000);
            };
            if told_before {
                charge(&mut words);
            }
            words.takes(0, 30, 30);
            if !told_before {
                charge(&mut words);
            }
            words.says(1);
            assert_eq!(words.judged().is_ok(), allowed, "{pass_ms} {told_before}");
        }
    }
}

#[test]
fn a_look_may_miss_a_task_with_a_pass_that_fell_while_it_waited() {
    let mut words = Words::default();
    words.says(1);
    words.waits(0, 30, 30);
    words.waits(0, 40, 40);
    words.word(DecisionKind::Tickets, 1, 40, 10_000_000);
    words.takes(0, 30, 30);
    words.says(1);
    assert_eq!(words.judged(), Ok(0));
    // Unless it is put in its new place.
    let mut words = Words::default();
    words.says(1);
    words.waits(0, 30, 30);
    words.waits(0, 40, 40);
    words.says(1);
    words.waits(1, 40, 10);
    words.takes(0, 30, 30);
    words.says(1);
    assert!(words.judged().is_err());
}

#[test]
fn a_key_before_the_pass_is_the_place() {
    for (key_ms, allowed) in [(20, false), (31, true)] {
        let mut words = Words::default();
        words.says(1);
        words.waits(0, 30, 30);
        let waits = words.word(DecisionKind::Wait, 0, 90, 90_000_000);
        waits.key = (key_ms * 1_000_000) << 20;
        words.takes(0, 30, 30);
        words.says(1);
        assert_eq!(words.judged().is_ok(), allowed, "{key_ms}");
    }
}

#[test]
fn bound_tasks_have_places_of_their_own() {
    let mut words = Words::default();
    words.says(1);
    for (task, pass) in [(11, 10), (12, 30)] {
        let waits = words.word(DecisionKind::Wait, 0, task, pass * 1_000_000);
        (waits.is_bound, waits.node) = (true, 5);
    }
    // What their node's other tasks use says nothing about them.
    words.word(DecisionKind::Charge, 1, 5, 90_000_000);
    words.takes(0, 12, 30);
    words.says(1);
    let found = words.judged();
    let expected = Disallowed::Pick {
        pick: 1,
        node: 5,
        instead_of: 5,
        early_ns: 20_000_000,
    };
    assert_eq!(found, Err(expected));
}
