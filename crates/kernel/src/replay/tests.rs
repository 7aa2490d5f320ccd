use super::*;

const QUANTUM_NS: u64 = 20_000_000;

/// A kernel of one CPU that keeps to the rules, unless told otherwise.
struct Kernel {
    core: Stride,
    trace: Vec<Decision>,
    clock_ns: u64,
}

impl Kernel {
    fn new() -> Self {
        Self {
            core: Stride::new(),
            trace: Vec::new(),
            clock_ns: 0,
        }
    }

    /// A decision about a task whose tickets are its number.
    fn tell(&mut self, kind: DecisionKind, node: u32, service_ns: u64) {
        let units = SCALE * QUANTUM_NS as f64 * PASS_UNITS;
        let pass = self.core.pass(ClientIndex(node)).unwrap_or(0.0);
        self.trace.push(Decision {
            kind,
            node,
            tid: node,
            time_ns: self.clock_ns,
            pass: (pass * units) as u64,
            tickets: f64::from(node),
            cpu: 0,
            present: (self.core.global_pass() * units) as u64,
            service_ns,
        });
    }

    fn join(&mut self, node: u32) {
        self.core
            .join(ClientIndex(node), node * SCALE as u32)
            .expect("it is new");
        self.tell(DecisionKind::Join, node, 0);
    }

    fn run(&mut self, node: u32, service_ns: u64) {
        self.tell(DecisionKind::Pick, node, 0);
        self.clock_ns += service_ns;
        self.core
            .charge(ClientIndex(node), service_ns, QUANTUM_NS)
            .expect("it is there");
        self.tell(DecisionKind::Charge, node, service_ns);
    }

    fn turns(&mut self, count: u32) {
        for turn in 0..count {
            let next = self.core.pick().expect("somebody competes").0;
            self.run(next, QUANTUM_NS / (1 + u64::from(turn % 3)));
        }
    }

    fn replay(&self) -> Result<u64, Disallowed> {
        let mut replay = Replay::new(QUANTUM_NS, 4_000_000);
        let steps = self.trace.iter().try_for_each(|d| replay.step(d));
        steps.map(|()| replay.picks())
    }
}

#[test]
fn what_the_core_would_do_is_allowed() {
    let mut kernel = Kernel::new();
    [3, 2, 1].into_iter().for_each(|node| kernel.join(node));
    kernel.turns(50);
    kernel.core.leave(ClientIndex(2)).expect("it is there");
    kernel.tell(DecisionKind::Leave, 2, 0);
    kernel.turns(20);
    kernel.join(2);
    kernel.join(5);
    kernel.turns(50);
    assert_eq!(kernel.replay(), Ok(120));
}

#[test]
fn the_first_pick_out_of_turn_is_found() {
    let mut kernel = Kernel::new();
    [3, 1].into_iter().for_each(|node| kernel.join(node));
    kernel.turns(12);
    // The poor one takes turn upon turn.
    for _ in 0..3 {
        kernel.run(1, QUANTUM_NS + 4_000_000);
    }
    let found = kernel.replay().expect_err("it is out of turn");
    let Disallowed::Pick {
        pick,
        node,
        instead_of,
        early_ns,
        ..
    } = found
    else {
        panic!("{found}");
    };
    assert!((13..=15).contains(&pick), "{pick}");
    assert_eq!((node, instead_of), (1, 3));
    assert!(early_ns > QUANTUM_NS / 2, "{early_ns}");
}

#[test]
fn nobody_joins_with_more_than_is_due() {
    let mut kernel = Kernel::new();
    kernel.join(1);
    kernel.turns(5);
    kernel.join(4);
    let join = kernel.trace.last_mut().expect("it was told");
    // Two quanta in front.
    join.pass = join
        .pass
        .wrapping_sub((2.0 * QUANTUM_NS as f64 / 4.0 * PASS_UNITS) as u64);
    let found = kernel.replay().expect_err("it is in front");
    assert!(matches!(found, Disallowed::Join { node: 4, .. }), "{found}");
}

#[test]
fn further_back_is_allowed_and_remembered() {
    let mut kernel = Kernel::new();
    kernel.join(1);
    kernel.turns(5);
    kernel.join(4);
    let join = kernel.trace.last_mut().expect("it was told");
    join.pass += (40.0 * QUANTUM_NS as f64 / 4.0 * PASS_UNITS) as u64;
    // So the other one goes on.
    for _ in 0..5 {
        kernel.run(1, QUANTUM_NS);
    }
    assert_eq!(kernel.replay(), Ok(10));
    kernel.run(4, QUANTUM_NS);
    let found = kernel.replay().expect_err("it comes before its time");
    assert!(matches!(found, Disallowed::Pick { node: 4, .. }), "{found}");
}

#[test]
fn a_pass_that_moves_otherwise_is_found() {
    let mut kernel = Kernel::new();
    [3, 2].into_iter().for_each(|node| kernel.join(node));
    kernel.turns(6);
    let charge = kernel.trace.last_mut().expect("it was told");
    let node = charge.node;
    // It is charged for a millisecond less than it used.
    charge.pass -= (1e6 / charge.tickets * PASS_UNITS) as u64;
    let found = kernel.replay().expect_err("it is not what it used");
    let Disallowed::Pass {
        node: found,
        off_ns,
        ..
    } = found
    else {
        panic!("{found}");
    };
    assert!(
        found == node && (off_ns + 1_000_000).abs() < 10_000,
        "{off_ns}"
    );
}

#[test]
fn who_finds_the_cpu_idle_has_it() {
    let mut kernel = Kernel::new();
    [1, 2].into_iter().for_each(|node| kernel.join(node));
    // The second deserves more, but came when the CPU was given away.
    kernel.run(1, QUANTUM_NS + 4_000_000);
    assert_eq!(kernel.replay(), Ok(1));
    kernel.run(1, 1_000_000);
    assert!(kernel.replay().is_err(), "only once");
}

#[test]
fn who_wakes_while_nobody_waits_is_next_within_a_quantum() {
    let units = SCALE * QUANTUM_NS as f64 * PASS_UNITS;
    // How far it stands behind who runs, in that one's quanta.
    for (behind, others, allowed) in [(0.9, 0, true), (1.1, 0, false), (0.9, 1, false)] {
        let mut kernel = Kernel::new();
        kernel.join(1);
        kernel.run(1, QUANTUM_NS);
        (0..others).for_each(|other| kernel.join(10 + other));
        let runs = kernel.trace[2].pass;
        kernel.join(4);
        let join = kernel.trace.last_mut().expect("it was told");
        join.pass = runs + (behind / SCALE * units) as u64;
        // Who runs yields before its quantum is over.
        kernel.tell(DecisionKind::Pick, 4, 0);
        let replayed = kernel.replay();
        assert_eq!(replayed.is_ok(), allowed, "{behind} {others}: {replayed:?}");
    }
}

#[test]
fn a_trace_without_its_beginning_is_not_whole() {
    let mut kernel = Kernel::new();
    kernel.join(1);
    kernel.turns(1);
    kernel.trace.remove(0);
    let found = kernel.replay().expect_err("nobody joined");
    assert!(
        matches!(found, Disallowed::NotWhole { node: 1, .. }),
        "{found}"
    );
}
