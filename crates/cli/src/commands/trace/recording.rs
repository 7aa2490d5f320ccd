//! Counts decisions, checks them, and writes them for Perfetto.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use prorata_kernel::replay::{Disallowed, Replay};
use prorata_kernel::scheduler::{Decision, DecisionKind, Trace};
use prorata_sim::perfetto::{Events, Track};
use serde_json::json;

/// Name and process of a thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TracedThread {
    pub name: String,
    pub process: u32,
}

/// A thread with decisions.
#[derive(Clone, PartialEq, Debug)]
pub struct TracedTask {
    pub thread: TracedThread,
    /// Its latest value, in base tickets.
    pub tickets: f64,
    pub turns: u64,
    pub used_ns: u64,
    /// Its turn that is not yet written.
    turn: Option<TracedTurn>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct TracedTurn {
    cpu: u32,
    begin_ns: u64,
    /// Time of the last charge.
    end_ns: u64,
    pass: u64,
}

/// The group of the CPUs' tracks, above the largest pid (2^22).
const CPUS: u32 = 1 << 22;

/// The decisions recorded so far.
pub struct Recording<W> {
    /// Writer of the trace.
    pub events: Option<Events<W>>,
    replay: Option<Replay>,
    find: fn(u32) -> TracedThread,
    /// The first decision that is not allowed.
    pub disallowed: Option<Disallowed>,
    /// By thread number.
    pub tasks: BTreeMap<u32, TracedTask>,
    pub decisions: u64,
    pub picks: u64,
    competing: u64,
    /// CPUs with a track.
    cpus: BTreeSet<u32>,
    /// Time of the first decision, the origin of the trace.
    begin_ns: Option<u64>,
}

impl<W: io::Write> Recording<W> {
    /// An empty recording that writes decisions to `events` and checks them with
    /// `replay`. `find` looks a thread up at its first decision.
    pub fn new(events: Option<W>, replay: Option<Replay>, find: fn(u32) -> TracedThread) -> Self {
        Self {
            events: events.map(Events::new),
            replay,
            find,
            disallowed: None,
            tasks: BTreeMap::new(),
            decisions: 0,
            picks: 0,
            competing: 0,
            cpus: BTreeSet::new(),
            begin_ns: None,
        }
    }

    /// Adds further decisions. Checking ends at a gap in the trace.
    pub fn take(&mut self, trace: &Trace) {
        if trace.lost > 0 {
            self.replay = None;
        }
        for decision in &trace.decisions {
            self.note(decision);
        }
    }

    fn note(&mut self, decision: &Decision) {
        self.decisions += u64::from(decision.kind.is_decision());
        if let Some(replay) = &mut self.replay
            && let Err(disallowed) = replay.step(decision)
        {
            self.disallowed = Some(disallowed);
            self.replay = None;
        }
        let first_ns = *self.begin_ns.get_or_insert(decision.time_ns);
        let now_ns = decision.time_ns.saturating_sub(first_ns);
        // Decisions of these kinds concern a client, not a thread.
        match decision.kind {
            DecisionKind::Tickets
            | DecisionKind::Sleeps
            | DecisionKind::Wait
            | DecisionKind::Look
            | DecisionKind::Take
            | DecisionKind::Go
            | DecisionKind::WaitEarly
            | DecisionKind::EndEarly
            | DecisionKind::Overdue
            | DecisionKind::Pause
            | DecisionKind::Resume
            | DecisionKind::Spare
            | DecisionKind::LookAtSlot
            | DecisionKind::TakeInSlot
            | DecisionKind::FallBack => return,
            DecisionKind::Begin => {
                self.competing = 0;
                return;
            }
            DecisionKind::Join | DecisionKind::New | DecisionKind::Competes => {
                self.competing += 1;
                return self.count(now_ns);
            }
            DecisionKind::Leave => {
                self.competing = self.competing.saturating_sub(1);
                return self.count(now_ns);
            }
            DecisionKind::Charge | DecisionKind::Pick => {}
        }
        self.meet(decision.tid);
        let Some(task) = self.tasks.get_mut(&decision.tid) else {
            return;
        };
        task.tickets = decision.tickets;
        match decision.kind {
            DecisionKind::Charge => {
                task.used_ns += decision.service_ns;
                if let Some(turn) = &mut task.turn {
                    turn.end_ns = now_ns;
                }
            }
            DecisionKind::Pick => {
                self.picks += 1;
                task.turns += 1;
                self.write_turn(decision.tid);
                self.meet_cpu(decision.cpu);
                let turn = TracedTurn {
                    cpu: decision.cpu,
                    begin_ns: now_ns,
                    end_ns: now_ns,
                    pass: decision.pass,
                };
                if let Some(task) = self.tasks.get_mut(&decision.tid) {
                    task.turn = Some(turn);
                }
            }
            _ => {}
        }
    }

    /// Writes the unfinished turns.
    pub fn end(&mut self) {
        let tids: Vec<u32> = self.tasks.keys().copied().collect();
        tids.into_iter().for_each(|tid| self.write_turn(tid));
    }

    fn meet(&mut self, tid: u32) {
        if self.tasks.contains_key(&tid) {
            return;
        }
        let thread = (self.find)(tid);
        if let Some(events) = &mut self.events {
            if thread.process == tid {
                events.name_process(tid, &thread.name);
            }
            events.name_track(track(tid, &thread), &thread.name);
        }
        let task = TracedTask {
            thread,
            tickets: 0.0,
            turns: 0,
            used_ns: 0,
            turn: None,
        };
        self.tasks.insert(tid, task);
    }

    fn meet_cpu(&mut self, cpu: u32) {
        let Some(events) = &mut self.events else {
            return;
        };
        if self.cpus.is_empty() {
            events.name_process(CPUS, "CPUs");
        }
        if self.cpus.insert(cpu) {
            events.name_track(cpu_track(cpu), &format!("CPU {cpu}"));
        }
    }

    fn write_turn(&mut self, tid: u32) {
        let Some(task) = self.tasks.get_mut(&tid) else {
            return;
        };
        if let (Some(turn), Some(events)) = (task.turn.take(), &mut self.events) {
            let args = json!({"tickets": task.tickets, "pass": turn.pass});
            let time_ns = (turn.begin_ns, turn.end_ns);
            for track in [track(tid, &task.thread), cpu_track(turn.cpu)] {
                events.slice(track, &task.thread.name, time_ns, &args);
            }
        }
    }

    fn count(&mut self, now_ns: u64) {
        if let Some(events) = &mut self.events {
            events.count(0, "competing threads", now_ns, self.competing);
        }
    }
}

fn track(tid: u32, thread: &TracedThread) -> Track {
    Track {
        process: thread.process,
        thread: tid,
    }
}

fn cpu_track(cpu: u32) -> Track {
    Track {
        process: CPUS,
        thread: CPUS + 1 + cpu,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// Threads 10 and 11 are one process.
    fn find(tid: u32) -> TracedThread {
        TracedThread {
            name: format!("thread{tid}"),
            process: if tid == 11 { 10 } else { tid },
        }
    }

    fn decision(kind: DecisionKind, tid: u32, time_ns: u64, service_ns: u64) -> Decision {
        Decision {
            kind,
            node: tid,
            tid,
            cpu: tid % 2,
            time_ns,
            pass: time_ns << 20,
            tickets: 1.0,
            present: time_ns << 20,
            service_ns,
            quantum_ns: 20_000_000,
            tasks: 1,
            ..Decision::default()
        }
    }

    fn trace(decisions: Vec<Decision>) -> Trace {
        Trace { decisions, lost: 0 }
    }

    #[test]
    fn turns_are_slices_and_are_counted() {
        let mut recording = Recording::new(Some(Vec::new()), None, find);
        recording.take(&trace(vec![
            decision(DecisionKind::Join, 10, 1_000, 0),
            decision(DecisionKind::Pick, 10, 2_000, 0),
            decision(DecisionKind::Charge, 10, 5_000, 3_000),
            // The turn continues.
            decision(DecisionKind::Charge, 10, 9_000, 4_000),
            decision(DecisionKind::Join, 11, 9_000, 0),
        ]));
        recording.take(&trace(vec![
            decision(DecisionKind::Pick, 11, 9_500, 0),
            decision(DecisionKind::Charge, 11, 11_000, 1_500),
            decision(DecisionKind::Leave, 11, 11_000, 0),
            decision(DecisionKind::Pick, 10, 12_000, 0),
            decision(DecisionKind::Charge, 10, 13_000, 1_000),
        ]));
        recording.end();
        assert_eq!((recording.decisions, recording.picks), (10, 3));
        let used = |tid| (recording.tasks[&tid].turns, recording.tasks[&tid].used_ns);
        assert_eq!((used(10), used(11)), ((2, 8_000), (1, 1_500)));
        let text = recording.events.take().map(Events::finish);
        let text = text.expect("it was asked for").expect("memory");
        let written: Value = serde_json::from_slice(&text).expect("JSON");
        let all = written["traceEvents"].as_array().expect("a list");
        let all_slices = all.iter().filter(|event| event["ph"] == "X");
        let (on_cpus, slices): (Vec<&Value>, Vec<&Value>) =
            all_slices.partition(|slice| slice["pid"] == CPUS);
        let turns = on_cpus
            .iter()
            .map(|slice| json!([slice["tid"], slice["name"]]));
        let turn = |cpu: u32, name| json!([CPUS + 1 + cpu, name]);
        let expected = [
            turn(0, "thread10"),
            turn(0, "thread10"),
            turn(1, "thread11"),
        ];
        assert_eq!(turns.collect::<Vec<_>>(), expected, "a track for each CPU");
        let slices: Vec<_> = slices
            .into_iter()
            .map(|slice| (&slice["tid"], &slice["pid"], &slice["ts"], &slice["dur"]))
            .collect();
        let slice = |tid: u32, ts: f64, dur: f64| (json!(tid), json!(10), json!(ts), json!(dur));
        let expected = [
            slice(10, 1.0, 7.0),
            slice(10, 11.0, 1.0),
            slice(11, 8.5, 1.5),
        ];
        let expected: Vec<_> = expected.iter().map(|(a, b, c, d)| (a, b, c, d)).collect();
        assert_eq!(slices, expected);
        let counts = all.iter().filter(|event| event["ph"] == "C");
        let counts: Vec<_> = counts.map(|count| &count["args"]["threads"]).collect();
        assert_eq!(counts, [1, 2, 1]);
    }

    #[test]
    fn the_state_is_no_decision() {
        let mut recording: Recording<Vec<u8>> = Recording::new(None, None, find);
        recording.take(&trace(vec![
            decision(DecisionKind::New, 12, 1_000, 0),
            decision(DecisionKind::Begin, 0, 2_000, 0),
            decision(DecisionKind::Competes, 10, 2_000, 0),
            decision(DecisionKind::Sleeps, 11, 2_000, 0),
            // Nor are the events of queues.
            decision(DecisionKind::Look, 0, 2_000, 0),
            decision(DecisionKind::Wait, 10, 2_000, 0),
        ]));
        assert_eq!((recording.decisions, recording.competing), (1, 1));
        assert!(recording.tasks.is_empty());
    }

    #[test]
    fn the_first_decision_that_is_not_allowed_is_kept() {
        let replay = || Some(Replay::new(4_000_000, 1));
        let mut recording: Recording<Vec<u8>> = Recording::new(None, replay(), find);
        // A charge without a join.
        let wrong = trace(vec![
            decision(DecisionKind::Charge, 10, 1_000, 1_000),
            decision(DecisionKind::Charge, 11, 2_000, 1_000),
        ]);
        recording.take(&wrong);
        let Some(Disallowed::NotWhole { node: 10, .. }) = recording.disallowed else {
            panic!("{:?}", recording.disallowed);
        };
        // A gap ends the checking.
        let mut recording: Recording<Vec<u8>> = Recording::new(None, replay(), find);
        recording.take(&Trace { lost: 1, ..wrong });
        assert_eq!(recording.disallowed, None);
    }
}
