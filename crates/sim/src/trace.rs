//! Traces: every event of a run as a line of text, to be kept, compared or
//! looked at one by one.
//!
//! ```text
//!   1200000000 ran B/1 cpu0 100000000
//!   time in ns | what | client/thread, where, how much
//! ```

use std::fmt::{self, Write as _};
use std::io;

use prorata_scenario::event::{Event, Why};

use crate::machine::Machine;
use crate::observer::Observer;

/// An event and what its line needs besides.
pub struct Line<'a> {
    /// When.
    pub now_ns: u64,
    /// What.
    pub event: Event<'a>,
    /// For names.
    pub machine: &'a Machine,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |client: u32| self.machine.client_name(client);
        let mutex = |mutex: u32| self.machine.mutex_names().nth(mutex as usize).unwrap_or("");
        let service = |number: u32| {
            self.machine
                .service_names()
                .nth(number as usize)
                .unwrap_or("")
        };
        write!(f, "{} ", self.now_ns)?;
        match self.event {
            Event::Started { client } => write!(f, "started {}", name(client)),
            Event::Ended { client } => write!(f, "ended {}", name(client)),
            Event::Ready { client, thread } => write!(f, "ready {}/{thread}", name(client)),
            Event::TurnBegan { client } => write!(f, "turn {}", name(client)),
            Event::Dispatched {
                client,
                thread,
                cpu,
                start_ns,
                migrated,
                ..
            } => {
                write!(f, "dispatch {}/{thread} cpu{cpu}", name(client))?;
                if start_ns > self.now_ns {
                    write!(f, " after {}", start_ns - self.now_ns)?;
                }
                f.write_str(if migrated { " migrated" } else { "" })
            }
            Event::Ran {
                client,
                thread,
                cpu,
                used_ns,
            } => write!(f, "ran {}/{thread} cpu{cpu} {used_ns}", name(client)),
            Event::Left {
                client,
                thread,
                cpu,
                why,
            } => write!(f, "left {}/{thread} cpu{cpu} {}", name(client), reason(why)),
            Event::TurnEnded { client, used_ns } => {
                write!(f, "turn-over {} {used_ns}", name(client))
            }
            Event::Acquired {
                client,
                thread,
                mutex: number,
                waited_ns,
            } => write!(
                f,
                "acquired {}/{thread} {} {waited_ns}",
                name(client),
                mutex(number)
            ),
            Event::Released {
                client,
                mutex: number,
            } => write!(f, "released {} {}", name(client), mutex(number)),
            Event::Called {
                client,
                service: number,
            } => write!(f, "called {} {}", name(client), service(number)),
            Event::Answered {
                client,
                service: number,
                took_ns,
            } => write!(f, "answered {} {} {took_ns}", name(client), service(number)),
            Event::TicketsSet { client, amount } => write!(f, "tickets {} {amount}", name(client)),
            Event::Moved { client, pool } => {
                write!(f, "moved {} {}", name(client), self.machine.pool_name(pool))
            }
            Event::SlotBegan {
                client,
                cpu,
                tick,
                late_ns,
            } => write!(
                f,
                "slot {} of CPU {cpu} runs {} late {late_ns}",
                tick,
                name(client)
            ),
            Event::SlotEnded { client, cpu } => {
                write!(f, "slots of CPU {cpu} run {} no more", name(client))
            }
            Event::SlotMissed { client, cpu } => write!(f, "missed {} CPU {cpu}", name(client)),
            Event::Revoked {
                client,
                cpu,
                column,
            } => write!(f, "revoked {} {cpu}:{column}", name(client)),
            Event::SlotsRefused { why } => write!(f, "refused {why}"),
            Event::Refused { error } => write!(f, "refused {error}"),
            Event::Began => f.write_str("began"),
            Event::Mark => f.write_str("mark"),
            Event::Sample => f.write_str("sample"),
            Event::Finished => f.write_str("finished"),
        }
    }
}

fn reason(why: Why) -> &'static str {
    match why {
        Why::TurnEnded => "turn-over",
        Why::Migrates => "migrates",
        Why::Yielded => "yields",
        Why::Sleeps => "sleeps",
        Why::Waits => "waits",
        Why::WaitsForMutex => "waits-for-mutex",
        Why::Exited => "exits",
    }
}

/// Writes every event. An error of the writer ends the writing; it is kept
/// for [`Recorder::finish`].
pub struct Recorder<W> {
    writer: W,
    result: io::Result<()>,
}

impl<W: io::Write> Recorder<W> {
    /// Writes to `writer`, which should be buffered.
    pub fn new(writer: W) -> Self {
        Self {
            writer,
            result: Ok(()),
        }
    }

    /// The writer, flushed.
    ///
    /// # Errors
    ///
    /// The first error of the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.result?;
        self.writer.flush()?;
        Ok(self.writer)
    }
}

impl<W: io::Write> Observer for Recorder<W> {
    fn observe(&mut self, now_ns: u64, event: Event<'_>, machine: &Machine) {
        if self.result.is_ok() {
            let line = Line {
                now_ns,
                event,
                machine,
            };
            self.result = writeln!(self.writer, "{line}");
        }
    }
}

/// A fingerprint of a trace (FNV-1a of its lines, 64 bits): two runs are the
/// same exactly if theirs are, for all that tests need.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// The fingerprint so far.
    pub fn value(self) -> u64 {
        self.0
    }
}

impl Default for Fingerprint {
    fn default() -> Self {
        Fingerprint(0xcbf2_9ce4_8422_2325)
    }
}

impl fmt::Write for Fingerprint {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Ok(())
    }
}

impl Observer for Fingerprint {
    fn observe(&mut self, now_ns: u64, event: Event<'_>, machine: &Machine) {
        let line = Line {
            now_ns,
            event,
            machine,
        };
        writeln!(self, "{line}").expect("a fingerprint takes everything");
    }
}
