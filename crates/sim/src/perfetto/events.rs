//! The JSON trace-event format, written event by event.

use std::io;

use serde_json::{Value, json};

/// A trace that is being written. An error of the writer ends the writing; it is
/// kept for [`Events::finish`].
pub struct Events<W> {
    writer: W,
    result: io::Result<()>,
    first: bool,
}

/// Where an event is shown: the format has threads, each a track, grouped by
/// processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Track {
    /// The group.
    pub process: u32,
    /// The track in it.
    pub thread: u32,
}

impl<W: io::Write> Events<W> {
    /// Writes to `writer`, which should be buffered.
    pub fn new(writer: W) -> Self {
        Self {
            writer,
            result: Ok(()),
            first: true,
        }
    }

    /// Names a group of tracks.
    pub fn name_process(&mut self, process: u32, name: &str) {
        let args = json!({"name": name});
        self.write(&json!({"ph": "M", "name": "process_name", "pid": process, "args": args}));
    }

    /// Names a track.
    pub fn name_track(&mut self, track: Track, name: &str) {
        let args = json!({"name": name});
        self.write(&json!({
            "ph": "M", "name": "thread_name", "pid": track.process, "tid": track.thread,
            "args": args
        }));
    }

    /// A slice of a track from one time to another, with its arguments. Empty slices are
    /// left out.
    pub fn slice(&mut self, track: Track, name: &str, (from_ns, to_ns): (u64, u64), args: &Value) {
        if to_ns > from_ns {
            self.write(&json!({
                "ph": "X", "name": name, "cat": "run", "pid": track.process, "tid": track.thread,
                "ts": microseconds(from_ns), "dur": microseconds(to_ns - from_ns), "args": args
            }));
        }
    }

    /// Something that happens, beside a track.
    pub fn instant(&mut self, track: Track, name: &str, now_ns: u64) {
        self.write(&json!({
            "ph": "i", "s": "p", "name": name, "pid": track.process, "tid": track.thread,
            "ts": microseconds(now_ns)
        }));
    }

    /// How many there are from now on.
    pub fn count(&mut self, process: u32, name: &str, now_ns: u64, count: u64) {
        self.write(&json!({
            "ph": "C", "name": name, "pid": process, "ts": microseconds(now_ns),
            "args": {"threads": count}
        }));
    }

    /// The writer, flushed.
    ///
    /// # Errors
    ///
    /// The first error of the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.result?;
        if self.first {
            write!(self.writer, "{{\"traceEvents\":[")?;
        }
        writeln!(self.writer, "\n],\"displayTimeUnit\":\"ns\"}}")?;
        self.writer.flush()?;
        Ok(self.writer)
    }

    fn write(&mut self, event: &Value) {
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
}

/// The format counts in microseconds; three decimals are exact.
fn microseconds(ns: u64) -> f64 {
    ns as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_json_however_long_it_is() {
        let empty = Events::new(Vec::new()).finish().expect("memory");
        let empty: Value = serde_json::from_slice(&empty).expect("JSON");
        assert_eq!(empty["traceEvents"], json!([]));
        let track = Track {
            process: 1,
            thread: 2,
        };
        let mut events = Events::new(Vec::new());
        events.name_process(1, "all");
        events.name_track(track, "a \"task\"");
        events.slice(track, "runs", (1_000, 3_500), &json!({"tickets": 3}));
        events.slice(track, "runs", (3_500, 3_500), &json!({}));
        events.count(1, "waiting", 3_500, 7);
        let text = events.finish().expect("memory");
        let trace: Value = serde_json::from_slice(&text).expect("JSON");
        let all = trace["traceEvents"].as_array().expect("a list");
        assert_eq!(all.len(), 4, "no time is no slice");
        assert_eq!(all[1]["args"]["name"], "a \"task\"");
        assert_eq!((&all[2]["ts"], &all[2]["dur"]), (&json!(1.0), &json!(2.5)));
        assert_eq!(all[3]["args"]["threads"], 7);
    }
}
