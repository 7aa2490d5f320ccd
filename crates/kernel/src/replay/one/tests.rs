use prorata_core::policy::Policy as _;

use super::*;
use crate::scheduler::LONGEST_WAIT_NS;

mod early;
mod pauses;
mod slots;
mod whole;

const QUANTUM_NS: u64 = 20_000_000;
const TICK_NS: u64 = 4_000_000;

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
        let units = SCALE * super::QUANTUM_NS * PASS_UNITS;
        let pass = self.core.pass(ClientIndex(node)).unwrap_or(0.0);
        let present = self.core.global_pass() * units;
        let all = (self.core.total_tickets() as f64 / SCALE).max(1.0);
        let longest = LONGEST_WAIT_NS as f64 / all * PASS_UNITS;
        let latest = match kind {
            DecisionKind::Pick => present + longest,
            _ => longest,
        };
        self.trace.push(Decision {
            kind,
            node,
            tid: node,
            time_ns: self.clock_ns,
            pass: (pass * units) as u64,
            tickets: f64::from(node),
            present: present as u64,
            key: latest as u64,
            service_ns,
            quantum_ns: QUANTUM_NS,
            tasks: 1,
            ..Decision::default()
        });
    }

    /// A trace begins here, with the state: these compete, in the order of their passes or
    /// not.
    fn begin(&mut self, competing: &[u32]) {
        self.trace.clear();
        self.tell(DecisionKind::Begin, 0, 0);
        for node in competing {
            self.tell(DecisionKind::Competes, *node, 0);
        }
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
            let next = self.core.pick().expect("a client competes").0;
            self.run(next, QUANTUM_NS / (1 + u64::from(turn % 3)));
        }
    }

    /// With another quantum of one of them.
    fn replay_with(&mut self, node: u32, quantum_ns: u64) -> Result<u64, Disallowed> {
        let its = self.trace.iter_mut().filter(|told| told.node == node);
        its.for_each(|told| told.quantum_ns = quantum_ns);
        self.replay()
    }

    fn replay(&self) -> Result<u64, Disallowed> {
        let mut replay = OnOne::new(TICK_NS);
        let steps = self.trace.iter().try_for_each(|d| replay.step(d));
        steps.map(|()| replay.picks())
    }
}

#[test]
fn the_core_s_own_decisions_are_allowed() {
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
        kernel.run(1, QUANTUM_NS + TICK_NS);
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
fn a_join_with_more_than_is_due_is_found() {
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
fn a_client_that_finds_the_cpu_idle_gets_it() {
    let mut kernel = Kernel::new();
    [1, 2].into_iter().for_each(|node| kernel.join(node));
    // The second deserves more, but came when the CPU was given away.
    kernel.run(1, QUANTUM_NS + TICK_NS);
    assert_eq!(kernel.replay(), Ok(1));
    kernel.run(1, 1_000_000);
    assert!(kernel.replay().is_err(), "only once");
}

#[test]
fn a_waking_task_is_next_within_a_quantum_while_none_waits() {
    let units = SCALE * super::QUANTUM_NS * PASS_UNITS;
    // The distance behind the running task, in that task's quanta.
    for (behind, others, allowed) in [(0.9, 0, true), (1.1, 0, false), (0.9, 1, false)] {
        let mut kernel = Kernel::new();
        kernel.join(1);
        kernel.run(1, QUANTUM_NS);
        (0..others).for_each(|other| kernel.join(10 + other));
        let runs = kernel.trace[2].pass;
        kernel.join(4);
        let join = kernel.trace.last_mut().expect("it was told");
        join.pass = runs + (behind / SCALE * units) as u64;
        // The running task yields before its quantum is over.
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
    let found = kernel.replay().expect_err("no client joined");
    assert!(
        matches!(found, Disallowed::NotWhole { node: 1, .. }),
        "{found}"
    );
}

#[test]
fn a_trace_may_begin_with_the_state() {
    let mut kernel = Kernel::new();
    [3, 2, 1].into_iter().for_each(|node| kernel.join(node));
    kernel.turns(50);
    kernel.begin(&[1, 2, 3]);
    kernel.turns(50);
    assert_eq!(kernel.replay(), Ok(50));
    // What is wrong is found as from the beginning.
    for _ in 0..3 {
        kernel.run(1, QUANTUM_NS + TICK_NS);
    }
    let found = kernel.replay().expect_err("it is out of turn");
    assert!(matches!(found, Disallowed::Pick { node: 1, .. }), "{found}");
}

#[test]
fn turns_from_before_the_state_are_not_judged_and_no_more() {
    for (turns, allowed) in [(UNKNOWN_TURNS, true), (UNKNOWN_TURNS + 1, false)] {
        let mut kernel = Kernel::new();
        [3, 1, 2].into_iter().for_each(|node| kernel.join(node));
        kernel.turns(12);
        kernel.begin(&[1, 2, 3]);
        // The two poor ones only, in turns.
        for turn in 0..turns {
            kernel.run(1 + turn % 2, QUANTUM_NS + TICK_NS);
        }
        let replayed = kernel.replay();
        assert_eq!(replayed.is_ok(), allowed, "{turns}: {replayed:?}");
    }
}

#[test]
fn a_client_that_sleeps_in_the_state_gains_nothing() {
    for (gained, allowed) in [(0.0, true), (2.0, false)] {
        let mut kernel = Kernel::new();
        kernel.join(1);
        kernel.turns(5);
        kernel.tell(DecisionKind::Begin, 0, 0);
        kernel.tell(DecisionKind::Competes, 1, 0);
        // It waits for as long as two quanta of its own.
        let wait = 2.0 * QUANTUM_NS as f64 / 4.0 * PASS_UNITS;
        for kind in [DecisionKind::Sleeps, DecisionKind::Join] {
            kernel.tell(kind, 4, 0);
            let told = kernel.trace.last_mut().expect("it was told");
            told.pass = told.present.wrapping_add(wait as u64);
        }
        let join = kernel.trace.last_mut().expect("it was told");
        join.pass = join.pass.wrapping_sub((gained * wait / 2.0) as u64);
        let replayed = kernel.replay();
        assert_eq!(replayed.is_ok(), allowed, "{gained}: {replayed:?}");
    }
}

#[test]
fn a_number_can_be_another_client_s_later() {
    let strides = super::QUANTUM_NS * PASS_UNITS;
    for (kind, allowed) in [(DecisionKind::New, true), (DecisionKind::Join, false)] {
        let mut kernel = Kernel::new();
        // It goes with a long wait before it, and comes with a short one.
        for (kind, wait) in [
            (DecisionKind::New, 5.0),
            (DecisionKind::Leave, 5.0),
            (kind, 0.25),
        ] {
            kernel.tell(kind, 4, 0);
            kernel.trace.last_mut().expect("it was told").pass = (wait * strides) as u64;
        }
        let replayed = kernel.replay();
        assert_eq!(replayed.is_ok(), allowed, "{kind:?}: {replayed:?}");
    }
}

#[test]
fn each_client_has_its_own_quantum() {
    for (quantum_ns, allowed) in [(QUANTUM_NS, false), (2 * QUANTUM_NS, true)] {
        let mut kernel = Kernel::new();
        [1, 2].into_iter().for_each(|node| kernel.join(node));
        kernel.turns(6);
        // Its turn is interrupted when it has used more than the other one may.
        kernel.run(2, QUANTUM_NS + TICK_NS);
        kernel.run(2, QUANTUM_NS / 2);
        let replayed = kernel.replay_with(2, quantum_ns);
        assert_eq!(replayed.is_ok(), allowed, "{quantum_ns}: {replayed:?}");
    }
}

#[test]
fn a_client_worth_more_after_its_charge_may_begin_another_turn() {
    let turn_ns = QUANTUM_NS + TICK_NS;
    for (tickets, used_ns, allowed) in [
        (4.0, turn_ns - 1, true),
        // That turn is over, too.
        (4.0, turn_ns, false),
        // The other one is first all the same.
        (2.1, turn_ns - 1, false),
    ] {
        let mut kernel = Kernel::new();
        let mut tell = |kind, node, tickets: f64, wait_ns: f64, service_ns| {
            kernel.tell(kind, node, service_ns);
            let told = kernel.trace.last_mut().expect("it was told");
            told.tickets = tickets;
            told.pass = (wait_ns * PASS_UNITS) as u64;
        };
        tell(DecisionKind::Join, 1, 1.0, 40e6, 0);
        tell(DecisionKind::Join, 2, 2.0, 32e6, 0);
        tell(DecisionKind::Pick, 2, 2.0, 32e6, 0);
        tell(DecisionKind::Charge, 2, 2.0, 44e6, turn_ns);
        let wait_ns = 88e6 / tickets;
        tell(DecisionKind::Tickets, 2, tickets, wait_ns, 0);
        // It waits until the turn is over.
        tell(DecisionKind::Join, 3, 3.0, 8e6, 0);
        let wait_ns = wait_ns + used_ns as f64 / tickets;
        tell(DecisionKind::Charge, 2, tickets, wait_ns, used_ns);
        tell(DecisionKind::Pick, 2, tickets, wait_ns, 0);
        let replayed = kernel.replay();
        assert_eq!(
            replayed.is_ok(),
            allowed,
            "{tickets} {used_ns}: {replayed:?}"
        );
    }
}

#[test]
fn a_turn_goes_on_in_another_node() {
    for (tid, allowed) in [(2, true), (3, false)] {
        let mut kernel = Kernel::new();
        [1, 2].into_iter().for_each(|node| kernel.join(node));
        kernel.turns(6);
        kernel.run(2, QUANTUM_NS / 2);
        kernel.core.leave(ClientIndex(2)).expect("it is there");
        kernel.tell(DecisionKind::Leave, 2, 0);
        kernel.join(3);
        // Far behind the other one, which waits.
        let join = kernel.trace.last_mut().expect("it was told");
        join.pass += (5.0 * super::QUANTUM_NS * PASS_UNITS) as u64;
        let charge = Decision {
            kind: DecisionKind::Charge,
            tid,
            ..*join
        };
        kernel.trace.push(charge);
        kernel.trace.push(Decision {
            kind: DecisionKind::Pick,
            ..charge
        });
        let replayed = kernel.replay();
        assert_eq!(replayed.is_ok(), allowed, "{tid}: {replayed:?}");
    }
}

#[test]
fn a_client_that_joins_after_a_task_was_taken_is_late() {
    for (joins_after, allowed) in [(true, true), (false, false)] {
        let mut kernel = Kernel::new();
        [1, 2, 3].into_iter().for_each(|node| kernel.join(node));
        kernel.turns(12);
        if !joins_after {
            kernel.join(1000);
        }
        let next = kernel.core.pick().expect("a client competes").0;
        let taken = if joins_after { next } else { 1 };
        kernel.run(taken, QUANTUM_NS);
        if joins_after {
            let next = kernel.core.pick().expect("a client competes").0;
            kernel.join(1000);
            kernel.tell(DecisionKind::Pick, next, 0);
        } else {
            kernel.tell(DecisionKind::Pick, 1, 0);
        }
        let replayed = kernel.replay();
        assert_eq!(replayed.is_ok(), allowed, "{joins_after}: {replayed:?}");
    }
}

#[test]
fn the_core_s_passes_wrap_around() {
    let mut kernel = Kernel::new();
    [1, 4].into_iter().for_each(|node| kernel.join(node));
    let charge = |kernel: &mut Kernel, node| {
        let charged = kernel
            .core
            .charge(ClientIndex(node), QUANTUM_NS, QUANTUM_NS);
        charged.expect("it is there");
        kernel.tell(DecisionKind::Charge, node, QUANTUM_NS);
    };
    for _ in 0..50 {
        charge(&mut kernel, 1);
    }
    // What it is owed is a thousand times the wait at a thousandth of its tickets: that is
    // before the first pass.
    let set = kernel.core.set_tickets(ClientIndex(4), 4);
    set.expect("it is there");
    let mut told = DecisionKind::Tickets;
    let mut passes = Vec::new();
    for _ in 0..50 {
        kernel.tell(told, 4, QUANTUM_NS);
        let pass = kernel.core.pass(ClientIndex(4)).expect("it competes");
        let pass = if pass > WRAP / 2.0 { pass - WRAP } else { pass };
        passes.push(pass);
        let last = kernel.trace.last_mut().expect("it was told");
        last.tickets /= SCALE;
        last.pass = (pass * SCALE * super::QUANTUM_NS * PASS_UNITS) as i64 as u64;
        told = DecisionKind::Charge;
        let charged = kernel.core.charge(ClientIndex(4), QUANTUM_NS, QUANTUM_NS);
        charged.expect("it is there");
    }
    assert!(passes[0] < 0.0 && passes[49] > 0.0, "{passes:?}");
    assert_eq!(kernel.replay(), Ok(0));
}

#[test]
fn a_lottery_is_not_judged() {
    let mut kernel = Kernel::new();
    kernel.join(1);
    kernel.turns(3);
    kernel.trace.last_mut().expect("it was told").drawn = true;
    assert_eq!(kernel.replay(), Err(Disallowed::Drawn { pick: 3 }));
}
