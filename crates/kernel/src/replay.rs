//! A trace of decisions replayed against the core: every pick must be one that
//! stride scheduling (1995, 2) allows.
//!
//! The core is told who joins, leaves, is worth something else and uses what; a
//! pick is allowed if nobody who competes has a lesser pass. The kernel knows one
//! rule more than the core: who joins stands no further in front than its node
//! does, behind those of the node who joined before it. So a place that it gives
//! may be further back than the core's, which is kept in mind, but not further
//! in front.
//!
//! Holds for one CPU: on several, a CPU takes who waits first where it looks.

use std::collections::HashMap;

use prorata_core::policy::{ClientIndex, Policy as _, PolicyError, Stride};

use crate::scheduler::{Decision, DecisionKind};

/// Tickets of the core's, which are whole, for each base ticket.
const SCALE: f64 = 1000.0;

/// Units of [`Decision::pass`] that are a nanosecond for each base ticket.
const PASS_UNITS: f64 = (1 << 20) as f64;

/// How much time a pick may come too early by: what the kernel's rounding adds
/// up to.
const TOLERANCE_NS: f64 = 100_000.0;

/// Why a trace is not one of stride scheduling.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Disallowed {
    /// Somebody else deserved to run more.
    #[error(
        "pick {pick} is not allowed: task {tid} comes {early_ns} ns of CPU time too early, before \
         task {instead_of}"
    )]
    Pick {
        /// How many picks there were, this one counted.
        pick: u64,
        /// The CPU's clock.
        time_ns: u64,
        /// Who was picked.
        tid: u32,
        /// Who should have been.
        instead_of: u32,
        /// Until when, in CPU time of all together.
        early_ns: u64,
    },
    /// Somebody joins further in front than its last leave or its newness allows.
    #[error("task {tid} joins with {early_ns} ns of CPU time more than it is due")]
    Join {
        /// The CPU's clock.
        time_ns: u64,
        /// Who joined.
        tid: u32,
        /// How much it gains.
        early_ns: u64,
    },
    /// The core refuses the decision: something is missing before it.
    #[error("the trace is not whole at task {tid}: {error}")]
    NotWhole {
        /// Whose decision.
        tid: u32,
        /// What the core says.
        error: PolicyError,
    },
}

/// Tasks as the core sees them.
#[derive(Debug)]
pub struct Replay {
    core: Stride,
    tasks: HashMap<u32, Task>,
    quantum_ns: u64,
    /// The longest turn: a quantum, and what the kernel looks too late.
    turn_ns: u64,
    /// Who was picked last, and what it has used since.
    turn: Option<(u32, u64)>,
    picks: u64,
}

#[derive(Debug)]
struct Task {
    index: ClientIndex,
    tickets: u32,
    competes: bool,
    /// How much further back its place is than the core's, in the core's passes.
    behind: f64,
}

impl Replay {
    /// Of a trace from its beginning, of a scheduler with this quantum on a kernel
    /// that looks at the end of a turn once a tick.
    pub fn new(quantum_ns: u64, tick_ns: u64) -> Self {
        Self {
            core: Stride::new(),
            tasks: HashMap::new(),
            quantum_ns,
            turn_ns: quantum_ns + tick_ns,
            turn: None,
            picks: 0,
        }
    }

    /// Picks so far.
    pub fn picks(&self) -> u64 {
        self.picks
    }

    /// The next decision. Cost: for a pick, one look at each task.
    ///
    /// # Errors
    ///
    /// If the policy does not allow it. What follows is not to be judged then.
    pub fn step(&mut self, decision: &Decision) -> Result<(), Disallowed> {
        let tid = decision.tid;
        let next = ClientIndex(self.tasks.len() as u32);
        // Out of range is the nearest in it.
        let tickets = ((decision.tickets * SCALE).round() as u32).max(1);
        let task = self.tasks.entry(tid).or_insert(Task {
            index: next,
            tickets,
            competes: false,
            behind: 0.0,
        });
        let index = task.index;
        let told = match decision.kind {
            DecisionKind::Pick => return self.pick(decision),
            DecisionKind::Join => return self.join(decision, tickets),
            DecisionKind::Leave => {
                task.competes = false;
                self.turn = self.turn.filter(|turn| turn.0 != tid);
                self.core.leave(index)
            }
            DecisionKind::Tickets => {
                task.behind *= f64::from(task.tickets) / f64::from(tickets);
                task.tickets = tickets;
                self.core.set_tickets(index, tickets)
            }
            DecisionKind::Charge => {
                if let Some((running, used_ns)) = &mut self.turn
                    && *running == tid
                {
                    *used_ns += decision.service_ns;
                }
                self.core
                    .charge(index, decision.service_ns, self.quantum_ns)
            }
        };
        told.map_err(|error| Disallowed::NotWhole { tid, error })
    }

    fn join(&mut self, decision: &Decision, tickets: u32) -> Result<(), Disallowed> {
        let tid = decision.tid;
        let task = self.tasks.get_mut(&tid).expect("it was entered");
        let joined = self.core.join(task.index, tickets);
        joined.map_err(|error| Disallowed::NotWhole { tid, error })?;
        let place = self.core.pass(task.index).unwrap_or(0.0);
        let granted = place - self.core.global_pass();
        let wait = decision.pass.wrapping_sub(decision.present).cast_signed() as f64;
        let given = wait / PASS_UNITS / self.quantum_ns as f64 / SCALE;
        task.tickets = tickets;
        task.competes = true;
        task.behind = given - granted;
        // A node's new task may stand where its node does, which is up to a turn
        // in front of where a new client of the core's would.
        let early_ns = -task.behind * f64::from(tickets) * self.quantum_ns as f64;
        if early_ns > self.turn_ns as f64 + TOLERANCE_NS {
            return Err(Disallowed::Join {
                time_ns: decision.time_ns,
                tid,
                early_ns: early_ns as u64,
            });
        }
        Ok(())
    }

    fn pick(&mut self, decision: &Decision) -> Result<(), Disallowed> {
        self.picks += 1;
        let resumes = self.turn.is_some_and(|(tid, used_ns)| {
            // Tasks outside the scheduler came in between.
            tid == decision.tid && used_ns < self.turn_ns
        });
        if resumes {
            return Ok(());
        }
        self.turn = Some((decision.tid, 0));
        let place = |task: &Task| match self.core.pass(task.index) {
            Some(pass) => pass + task.behind,
            None => f64::MAX,
        };
        let picked = place(&self.tasks[&decision.tid]);
        let competing = self.tasks.iter().filter(|(_, task)| task.competes);
        let places = competing.map(|(tid, task)| (place(task), *tid));
        let Some((first, instead_of)) = places.min_by(|a, b| a.0.total_cmp(&b.0)) else {
            return Ok(());
        };
        let all = self.core.total_tickets() as f64;
        // Passes are in quanta for each ticket.
        let early_ns = (picked - first) * all * self.quantum_ns as f64;
        if early_ns > TOLERANCE_NS {
            return Err(Disallowed::Pick {
                pick: self.picks,
                time_ns: decision.time_ns,
                tid: decision.tid,
                instead_of,
                early_ns: early_ns as u64,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
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
        fn tell(&mut self, kind: DecisionKind, tid: u32, service_ns: u64) {
            let units = SCALE * QUANTUM_NS as f64 * PASS_UNITS;
            let pass = self.core.pass(ClientIndex(tid)).unwrap_or(0.0);
            self.trace.push(Decision {
                kind,
                tid,
                time_ns: self.clock_ns,
                pass: (pass * units) as u64,
                tickets: f64::from(tid),
                present: (self.core.global_pass() * units) as u64,
                service_ns,
            });
        }

        fn join(&mut self, tid: u32) {
            self.core
                .join(ClientIndex(tid), tid * SCALE as u32)
                .expect("it is new");
            self.tell(DecisionKind::Join, tid, 0);
        }

        fn run(&mut self, tid: u32, service_ns: u64) {
            self.tell(DecisionKind::Pick, tid, 0);
            self.clock_ns += service_ns;
            self.core
                .charge(ClientIndex(tid), service_ns, QUANTUM_NS)
                .expect("it is there");
            self.tell(DecisionKind::Charge, tid, service_ns);
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
        [3, 2, 1].into_iter().for_each(|tid| kernel.join(tid));
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
        [3, 1].into_iter().for_each(|tid| kernel.join(tid));
        kernel.turns(12);
        // The poor one takes turn upon turn.
        for _ in 0..3 {
            kernel.run(1, QUANTUM_NS + 4_000_000);
        }
        let found = kernel.replay().expect_err("it is out of turn");
        let Disallowed::Pick {
            pick,
            tid,
            instead_of,
            early_ns,
            ..
        } = found
        else {
            panic!("{found}");
        };
        assert!((13..=15).contains(&pick), "{pick}");
        assert_eq!((tid, instead_of), (1, 3));
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
        assert!(matches!(found, Disallowed::Join { tid: 4, .. }), "{found}");
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
        assert!(kernel.replay().is_err(), "it comes before its time");
    }

    #[test]
    fn a_trace_without_its_beginning_is_not_whole() {
        let mut kernel = Kernel::new();
        kernel.join(1);
        kernel.turns(1);
        kernel.trace.remove(0);
        let found = kernel.replay().expect_err("nobody joined");
        assert!(
            matches!(found, Disallowed::NotWhole { tid: 1, .. }),
            "{found}"
        );
    }
}
