//! What schedules: Linux's own scheduler, ours, and schedulers of others, which are programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use prorata_kernel::scheduler::{Mechanisms, Options, Policy, Queues, Scheduler, Scope};

use super::machine;

/// Time until the kernel has finished booting. (Loading a scheduler takes as long.)
const BOOT: Duration = Duration::from_secs(10);
/// The longest time until a peer schedules. (The kernel checks a large one for minutes.)
const PATIENCE: Duration = Duration::from_secs(600);
/// What the kernel says of a loaded scheduler.
const STATE: &str = "/sys/kernel/sched_ext/state";
/// The default of `prorata start`.
const QUANTUM_NS: u64 = 20_000_000;

/// As with `prorata start --clients-only`.
const HYBRID: Options = Options {
    policy: Policy::Stride,
    quantum_ns: QUANTUM_NS,
    scope: Scope::Given,
    queues: Queues::Cpu,
    hybrid: Mechanisms::ALL,
};

/// The default of `prorata start`.
const WHOLE: Options = Options {
    scope: Scope::All,
    ..HYBRID
};

/// Whether a scheduler is another's, which may be absent.
pub fn is_peer(name: &str) -> bool {
    name.starts_with("scx_")
}

/// Where the peers are; none where they cannot be installed.
pub fn peers() -> Option<PathBuf> {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("schedulers");
    fs::create_dir_all(&place).ok()?;
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/benches/responsiveness/peers/install"
    );
    let status = Command::new(script).arg(&place).status();
    let is_installed = status.is_ok_and(|status| status.success());
    is_installed.then(|| place.join("bin"))
}

/// Measures under a scheduler. The measurement is passed ours if that schedules clients alone.
///
/// # Panics
/// If the scheduler does not stay loaded.
pub fn measure(name: &str, peers: &Path, measure: impl FnOnce(Option<&Scheduler>)) {
    let options = match name {
        "EEVDF" => {
            sleep(BOOT);
            return measure(None);
        }
        "HYBRID" => HYBRID,
        "WHOLE" => WHOLE,
        peer => {
            let peer = Peer::start(&peers.join(peer));
            sleep(BOOT);
            measure(None);
            return peer.stop();
        }
    };
    machine::under(&options, |scheduler| {
        measure((options.scope == Scope::Given).then_some(scheduler));
    });
}

struct Peer(Child);

impl Peer {
    fn start(program: &Path) -> Self {
        let child = Command::new(program)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn();
        let mut child = child.expect("it is installed");
        let begin = Instant::now();
        while !schedules() {
            let ended = child.try_wait().expect("it is ours");
            assert!(ended.is_none(), "{} ended: {ended:?}", program.display());
            assert!(begin.elapsed() < PATIENCE, "it does not schedule");
            sleep(Duration::from_millis(100));
        }
        Self(child)
    }

    fn stop(mut self) {
        assert!(schedules(), "the kernel ended it");
        let pid = Pid::from_raw(self.0.id().cast_signed());
        kill(pid, Signal::SIGINT).expect("it runs");
        self.0.wait().expect("it is ours");
    }
}

fn schedules() -> bool {
    fs::read_to_string(STATE).is_ok_and(|state| state.trim() == "enabled")
}
