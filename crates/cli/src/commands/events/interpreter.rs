//! What decisions of the scheduler in the kernel mean to threads.

use std::collections::{BTreeMap, VecDeque};

use prorata_core::hybrid::{EarlyRank, WakeClass};
use prorata_kernel::scheduler::{Decision, DecisionKind};
use prorata_protocol::{EventKind, SleepKind, TurnEndKind};

/// An event, of a thread if that is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadEvent {
    pub time_ns: u64,
    node: u32,
    pub thread: Option<u32>,
    pub what: EventKind,
}

/// A turn that lasts.
#[derive(Clone, Copy, Debug)]
struct Turn {
    node: u32,
    thread: u32,
    used_ns: u64,
    quantum_ns: u64,
    /// When it was last charged.
    until_ns: u64,
    /// Whether its client exhausted its allowance meanwhile.
    meets_limit: bool,
}

/// Keeps the last events.
pub struct Interpreter {
    events: VecDeque<ThreadEvent>,
    most: usize,
    /// The kernel ends turns at its tick.
    tick_ns: u64,
    /// By CPU.
    turns: BTreeMap<u32, Turn>,
    /// By node, the thread that was named last.
    threads: BTreeMap<u32, u32>,
    /// Nodes that fell asleep and have not woken, with the thread that ran last.
    asleep: BTreeMap<u32, u32>,
}

impl Interpreter {
    /// Keeps so many events.
    pub fn new(most: usize, tick_ns: u64) -> Self {
        Self {
            events: VecDeque::new(),
            most,
            tick_ns,
            turns: BTreeMap::new(),
            threads: BTreeMap::new(),
            asleep: BTreeMap::new(),
        }
    }

    /// Whether there are as many events as wanted.
    pub fn is_full(&self) -> bool {
        self.events.len() == self.most
    }

    pub fn take(&mut self, decision: &Decision) {
        let Decision { node, time_ns, .. } = *decision;
        if decision.tid != 0 {
            self.threads.insert(node, decision.tid);
        }
        match decision.kind {
            DecisionKind::Join | DecisionKind::New => {
                self.asleep.remove(&node);
                let (early, from) = (false, SleepKind::Unknown);
                self.note(time_ns, node, None, EventKind::Woke { early, from });
            }
            DecisionKind::Leave => self.leave(decision),
            DecisionKind::WaitEarly => self.wake_early(decision),
            DecisionKind::EndEarly => {
                self.note(time_ns, node, Some(decision.tid), EventKind::EarlyEnded);
            }
            DecisionKind::Pick => {
                let turn = Turn {
                    node,
                    thread: decision.tid,
                    used_ns: 0,
                    quantum_ns: decision.quantum_ns,
                    until_ns: time_ns,
                    meets_limit: false,
                };
                if let Some(before) = self.turns.insert(decision.cpu, turn) {
                    self.end(&before, false);
                }
            }
            DecisionKind::Charge => {
                let mut turns = self.turns.values_mut();
                if let Some(turn) = turns.find(|turn| turn.thread == decision.tid) {
                    turn.used_ns += decision.service_ns;
                    turn.until_ns = time_ns;
                }
            }
            DecisionKind::Pause => {
                for turn in self.turns.values_mut() {
                    turn.meets_limit |= turn.node == node;
                }
            }
            DecisionKind::Begin
            | DecisionKind::Competes
            | DecisionKind::Sleeps
            | DecisionKind::Tickets
            | DecisionKind::Wait
            | DecisionKind::Look
            | DecisionKind::Take
            | DecisionKind::Go
            | DecisionKind::Overdue
            | DecisionKind::Resume
            | DecisionKind::Spare
            | DecisionKind::LookAtSlot
            | DecisionKind::TakeInSlot
            | DecisionKind::FallBack => {}
        }
    }

    /// The last thread of a node falls asleep.
    fn leave(&mut self, decision: &Decision) {
        let (cpu, node) = (decision.cpu, decision.node);
        let mut thread = None;
        if self.turns.get(&cpu).is_some_and(|turn| turn.node == node)
            && let Some(turn) = self.turns.remove(&cpu)
        {
            self.end(&turn, true);
            self.asleep.insert(node, turn.thread);
            thread = Some(turn.thread);
        }
        let slept = EventKind::Slept {
            on: SleepKind::Unknown,
            place: None,
        };
        self.note(decision.time_ns, node, thread, slept);
    }

    /// A thread woke that is early: its rank tells what it slept on.
    fn wake_early(&mut self, decision: &Decision) {
        let class = decision
            .early
            .map(|bits| EarlyRank::from_bits(bits).class());
        let from = class.map_or(SleepKind::Unknown, |class| match class {
            WakeClass::Lock => SleepKind::Lock,
            WakeClass::Disk => SleepKind::Disk,
            WakeClass::Other => SleepKind::Kernel,
            WakeClass::User => SleepKind::User,
        });
        let woke = EventKind::Woke { early: true, from };
        let mut of_node = self.events.iter_mut().rev();
        match of_node.find(|event| event.node == decision.node) {
            // The node joined by this wake.
            Some(event) if matches!(event.what, EventKind::Woke { early: false, .. }) => {
                event.thread = Some(decision.tid);
                event.what = woke;
            }
            _ => self.note(decision.time_ns, decision.node, Some(decision.tid), woke),
        }
    }

    fn end(&mut self, turn: &Turn, slept: bool) {
        // Nothing was charged: the task was picked again before it ran.
        if turn.used_ns == 0 {
            return;
        }
        let reason = if slept {
            TurnEndKind::Sleep
        } else if turn.meets_limit {
            TurnEndKind::Limit
        } else if turn.used_ns + self.tick_ns > turn.quantum_ns {
            TurnEndKind::Quantum
        } else {
            TurnEndKind::GaveWay
        };
        let ended = EventKind::TurnEnded {
            reason,
            lasted_ns: turn.used_ns,
        };
        self.note(turn.until_ns, turn.node, Some(turn.thread), ended);
    }

    fn note(&mut self, time_ns: u64, node: u32, thread: Option<u32>, what: EventKind) {
        if self.is_full() {
            self.events.pop_front();
        }
        self.events.push_back(ThreadEvent {
            time_ns,
            node,
            thread,
            what,
        });
    }

    /// Finds out where the threads sleep that fell asleep last and still do.
    pub fn find_places(&mut self, place_of: impl Fn(u32) -> Option<Box<str>>) {
        for (node, thread) in std::mem::take(&mut self.asleep) {
            let mut of_node = self.events.iter_mut().rev();
            if let Some(event) = of_node.find(|event| event.node == node)
                && let EventKind::Slept { place, .. } = &mut event.what
            {
                *place = place_of(thread).map(Into::into);
            }
        }
    }

    /// All, by time. Events of a node are told of the thread that it named last.
    pub fn into_events(self) -> Vec<ThreadEvent> {
        let threads = self.threads;
        let named = |event: ThreadEvent| ThreadEvent {
            thread: event.thread.or(threads.get(&event.node).copied()),
            ..event
        };
        let mut events: Vec<ThreadEvent> = self.events.into_iter().map(named).collect();
        events.sort_by_key(|event| event.time_ns);
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(kind: DecisionKind, node: u32, tid: u32, time_ms: u64) -> Decision {
        Decision {
            kind,
            node,
            tid,
            time_ns: time_ms * 1_000_000,
            tickets: 1.0,
            quantum_ns: 20_000_000,
            tasks: 1,
            ..Decision::default()
        }
    }

    fn charge(node: u32, tid: u32, time_ms: u64, used_ms: u64) -> Decision {
        Decision {
            service_ns: used_ms * 1_000_000,
            ..decision(DecisionKind::Charge, node, tid, time_ms)
        }
    }

    fn early(node: u32, tid: u32, time_ms: u64, class: WakeClass) -> Decision {
        Decision {
            early: Some(EarlyRank::new(class, 0, 7).bits()),
            ..decision(DecisionKind::WaitEarly, node, tid, time_ms)
        }
    }

    fn events_of(decisions: &[Decision], most: usize) -> Vec<(Option<u32>, EventKind)> {
        let mut interpreter = Interpreter::new(most, 4_000_000);
        decisions
            .iter()
            .for_each(|decision| interpreter.take(decision));
        interpreter.find_places(|thread| Some(format!("place_{thread}").into()));
        let events = interpreter.into_events().into_iter();
        events.map(|event| (event.thread, event.what)).collect()
    }

    fn ended(reason: TurnEndKind, lasted_ms: u64) -> EventKind {
        EventKind::TurnEnded {
            reason,
            lasted_ns: lasted_ms * 1_000_000,
        }
    }

    /// A hog's whole turn, then the turn of a sleeper that wakes early and sleeps again.
    fn history() -> Vec<Decision> {
        use DecisionKind::{Join, Leave, Pick};
        vec![
            decision(Pick, 1, 11, 0),
            charge(1, 11, 4, 4),
            charge(1, 11, 20, 16),
            decision(Pick, 1, 11, 20),
            decision(Join, 2, 0, 25),
            early(2, 22, 25, WakeClass::User),
            charge(1, 11, 25, 5),
            decision(Pick, 2, 22, 25),
            charge(2, 22, 26, 1),
            decision(Leave, 2, 0, 26),
        ]
    }

    #[test]
    fn turns_sleeps_and_wakes_are_told_with_their_reasons() {
        let woke = EventKind::Woke {
            early: true,
            from: SleepKind::User,
        };
        let slept = EventKind::Slept {
            on: SleepKind::Unknown,
            place: Some("place_22".to_owned()),
        };
        let expected = [
            (Some(11), ended(TurnEndKind::Quantum, 20)),
            (Some(22), woke),
            (Some(11), ended(TurnEndKind::GaveWay, 5)),
            (Some(22), ended(TurnEndKind::Sleep, 1)),
            (Some(22), slept),
        ];
        assert_eq!(events_of(&history(), 5), expected);
        assert_eq!(events_of(&history(), 4), expected[1..]);
    }

    #[test]
    fn the_rank_of_an_early_task_tells_what_it_slept_on() {
        let kinds = [
            (WakeClass::Lock, SleepKind::Lock),
            (WakeClass::Disk, SleepKind::Disk),
            (WakeClass::Other, SleepKind::Kernel),
            (WakeClass::User, SleepKind::User),
        ];
        for (class, from) in kinds {
            let woke = EventKind::Woke { early: true, from };
            assert_eq!(events_of(&[early(1, 5, 0, class)], 9), [(Some(5), woke)]);
        }
    }

    #[test]
    fn a_client_that_woke_again_sleeps_nowhere() {
        let mut decisions = history();
        decisions.push(decision(DecisionKind::Join, 2, 0, 30));
        let events = events_of(&decisions, 9);
        let place = |(_, what): &(Option<u32>, EventKind)| match what {
            EventKind::Slept { place, .. } => place.clone(),
            _ => None,
        };
        assert!(events.iter().all(|event| place(event).is_none()));
    }
}
