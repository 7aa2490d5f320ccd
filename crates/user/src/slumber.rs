//! Processes that slumber: of a client with many processes, those that have slept for some time.
//!
//! A user has a hundred processes, of which a few run. A slumbering process costs next to nothing:
//! it is sampled twice a second, and it is neither looked at, nor demoted or bound. A sample
//! shows that it has woken. Then it is treated like the others, and its client is charged for all
//! that it used meanwhile. A client whose slumbering processes used much together is taken for one
//! that has none: all its processes have to earn their slumber anew.
//!
//! Where the account must be exact, all processes are sampled ([`Sampling::All`]): before a client is
//! released, suspended or resumed, before processes leave it, and before time of ended children is
//! charged that may have been charged to a slumbering child ([`crate::reaped`]).

use crate::client::Client;
use crate::process::{Process, Used};
use crate::time::{MILLISECOND_NS, SECOND_NS};

/// In clients with more processes than this, some may slumber.
pub(crate) const CROWD: usize = 64;

/// A process slumbers once samples have shown no use for so long.
const SLUMBERS_AFTER_NS: u64 = SECOND_NS;

/// Each slumbering process is sampled within this time.
pub(crate) const ROUND_NS: u64 = 500 * MILLISECOND_NS;

/// What slumbering processes may use together from one sample to the next.
const SURPRISE_NS: u64 = 5 * MILLISECOND_NS;

/// Which processes of a client a sample concerns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sampling {
    /// All.
    All,
    /// All that are awake, and of the slumbering ones the next that are due.
    Due,
}

impl Process {
    /// Whether it slumbers, and nothing about it is to be undone.
    pub(crate) fn is_left_in_peace(&self) -> bool {
        self.slumbers && !self.is_touched()
    }

    /// Notes whether it slumbers after it was sampled.
    fn note_rest(&mut self, used_ns: u64, now_ns: u64, is_in_crowd: bool) {
        if used_ns > 0 || self.gone {
            self.ran_ns = now_ns;
        }
        let rested = is_in_crowd && now_ns.saturating_sub(self.ran_ns) >= SLUMBERS_AFTER_NS;
        let is_free = rested && !self.is_touched() && !self.is_held_down();
        self.slumbers = is_free && (self.slumbers || self.sleeps());
    }

    /// Whether none of its threads is runnable. One that waits for a CPU among many others shows no
    /// use, too.
    fn sleeps(&mut self) -> bool {
        let Ok(stat) = self.look() else {
            return false;
        };
        match stat.threads {
            0 | 1 => !stat.is_runnable() && !stat.has_ended(),
            _ => {
                let mut threads = self.threads.lock();
                !threads.is_stale() && threads.runnable(1) == 0
            }
        }
    }
}

impl Client {
    /// Samples its processes. Returns the CPU time that they used, and whether any is gone.
    pub(crate) fn sample_processes(
        &mut self,
        sampling: Sampling,
        now_ns: u64,
        window_ns: u64,
    ) -> (Used, bool) {
        let is_crowd = self.processes.len() > CROWD;
        let (mut used, mut any_gone) = (Used::default(), false);
        let mut slumbering = 0;
        for process in &mut self.processes {
            if process.slumbers {
                slumbering += 1;
                continue;
            }
            let used_by_it = process.sample();
            used += used_by_it;
            any_gone |= process.gone;
            process.note_rest(used_by_it.all_ns, now_ns, is_crowd);
        }
        if slumbering > 0 {
            let due = match sampling {
                Sampling::All => slumbering,
                Sampling::Due => due(slumbering, window_ns),
            };
            let (used_asleep, gone_asleep) = self.sample_slumbering(due, now_ns, is_crowd);
            used += used_asleep;
            any_gone |= gone_asleep;
        }
        (used, any_gone)
    }

    /// Samples so many slumbering processes, in turn.
    fn sample_slumbering(&mut self, due: usize, now_ns: u64, is_crowd: bool) -> (Used, bool) {
        let count = self.processes.len();
        let (mut used, mut any_gone, mut left) = (Used::default(), false, due);
        let from = self.slumber_from;
        for step in 0..count {
            let index = (from + step) % count;
            if left == 0 {
                self.slumber_from = index;
                break;
            }
            let process = &mut self.processes[index];
            if !process.slumbers {
                continue;
            }
            left -= 1;
            let used_by_it = process.sample();
            used += used_by_it;
            any_gone |= process.gone;
            process.note_rest(used_by_it.all_ns, now_ns, is_crowd);
            self.unsettled |= !process.slumbers;
        }
        if used.all_ns > SURPRISE_NS {
            self.wake_all(now_ns);
        }
        (used, any_gone)
    }

    /// All its processes have to earn their slumber anew.
    fn wake_all(&mut self, now_ns: u64) {
        self.unsettled = true;
        for process in &mut self.processes {
            process.slumbers = false;
            process.ran_ns = now_ns;
        }
    }
}

/// How many of the slumbering processes are due after such a time.
fn due(slumbering: usize, window_ns: u64) -> usize {
    let part = (slumbering as u64).saturating_mul(window_ns.min(ROUND_NS));
    part.div_ceil(ROUND_NS) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_slumbering_processes_are_due_within_a_round_however_often_they_are_sampled() {
        for slumbering in [1, 7, 1_000, 16_384] {
            for window_ns in [1, MILLISECOND_NS, 20 * MILLISECOND_NS, ROUND_NS, SECOND_NS] {
                let samples = ROUND_NS.div_ceil(window_ns.min(ROUND_NS)) as usize;
                let due = due(slumbering, window_ns);
                assert!(due * samples >= slumbering && due <= slumbering);
                // Rarely sampled, they cost no more than that.
                assert!(due <= slumbering / samples + 1, "{slumbering} {window_ns}");
            }
        }
        assert_eq!(due(1_000, 0), 0);
    }
    use std::process::{Child, Command};

    use prorata_core::ids::ClientId;

    use crate::foster::tests::tree;
    use crate::process_id::ProcessId;
    use crate::time::monotonic_ns;
    use crate::tree::Tree;

    const SLEEPERS: usize = CROWD + 8;

    /// A client of many sleepers, with a directory for its engine's table.
    struct Crowd {
        tree: Tree,
        id: ClientId,
        sleepers: Vec<Child>,
        joined_ns: u64,
        _directory: tempfile::TempDir,
    }

    impl Crowd {
        fn start() -> Crowd {
            let directory = tempfile::tempdir().expect("a directory");
            let mut tree = tree(directory.path());
            let id = ClientId::from_parts(0, 0);
            let sleepers: Vec<Child> = (0..SLEEPERS)
                .map(|_| Command::new("sleep").arg("100").spawn().expect("starts"))
                .collect();
            let asleep = |sleeper: &Child| {
                let pid = sleeper.id();
                let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
                name.is_ok_and(|name| name == "sleep\n")
                    && crate::procfs::stat(pid).is_ok_and(|stat| stat.is_asleep())
            };
            for sleeper in &sleepers {
                let known = ProcessId::of(sleeper.id()).expect("it runs");
                tree.manage(id, known, 0).expect("it can be managed");
                while !asleep(sleeper) {
                    std::thread::yield_now();
                }
            }
            // One may have been asleep on its way to its sleep.
            std::thread::sleep(std::time::Duration::from_millis(100));
            let joined_ns = monotonic_ns();
            tree.sample(id, Sampling::All, joined_ns);
            // The first ones began some time ago.
            let client = tree.client_mut(id).expect("it has processes");
            client.wake_all(joined_ns);
            Crowd {
                tree,
                id,
                sleepers,
                joined_ns,
                _directory: directory,
            }
        }

        /// Samples so long after all joined. Returns how many slumber.
        fn sample(&mut self, sampling: Sampling, after_ns: u64) -> usize {
            self.tree
                .sample(self.id, sampling, self.joined_ns + after_ns);
            let client = self.tree.client(self.id).expect("it is there");
            let processes = client.processes.iter();
            processes.filter(|process| process.slumbers).count()
        }

        fn count(&self) -> usize {
            let client = self.tree.client(self.id);
            client.map_or(0, |client| client.processes.len())
        }

        fn end(&mut self, index: usize) {
            self.sleepers[index].kill().expect("it runs");
            self.sleepers[index].wait().expect("it ends");
        }
    }

    impl Drop for Crowd {
        fn drop(&mut self) {
            for sleeper in &mut self.sleepers {
                let _ = sleeper.kill();
                let _ = sleeper.wait();
            }
        }
    }

    /// Sampled often or rarely, a process slumbers after the same time.
    #[test]
    fn a_process_slumbers_after_a_time_and_not_after_a_number_of_samples() {
        let mut crowd = Crowd::start();
        for sample in 1..100 {
            let awake = crowd.sample(Sampling::Due, sample * SLUMBERS_AFTER_NS / 101);
            assert_eq!(awake, 0, "{sample}");
        }
        assert_eq!(crowd.sample(Sampling::Due, SLUMBERS_AFTER_NS), SLEEPERS);
        // A client with fewer processes is no crowd.
        (CROWD..SLEEPERS).for_each(|index| crowd.end(index));
        crowd.sample(Sampling::All, 2 * SLUMBERS_AFTER_NS);
        assert_eq!(crowd.sample(Sampling::All, 3 * SLUMBERS_AFTER_NS), 0);
    }

    #[test]
    fn all_are_sampled_within_a_round_and_before_a_suspension_a_resumption_and_a_move() {
        let mut crowd = Crowd::start();
        let mut at_ns = SLUMBERS_AFTER_NS;
        assert_eq!(crowd.sample(Sampling::Due, at_ns), SLEEPERS);
        (0..4).for_each(|index| crowd.end(index));
        for _ in 0..ROUND_NS / (20 * MILLISECOND_NS) {
            at_ns += 20 * MILLISECOND_NS;
            crowd.sample(Sampling::Due, at_ns);
        }
        assert_eq!(crowd.count(), SLEEPERS - 4);
        let mut crowd = Crowd::start();
        assert_eq!(crowd.sample(Sampling::Due, SLUMBERS_AFTER_NS), SLEEPERS);
        let (id, now_ns) = (crowd.id, crowd.joined_ns + SLUMBERS_AFTER_NS);
        crowd.end(40);
        crowd.tree.suspend(id, now_ns + 1);
        assert_eq!(crowd.count(), SLEEPERS - 1);
        crowd.end(41);
        crowd.tree.resume(id, now_ns + 2);
        assert_eq!(crowd.count(), SLEEPERS - 2);
        crowd.end(42);
        let (to, moved) = (ClientId::from_parts(1, 0), crowd.sleepers[0].id());
        let result = crowd.tree.move_tree(id, to, moved, now_ns + 3);
        assert!(result.is_ok());
        assert_eq!(crowd.count(), SLEEPERS - 4);
    }
}
