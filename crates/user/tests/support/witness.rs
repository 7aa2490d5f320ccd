//! Evidence of delay: whether the machine let prompt threads run at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

/// Trials whose failure may be the machine's fault. Without a bug, all of them fail only on a
/// machine that is never quiet for seconds.
const TRIALS: u32 = 20;

/// Has `trial` judge the engine's timing. An engine without a CPU when it is to decide cannot
/// enforce shares. Witnesses are threads that are to run as promptly as the engine. A failure
/// counts only if none of them waited for a CPU for longer than `excuse`; otherwise the trial
/// is held again.
pub fn judge(excuse: Duration, mut trial: impl FnMut() -> Result<(), String>) {
    for _ in 0..TRIALS {
        let witness = Witness::call();
        let verdict = trial();
        let delay = witness.dismiss();
        let Err(fault) = verdict else { return };
        assert!(
            delay > excuse,
            "{fault} (no witness waited longer than {delay:?})"
        );
        println!("judged again, as a witness waited for {delay:?}: {fault}");
    }
    panic!("{TRIALS} failures, each on a machine that is too busy to say why");
}

/// Threads that sleep for a millisecond again and again, one on each usable CPU.
struct Witness {
    threads: Vec<JoinHandle<Duration>>,
    dismissed: Arc<AtomicBool>,
}

impl Witness {
    fn call() -> Witness {
        let dismissed = Arc::new(AtomicBool::new(false));
        let usable = rustix::thread::sched_getaffinity(None).expect("we have an affinity");
        let cpus = (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| usable.is_set(cpu));
        let watch = |cpu| {
            let dismissed = Arc::clone(&dismissed);
            spawn(move || super::bound_to(&[cpu], || longest_delay(&dismissed)))
        };
        Witness {
            threads: cpus.map(watch).collect(),
            dismissed,
        }
    }

    /// The longest time that one of them had to wait for its CPU.
    fn dismiss(self) -> Duration {
        self.dismissed.store(true, Ordering::Relaxed);
        let delays = self.threads.into_iter().map(|thread| thread.join());
        let delays = delays.map(|delay| delay.expect("it only sleeps"));
        delays.max().unwrap_or_default()
    }
}

fn longest_delay(dismissed: &AtomicBool) -> Duration {
    const NAP: Duration = Duration::from_millis(1);
    wake_promptly();
    let mut longest = Duration::ZERO;
    while !dismissed.load(Ordering::Relaxed) {
        let begun = Instant::now();
        sleep(NAP);
        longest = longest.max(begun.elapsed() - NAP);
    }
    longest
}

/// As the engine's own threads do, where that is permitted. Elsewhere both are ordinary
/// threads.
fn wake_promptly() {
    let parameter = libc::sched_param { sched_priority: 3 };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: `parameter` outlives the call, which only reads it.
    unsafe { libc::sched_setscheduler(0, policy, &parameter) };
}
