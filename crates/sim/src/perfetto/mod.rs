//! A run as a trace that Perfetto and Chrome's tracing page open: one track a
//! CPU, grouped by pool, and counters.

mod events;

use std::io;

use prorata_scenario::event::{Event, Why};
use serde_json::json;

pub use events::{Events, Track};

use crate::machine::Machine;
use crate::observer::Observer;

/// Writes the trace during the run.
pub struct Perfetto<W> {
    events: Events<W>,
    /// By CPU: its pool, and since when its thread runs.
    cpus: Vec<(u32, u64)>,
    /// By pool: waiting threads, as last written.
    waiting: Vec<Option<u64>>,
}

/// A pool is a process, in the format's terms, and a CPU a thread.
fn track(pool: u32, cpu: u32) -> Track {
    Track {
        process: pool + 1,
        thread: cpu,
    }
}

impl<W: io::Write> Perfetto<W> {
    /// Writes to `writer`, which should be buffered.
    pub fn new(writer: W) -> Self {
        Self {
            events: Events::new(writer),
            cpus: Vec::new(),
            waiting: Vec::new(),
        }
    }

    /// The writer, flushed. The run must be over.
    ///
    /// # Errors
    ///
    /// The first error of the writer.
    pub fn finish(self) -> io::Result<W> {
        self.events.finish()
    }

    fn name_tracks(&mut self, machine: &Machine) {
        self.waiting = vec![None; machine.pool_count() as usize];
        for pool in 0..machine.pool_count() {
            let name = match machine.pool_name(pool) {
                "" => "simulated machine".to_owned(),
                name => format!("pool {name}"),
            };
            self.events.name_process(track(pool, 0).process, &name);
            for cpu in machine.pool_cpus(pool) {
                self.cpus.push((pool, 0));
                self.events
                    .name_track(track(pool, cpu), &format!("CPU {cpu}"));
            }
        }
    }

    fn slice(&mut self, now_ns: u64, name: &str, thread: u32, cpu: u32, why: &str) {
        let (pool, start_ns) = self.cpus[cpu as usize];
        let args = json!({"thread": thread, "left": why});
        self.events
            .slice(track(pool, cpu), name, (start_ns, now_ns), &args);
    }

    /// Beside the first CPU of a pool.
    fn instant(&mut self, now_ns: u64, name: &str, pool: u32, machine: &Machine) {
        let cpu = machine.pool_cpus(pool).start;
        self.events.instant(track(pool, cpu), name, now_ns);
    }

    fn count(&mut self, now_ns: u64, machine: &Machine) {
        for pool in 0..machine.pool_count() {
            let waiting = machine.waiting_in(pool);
            if self.waiting[pool as usize].replace(waiting) != Some(waiting) {
                let process = track(pool, 0).process;
                self.events
                    .count(process, "waiting threads", now_ns, waiting);
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
                self.instant(now_ns, &what, machine.pool_of(client), machine);
            }
            Event::Moved { client, pool } => {
                let what = format!("{} comes", machine.client_name(client));
                self.instant(now_ns, &what, pool, machine);
            }
            Event::Refused { error } => {
                self.instant(now_ns, &format!("refused: {error}"), 0, machine);
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
        Why::Migrates => "migrates",
        Why::Yielded => "yielded",
        Why::Sleeps => "sleeps",
        Why::Waits => "waits",
        Why::WaitsForMutex => "waits for a mutex",
        Why::Exited => "exited",
    }
}
