//! A run as a trace that Perfetto and Chrome's tracing page open: the JSON
//! trace-event format, one track a CPU, and counters.

use std::io;

use serde_json::json;

use crate::machine::Machine;
use crate::observer::{Event, Observer, Why};

/// Writes the trace while the run goes on.
pub struct Perfetto<W> {
    writer: W,
    result: io::Result<()>,
    /// By CPU: since when its thread runs.
    since_ns: Vec<u64>,
    waiting: Option<u64>,
    first: bool,
}

/// Everything is in one process, in the format's terms.
const PROCESS: u32 = 1;

impl<W: io::Write> Perfetto<W> {
    /// Writes to `writer`, which should be buffered.
    pub fn new(writer: W) -> Self {
        Self {
            writer,
            result: Ok(()),
            since_ns: Vec::new(),
            waiting: None,
            first: true,
        }
    }

    /// The writer, flushed. The run must be over.
    ///
    /// # Errors
    ///
    /// The first error of the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.result?;
        self.writer.flush()?;
        Ok(self.writer)
    }

    fn write(&mut self, event: &serde_json::Value) {
        if self.result.is_ok() {
            let before = if self.first {
                "{\"traceEvents\":[\n"
            } else {
                ",\n"
            };
            self.result = write!(self.writer, "{before}{event}");
            self.first = false;
        }
    }

    fn name_tracks(&mut self, machine: &Machine) {
        let cpus = machine.spec().cpus;
        self.since_ns = vec![0; cpus as usize];
        let process = json!({"name": "simulated machine"});
        self.write(&json!({"ph": "M", "name": "process_name", "pid": PROCESS, "args": process}));
        for cpu in 0..cpus {
            let name = json!({"name": format!("CPU {cpu}")});
            self.write(&json!({
                "ph": "M", "name": "thread_name", "pid": PROCESS, "tid": cpu, "args": name
            }));
        }
    }

    fn slice(&mut self, now_ns: u64, name: &str, thread: u32, cpu: u32, why: &str) {
        let start_ns = self.since_ns[cpu as usize];
        if now_ns > start_ns {
            self.write(&json!({
                "ph": "X", "name": name, "cat": "run", "pid": PROCESS, "tid": cpu,
                "ts": microseconds(start_ns), "dur": microseconds(now_ns - start_ns),
                "args": {"thread": thread, "left": why}
            }));
        }
    }

    fn instant(&mut self, now_ns: u64, name: String) {
        self.write(&json!({
            "ph": "i", "s": "p", "name": name, "pid": PROCESS, "tid": 0,
            "ts": microseconds(now_ns)
        }));
    }

    fn counter(&mut self, now_ns: u64, waiting: u64) {
        if self.waiting.replace(waiting) != Some(waiting) {
            self.write(&json!({
                "ph": "C", "name": "waiting threads", "pid": PROCESS,
                "ts": microseconds(now_ns), "args": {"threads": waiting}
            }));
        }
    }

    fn end(&mut self, now_ns: u64, machine: &Machine) {
        for cpu in 0..machine.spec().cpus {
            if let Some((client, thread)) = machine.running(cpu) {
                self.slice(
                    now_ns,
                    &machine.client_name(client),
                    thread,
                    cpu,
                    "still runs",
                );
            }
        }
        if self.result.is_ok() {
            self.result = writeln!(self.writer, "\n],\"displayTimeUnit\":\"ns\"}}");
        }
    }
}

impl<W: io::Write> Observer for Perfetto<W> {
    fn observe(&mut self, now_ns: u64, event: Event<'_>, machine: &Machine) {
        match event {
            Event::Began => self.name_tracks(machine),
            Event::Dispatched { cpu, start_ns, .. } => self.since_ns[cpu as usize] = start_ns,
            Event::Left {
                client,
                thread,
                cpu,
                why,
            } => {
                self.slice(
                    now_ns,
                    &machine.client_name(client),
                    thread,
                    cpu,
                    reason(why),
                );
            }
            Event::TicketsSet { client, amount } => {
                let name = machine.client_name(client);
                self.instant(now_ns, format!("{name}: {amount} tickets"));
            }
            Event::Refused { error } => self.instant(now_ns, format!("refused: {error}")),
            Event::Finished => self.end(now_ns, machine),
            _ => {}
        }
        if !matches!(event, Event::Finished) {
            self.counter(now_ns, machine.waiting_threads());
        }
    }
}

fn reason(why: Why) -> &'static str {
    match why {
        Why::TurnEnded => "turn ended",
        Why::Yielded => "yielded",
        Why::Sleeps => "sleeps",
        Why::Waits => "waits",
        Why::WaitsForMutex => "waits for a mutex",
        Why::Exited => "exited",
    }
}

/// The format counts in microseconds; three decimals are exact.
fn microseconds(ns: u64) -> f64 {
    ns as f64 / 1000.0
}
