//! Proportional shares over every layout: nobody's CPU time falls further short
//! of what is due to it than docs/MANY-CPUS.md says.

use std::cell::RefCell;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use prorata_core::run_queue::{Comparison, End, Layout};

use super::seeded;
use super::turns::{Machine, Member, due};

/// Weights are rounded to parts of tickets, and passes compared without their parts.
const ROUNDING: f64 = 2e-3;

/// What is promised to a task from a moment on, until something changes.
#[derive(Clone, Copy, Debug)]
struct Promise {
    task: usize,
    /// CPUs.
    due: f64,
    /// By how many quanta it may fall short.
    bound: f64,
    received: f64,
    /// Its pool, and the turns that had begun there past a smaller pass.
    pool: usize,
    past_smaller: u32,
}

/// What is promised from now on.
struct Segment {
    start_ns: u64,
    promises: Vec<Promise>,
}

impl Segment {
    fn new(machine: &Machine) -> Self {
        let received = machine.received();
        let mut promises = Vec::new();
        for (pool, (cpus, members)) in machine.pools().into_iter().enumerate() {
            let weights: Vec<_> = members.iter().map(|member| member.weight).collect();
            for (place, due) in due(&weights, cpus).into_iter().enumerate() {
                let task = members[place].task;
                promises.push(Promise {
                    task,
                    due,
                    bound: bound(&members, place, cpus),
                    received: received[task],
                    pool,
                    past_smaller: machine.past_smaller[pool],
                });
            }
        }
        Self {
            start_ns: machine.now_ns,
            promises,
        }
    }

    /// By how much each task falls short by now, by how much it may, and by how
    /// much more as turns have begun past a smaller pass.
    fn short(&self, machine: &Machine) -> Vec<(f64, f64, f64)> {
        let time = (machine.now_ns - self.start_ns) as f64 / super::turns::QUANTUM_NS as f64;
        let received = machine.received();
        let short = |promise: &Promise| {
            let had = received[promise.task] - promise.received;
            let past = machine.past_smaller[promise.pool] - promise.past_smaller;
            let more = promise.due * f64::from(past);
            (promise.due * time - had, promise.bound, more)
        };
        self.promises.iter().map(short).collect()
    }
}

/// The bound of docs/MANY-CPUS.md, for one of those who compete on so many CPUs.
fn bound(members: &[Member], place: usize, cpus: u32) -> f64 {
    let cpus = f64::from(cpus);
    if members.len() as f64 <= cpus {
        // Everybody runs.
        return 0.0;
    }
    let sum = |of: fn(&Member) -> f64| members.iter().map(of).sum::<f64>();
    let (tickets, offsets) = (sum(|member| member.tickets), sum(|member| member.offset));
    let me = members[place];
    let ahead = me.offset - me.tickets * offsets / tickets;
    // The end of my next stride, beyond the virtual time.
    let deadline = (me.offset + 1.0) / me.tickets;
    let others = members.iter().filter(|member| member.task != me.task);
    let before: f64 = others
        .map(|other| {
            let due_by_then = (other.tickets * deadline - other.offset).max(0.0);
            let beyond = (other.offset - other.tickets * deadline).max(0.0);
            let blocking = other.runs.map_or(0.0, |had| {
                let is_later = other.offset - had + 1.0 > other.tickets * deadline;
                f64::from(u8::from(is_later)) * (1.0 - had - due_by_then).max(0.0)
            });
            beyond + blocking
        })
        .sum();
    let due = cpus * me.tickets / tickets;
    (1.0 + ahead + due * (before - 1.0) / cpus).max(0.0)
}

/// What was seen in all runs together.
#[derive(Default, Debug)]
struct Seen {
    /// The largest part of a bound of at least half a quantum that was reached.
    closest: f64,
    /// Promises of a whole CPU, of which others would have been due less.
    infeasible: u32,
    /// Times that somebody fell further short than without refused locks.
    beyond: u32,
    /// By how many quanta at most, and the largest part of what it might be.
    furthest_beyond: f64,
    closest_beyond: f64,
}

impl Seen {
    fn promised(&mut self, segment: &Segment) {
        let whole = |promise: &&Promise| promise.due == 1.0 && promise.bound > 0.0;
        self.infeasible += segment.promises.iter().filter(whole).count() as u32;
    }

    fn now(&mut self, segment: &Segment, machine: &Machine, layout: &Layout) {
        for (short, bound, more) in segment.short(machine) {
            assert!(
                short <= bound + more + ROUNDING,
                "{layout:?}: {short} quanta short, by {bound} and {more} at most"
            );
            self.beyond += u32::from(short > bound + ROUNDING);
            self.furthest_beyond = self.furthest_beyond.max(short - bound);
            if more >= 0.5 {
                self.closest_beyond = self.closest_beyond.max((short - bound) / more);
            }
            if bound >= 0.5 {
                self.closest = self.closest.max(short / bound);
            }
        }
    }

    /// Three quarters of the bounds would not hold, and not for want of
    /// infeasible weights.
    fn check(&self) {
        println!("{self:?}");
        assert!(self.closest > 0.75, "the bound is loose: {self:?}");
        assert_eq!(self.beyond, 0);
        assert!(self.infeasible > 100, "all is feasible: {self:?}");
    }
}

fn layouts(cpus: u32) -> [Layout; 5] {
    let half = |cpu| cpu % 2;
    [
        Layout::GlobalList,
        Layout::PriorityLevels,
        Layout::MultiQueue(Comparison::Scan),
        Layout::MultiQueue(Comparison::Tournament),
        Layout::Pools((0..cpus).map(half).collect(), Comparison::Tournament),
    ]
}

/// A thousand tickets and more, so that rounding feasible ones to a part is not
/// what is measured.
fn weight() -> impl Strategy<Value = u32> {
    prop_oneof![
        2 => Just(1_000),
        2 => 1_000..10_000u32,
        1 => 1_000..=42_000u32,
    ]
}

/// Something that changes what is due.
#[derive(Clone, Copy, Debug)]
enum Event {
    Wake(usize),
    /// Who ends a turn next blocks.
    Block,
    Tickets(usize, u32),
    Balance(u32),
}

/// Events, and the turns that end after each.
fn history(tasks: usize) -> impl Strategy<Value = Vec<(Event, u32)>> {
    let event = prop_oneof![
        3 => (0..tasks).prop_map(Event::Wake),
        2 => Just(Event::Block),
        2 => (0..tasks, weight()).prop_map(|(task, weight)| Event::Tickets(task, weight)),
        1 => (0..8u32).prop_map(Event::Balance),
    ];
    prop::collection::vec((event, 0..60u32), 1..40)
}

fn happen(machine: &mut Machine, event: Event) {
    match event {
        Event::Wake(task) => machine.wake(task),
        Event::Block => {
            machine.step(End::Blocks);
        }
        Event::Tickets(task, weight) => machine.set_tickets(task, weight),
        Event::Balance(cpu) => {
            machine.balance(cpu % machine.cpus);
        }
    }
}

fn explore<S: Strategy>(strategy: &S, test: impl Fn(S::Value)) {
    let config = ProptestConfig {
        cases: 40,
        ..seeded(1995)
    };
    let run = TestRunner::new(config).run(strategy, |value| {
        test(value);
        Ok(())
    });
    run.unwrap_or_else(|failure| panic!("{failure}"));
}

/// From the beginning on, with weights that stay.
#[test]
fn nobody_falls_a_quantum_short() {
    let seen = RefCell::new(Seen::default());
    let sets = prop::collection::vec(weight(), 16..28);
    explore(&(sets, 2..9u32, any::<u64>()), |(weights, cpus, seed)| {
        for layout in layouts(cpus) {
            let mut machine = Machine::new(&layout, cpus, &weights, seed);
            machine.wake_all();
            let segment = Segment::new(&machine);
            for promise in &segment.promises {
                assert!(promise.bound <= 1.0, "{promise:?}");
            }
            seen.borrow_mut().promised(&segment);
            machine.settle();
            for _ in 0..1500 {
                machine.step(End::Runnable);
                seen.borrow_mut().now(&segment, &machine, &layout);
            }
        }
    });
    seen.borrow().check();
}

/// Tasks wake, block, move and are given other tickets, many of them infeasible.
#[test]
fn after_each_change_nobody_falls_further_short_than_the_state_says() {
    let seen = RefCell::new(Seen::default());
    let sets = prop::collection::vec(weight(), 12);
    let strategy = (sets, history(12), 2..6u32, any::<u64>());
    explore(&strategy, |(weights, history, cpus, seed)| {
        for layout in layouts(cpus) {
            let mut machine = Machine::new(&layout, cpus, &weights, seed);
            for &(event, turns) in &history {
                happen(&mut machine, event);
                let segment = Segment::new(&machine);
                seen.borrow_mut().promised(&segment);
                seen.borrow_mut().now(&segment, &machine, &layout);
                for _ in 0..turns {
                    machine.step(End::Runnable);
                    seen.borrow_mut().now(&segment, &machine, &layout);
                }
            }
        }
    });
    seen.borrow().check();
}

/// Where locks are refused now and then, nobody falls further short than by what
/// is due to it in the turns that begin past a smaller pass; where none is,
/// there are none.
#[test]
fn refused_locks_put_off_by_the_turns_begun_past_a_smaller_pass() {
    let seen = RefCell::new(Seen::default());
    let turns_past = RefCell::new([0; 2]);
    let sets = prop::collection::vec(weight(), 12);
    let strategy = (sets, history(12), 2..6u32, any::<u64>(), 1..9u64);
    explore(&strategy, |(weights, history, cpus, seed, granted_of)| {
        for layout in layouts(cpus) {
            let mut machine = Machine::new(&layout, cpus, &weights, seed);
            machine.granted_of = granted_of;
            for &(event, turns) in &history {
                happen(&mut machine, event);
                let segment = Segment::new(&machine);
                for _ in 0..3 * turns {
                    machine.step(End::Runnable);
                    seen.borrow_mut().now(&segment, &machine, &layout);
                }
            }
            let past: u32 = machine.past_smaller.iter().sum();
            turns_past.borrow_mut()[usize::from(granted_of > 1)] += past;
        }
    });
    println!(
        "{:?}, turns past a smaller pass {turns_past:?}",
        seen.borrow()
    );
    assert_eq!(turns_past.borrow()[0], 0);
    assert!(turns_past.borrow()[1] > 1000 && seen.borrow().beyond > 100);
    // A quarter of that would not do.
    assert!(seen.borrow().closest_beyond > 0.25);
}
