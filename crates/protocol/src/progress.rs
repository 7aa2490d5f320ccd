//! Waiting for a process as long as it makes progress.
//!
//! On a loaded machine a start takes long, so no wait here has a fixed end. It
//! ends when the process that holds a lock is stuck: no new stage, no CPU time,
//! and not waiting for a CPU either.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::StartError;
use crate::listener::Activity;
use crate::lock::note_in;

/// A process without any progress for so long is stuck.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Pause between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// A wait of this length is worth a message to the user.
const TELL_AFTER: Duration = Duration::from_secs(5);

/// Time between two messages about the same stage.
const TELL_AGAIN: Duration = Duration::from_secs(15);

/// Clock ticks a second in `/proc/PID/stat`: the same on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// A wait for the process that holds a lock.
pub struct ProgressWatch<'a> {
    lock: PathBuf,
    log: PathBuf,
    patience: Duration,
    tell: &'a dyn Fn(&str),
    begun: Instant,
    seen: Evidence,
    /// When the evidence last changed.
    moved: Instant,
    next_look: Instant,
    told: Option<(Instant, Option<(u32, String)>)>,
}

#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct Evidence {
    note: Option<(u32, String)>,
    cpu_ticks: u64,
}

impl<'a> ProgressWatch<'a> {
    /// Waits for the holder of `lock`, which logs to `log`. `tell` gets
    /// messages for the user.
    pub fn new(lock: PathBuf, log: PathBuf, tell: &'a dyn Fn(&str)) -> Self {
        let now = Instant::now();
        Self {
            lock,
            log,
            patience: PATIENCE,
            tell,
            begun: now,
            seen: Evidence::default(),
            moved: now,
            next_look: now,
            told: None,
        }
    }

    /// Called again and again during the wait. Fails when the holder is stuck.
    pub fn look(&mut self) -> Result<(), StartError> {
        let now = Instant::now();
        if now < self.next_look {
            return Ok(());
        }
        self.next_look = now + LOOK_AGAIN;
        let mut note = note_in(&self.lock);
        let stat = |pid: u32| Path::new("/proc").join(pid.to_string()).join("stat");
        let holder = note
            .as_ref()
            .and_then(|(pid, _)| Activity::read(&stat(*pid)));
        if holder.is_none() {
            // A killed daemon has left the note.
            note = None;
        }
        let cpu_ticks = holder.as_ref().map_or(0, |holder| holder.cpu_ticks);
        let seen = Evidence { note, cpu_ticks };
        if seen != self.seen || holder.is_some_and(|holder| holder.state == 'R') {
            self.moved = now;
        }
        self.seen = seen;
        if now - self.moved >= self.patience {
            return Err(StartError::Stuck {
                holder: self.describe(),
                patience: self.patience,
                log: self.log.clone(),
            });
        }
        self.tell_at(now);
        Ok(())
    }

    fn tell_at(&mut self, now: Instant) {
        let is_news = match &self.told {
            None => now - self.begun >= TELL_AFTER,
            Some((time, note)) => *note != self.seen.note || now - *time >= TELL_AGAIN,
        };
        if is_news {
            self.told = Some((now, self.seen.note.clone()));
            (self.tell)(&format!(
                "{}: {} s so far, {:.1} s of CPU time",
                self.describe(),
                (now - self.begun).as_secs(),
                self.seen.cpu_ticks as f64 / TICKS_PER_SECOND
            ));
        }
    }

    fn describe(&self) -> String {
        match &self.seen.note {
            Some((pid, stage)) => format!("the daemon (process {pid}) {stage}"),
            None => "the daemon starts".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::fs;

    use super::*;
    use crate::testing::Script;

    /// Looks for so long, or until the holder is found stuck.
    fn wait(progress: &mut ProgressWatch<'_>, time: Duration) -> Result<(), StartError> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            progress.look()?;
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    #[test]
    fn a_process_that_computes_is_waited_for_and_one_that_sleeps_is_stuck() {
        let directory = tempfile::tempdir().unwrap();
        let lock = directory.path().join("lock");
        let said = RefCell::new(Vec::new());
        let tell = |text: &str| said.borrow_mut().push(text.to_owned());
        let progress = || {
            let mut progress = ProgressWatch::new(lock.clone(), "log".into(), &tell);
            progress.patience = Duration::from_millis(400);
            progress
        };
        let note = |process: &Script| {
            let text = format!("{} loads an engine", process.0.id());
            fs::write(&lock, text).unwrap();
        };

        let computes = Script::start("while :; do :; done");
        note(&computes);
        wait(&mut progress(), Duration::from_secs(2)).unwrap();
        assert_eq!(said.take(), [""; 0], "a short wait is worth no word");
        let mut long = progress();
        long.begun -= TELL_AFTER;
        wait(&mut long, Duration::from_millis(300)).unwrap();
        let told = said.take();
        assert_eq!(told.len(), 1);
        let pid = computes.0.id();
        let begin = format!("the daemon (process {pid}) loads an engine: 5 s so far");
        assert!(told[0].starts_with(&begin), "{told:?}");

        let sleeps = Script::start("exec sleep 600");
        note(&sleeps);
        let stuck = wait(&mut progress(), Duration::from_secs(60)).unwrap_err();
        let pid = sleeps.0.id();
        let begin = format!("the daemon (process {pid}) loads an engine, without progress");
        assert!(stuck.to_string().contains(&begin), "{stuck}");
    }
}
