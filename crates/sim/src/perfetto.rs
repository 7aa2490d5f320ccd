//! A run as a trace that Perfetto and Chrome's tracing page open: the JSON
//! trace-event format, one track a CPU, grouped by pool, and counters.

use std::io;

use serde_json::json;

use crate::machine::Machine;
use crate::observer::{Event, Observer, Why};

/// Writes the trace while the run goes on.
pub struct Perfetto<W> {
    writer: W,
    result: io::Result<()>,
    /// By CPU: its pool, and since when its thread runs.
    cpus: Vec<(u32, u64)>,
    /// By pool: threads that wait, once told.
    waiting: Vec<Option<u64>>,
    first: bool,
}

/// A pool is a process, in the format's terms.
fn process(pool: u32) -> u32 {
    pool + 1
}

impl<W: io::Write> Perfetto<W> {
    /// Writes to `writer`, which should be buffered.
    pub fn new(writer: W) -> Self {
        Self {
            writer,
            result: Ok(()),
            cpus: Vec::new(),
            waiting: Vec::new(),
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
        self.waiting = vec![None; machine.pool_count() as usize];
        for pool in 0..machine.pool_count() {
            let pid = process(pool);
            let name = match machine.pool_name(pool) {
                "" => "simulated machine".to_owned(),
                name => format!("pool {name}"),
            };
            let args = json!({"name": name});
            self.write(&json!({"ph": "M", "name": "process_name", "pid": pid, "args": args}));
            for cpu in machine.pool_cpus(pool) {
                self.cpus.push((pool, 0));
                let args = json!({"name": format!("CPU {cpu}")});
                self.write(&json!({
                    "ph": "M", "name": "thread_name", "pid": pid, "tid": cpu, "args": args
                }));
            }
        }
    }

    fn slice(&mut self, now_ns: u64, name: &str, thread: u32, cpu: u32, why: &str) {
        let (pool, start_ns) = self.cpus[cpu as usize];
        if now_ns > start_ns {
            self.write(&json!({
                "ph": "X", "name": name, "cat": "run", "pid": process(pool), "tid": cpu,
                "ts": microseconds(start_ns), "dur": microseconds(now_ns - start_ns),
                "args": {"thread": thread, "left": why}
            }));
        }
    }

    /// Beside the first CPU of a pool.
    fn instant(&mut self, now_ns: u64, name: String, pool: u32, machine: &Machine) {
        let cpu = machine.pool_cpus(pool).start;
        self.write(&json!({
            "ph": "i", "s": "p", "name": name, "pid": process(pool), "tid": cpu,
            "ts": microseconds(now_ns)
        }));
    }

    fn count(&mut self, now_ns: u64, machine: &Machine) {
        for pool in 0..machine.pool_count() {
            let waiting = machine.waiting_in(pool);
            if self.waiting[pool as usize].replace(waiting) != Some(waiting) {
                self.write(&json!({
                    "ph": "C", "name": "waiting threads", "pid": process(pool),
                    "ts": microseconds(now_ns), "args": {"threads": waiting}
                }));
            }
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
            Event::Dispatched { cpu, start_ns, .. } => self.cpus[cpu as usize].1 = start_ns,
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
                let what = format!("{name}: {amount} tickets");
                self.instant(now_ns, what, machine.pool_of(client), machine);
            }
            Event::Moved { client, pool } => {
                let what = format!("{} comes", machine.client_name(client));
                self.instant(now_ns, what, pool, machine);
            }
            Event::Refused { error } => {
                self.instant(now_ns, format!("refused: {error}"), 0, machine);
            }
            Event::Finished => self.end(now_ns, machine),
            _ => {}
        }
        if !matches!(event, Event::Finished) {
            self.count(now_ns, machine);
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
