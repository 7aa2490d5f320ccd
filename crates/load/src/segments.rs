//! Where and when a thread ran, as the thread itself notices.

use rustix::thread::sched_getcpu;
use serde::{Deserialize, Serialize};

use crate::window::Window;

/// A thread that was away for longer did not run meanwhile.
const GAP_NS: u64 = 200_000;

/// Most segments of a thread.
const MOST: usize = 4_096;

/// What a thread does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doing {
    /// It works.
    Work,
    /// It spins at a barrier.
    Spin,
}

/// A time in which a thread ran on one CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Segment {
    /// The CPU.
    pub cpu: u32,
    /// What it did there.
    pub doing: Doing,
    /// On the monotonic clock.
    pub from_ns: u64,
    /// On the monotonic clock.
    pub to_ns: u64,
}

/// The segments of one thread in a window.
#[derive(Debug)]
pub(crate) struct Segments {
    window: Window,
    found: Vec<Segment>,
}

impl Segments {
    pub(crate) fn new(window: Window) -> Self {
        let found = Vec::with_capacity(MOST);
        Self { window, found }
    }

    /// Notes what the calling thread does now. Notes that follow one another within
    /// [`GAP_NS`] are one segment.
    pub(crate) fn note(&mut self, now_ns: u64, doing: Doing) {
        if self.window.contains(now_ns) {
            self.note_on(sched_getcpu() as u32, now_ns, doing);
        }
    }

    fn note_on(&mut self, cpu: u32, now_ns: u64, doing: Doing) {
        let last = self.found.last_mut();
        if let Some(last) = last.filter(|last| last.cpu == cpu && now_ns <= last.to_ns + GAP_NS) {
            last.to_ns = now_ns;
            if last.doing == doing {
                return;
            }
        }
        if self.found.len() < MOST {
            self.found.push(Segment {
                cpu,
                doing,
                from_ns: now_ns,
                to_ns: now_ns,
            });
        }
    }

    pub(crate) fn found(self) -> Vec<Segment> {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_another_cpu_and_another_deed_begin_a_segment() {
        let mut segments = Segments::new(Window {
            begin_ns: 0,
            end_ns: u64::MAX,
        });
        let step = GAP_NS;
        segments.note_on(0, 0, Doing::Work);
        segments.note_on(0, step, Doing::Work);
        segments.note_on(0, 2 * step, Doing::Spin);
        segments.note_on(1, 2 * step + 1, Doing::Spin);
        segments.note_on(1, 4 * step, Doing::Spin);
        let found: Vec<_> = segments
            .found()
            .iter()
            .map(|found| (found.cpu, found.doing, found.from_ns, found.to_ns))
            .collect();
        assert_eq!(
            found,
            [
                (0, Doing::Work, 0, 2 * step),
                (0, Doing::Spin, 2 * step, 2 * step),
                (1, Doing::Spin, 2 * step + 1, 2 * step + 1),
                (1, Doing::Spin, 4 * step, 4 * step),
            ]
        );
    }

    #[test]
    fn notes_outside_the_window_and_beyond_the_most_are_left_out() {
        let window = Window {
            begin_ns: 10,
            end_ns: u64::MAX,
        };
        let mut segments = Segments::new(window);
        segments.note(9, Doing::Work);
        assert!(segments.found.is_empty());
        for number in 0..2 * MOST as u64 {
            segments.note(10 + number * 2 * GAP_NS, Doing::Work);
        }
        assert_eq!(segments.found().len(), MOST);
    }
}
