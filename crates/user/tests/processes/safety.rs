//! In whichever way the engine ends, every process runs and is undemoted afterwards.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use prorata_core::policy::Stride;
use prorata_user::{EngineError, Mechanism, UserEngine};

use crate::shares::assert_shares;
use crate::support::control_groups;
use crate::support::witness::judge;
use crate::support::{self, MS, Program, Watched, World, wait_until};
use crate::{MechanismTests, Tests, add};

pub const TESTS: MechanismTests = &[
    (
        "the next engine unbinds threads if engine and guardian are killed",
        |mechanism| {
            bound(mechanism, |daemon, directory| {
                kill_both(daemon);
                drop(next_engine(directory));
            })
        },
    ),
    ("late deeds of a stalled engine are undone", late_deeds),
    (
        "a decision thread that hangs has promised to end soon",
        hang,
    ),
    (
        "the next engine sweeps if engine and guardian are killed",
        both_die,
    ),
    ("an engine that stalled goes on", stall),
    ("a panic of the decision thread releases all", panic),
    ("a dead guardian is replaced", guardian_dies),
    ("an engine that ends releases all", orderly_end),
    ("own policies and nice values come back", own_policies),
    (
        "a dispatcher's lock that is held for long is waited out",
        lock_held,
    ),
];

pub const TESTS_ONCE: Tests = &[(
    "a guardian that hangs is replaced, and not waited for",
    hung_guardian,
)];

pub const TESTS_OF_ROOT: Tests = &[(
    "clients in different groups are stopped, not demoted",
    groups_differ,
)];

pub fn list(mechanism: Mechanism, trials: &mut Vec<Trial>) {
    for (name, signal) in [
        ("killed", libc::SIGKILL),
        ("terminated", libc::SIGTERM),
        ("hung up on", libc::SIGHUP),
        ("interrupted", libc::SIGINT),
        ("quit", libc::SIGQUIT),
        ("crashed", libc::SIGSEGV),
        ("aborted", libc::SIGABRT),
    ] {
        let name = format!("all are put right when the engine is {name}");
        add(trials, &name, mechanism, move |mechanism| {
            judge(RELEASE / 4, || daemon_dies(mechanism, signal));
        });
    }
    for (name, signal) in [("killed", libc::SIGKILL), ("terminated", libc::SIGTERM)] {
        let name = format!("threads are unbound when the engine is {name}");
        add(trials, &name, mechanism, move |mechanism| {
            bound(mechanism, |daemon, _| support::signal(daemon, signal))
        });
    }
}

const QUANTUM_NS: u64 = 20 * MS;

/// The guardian releases all within this time of the engine's death, and does not wait for the
/// promise to run out.
const RELEASE: Duration = Duration::from_secs(1);

/// Four hogs under an engine in a process of its own.
struct Daemon {
    daemon: Program,
    hogs: Vec<Program>,
    directory: tempfile::TempDir,
}

impl Daemon {
    fn start(mechanism: Mechanism) -> Daemon {
        let directory = tempfile::tempdir().expect("a directory");
        let hogs: Vec<Program> = (0..4).map(|_| Program::hog()).collect();
        let path = directory.path().to_str().expect("plain text").to_owned();
        let pids: Vec<String> = hogs.iter().map(|hog| hog.pid().to_string()).collect();
        let mechanism = format!("{mechanism:?}");
        let mut arguments = vec!["daemon", &mechanism, &path];
        arguments.extend(pids.iter().map(String::as_str));
        let daemon = Program::ready(&arguments);
        let daemon = Daemon {
            daemon,
            hogs,
            directory,
        };
        // Losers are held down: that is what has to be undone.
        wait_until("three are held down", || daemon.normal() <= 1);
        daemon
    }

    fn normal(&self) -> usize {
        support::count_normal(&self.hogs)
    }

    fn guardian(&self) -> u32 {
        let children = support::children_of(self.daemon.pid());
        assert_eq!(children.len(), 1, "the guardian is the daemon's only child");
        children[0]
    }

    fn expect_release(&self) {
        wait_until("all are put right", || self.normal() == self.hogs.len());
        // And stay so.
        sleep(Duration::from_millis(100));
        assert_eq!(self.normal(), self.hogs.len());
    }
}

fn daemon_dies(mechanism: Mechanism, signal: i32) -> Result<(), String> {
    let daemon = Daemon::start(mechanism);
    let guardian = daemon.guardian();
    let begun = Instant::now();
    wait_until("the engine dies", || {
        // The first SIGSEGV makes the runtime look for a guard page and return
        // to the instruction that faulted; there is none.
        support::signal(daemon.daemon.pid(), signal);
        support::has_ended(daemon.daemon.pid())
    });
    daemon.expect_release();
    let took = begun.elapsed();
    wait_until("the guardian ends", || support::has_ended(guardian));
    // An ordinary user's guardian has no priority over other processes, and competes in a
    // session of its own.
    let is_prompt = rustix::process::geteuid().is_root();
    if took < RELEASE || !is_prompt {
        Ok(())
    } else {
        Err(format!("all are put right after {took:?}"))
    }
}

/// Kills an engine in a process of its own, and its guardian.
pub fn kill_both(daemon: u32) {
    let guardian = support::children_of(daemon)[0];
    // Otherwise it might replace the guardian in between.
    support::freeze(daemon);
    support::signal(guardian, libc::SIGKILL);
    support::signal(daemon, libc::SIGKILL);
}

/// Threads that an engine had bound may use their CPUs again after it ended. `end` gets the
/// pid of its process and its state directory.
fn bound(mechanism: Mechanism, end: impl Fn(u32, &Path)) {
    let Some(cpus) = crate::shares::two_usable_cpus() else {
        return;
    };
    let crowd = Program::start_on(&cpus, &["threads", "4"]);
    let programs = [crowd, Program::start_on(&cpus, &["hog"])];
    support::wait_for_threads(programs[0].pid(), 5);
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().to_str().expect("plain text");
    let pids = programs.each_ref().map(|program| program.pid().to_string());
    let mechanism = format!("{mechanism:?}");
    let arguments = ["daemon", &mechanism, path, &pids[0], &pids[1]];
    let mut daemon = Program::start_on(&cpus, &arguments);
    assert_eq!(daemon.hear(), "ready");
    let cpus_of = |program: &Program| support::cpus_of_threads(program.pid());
    let unbound = || programs.iter().flat_map(cpus_of).all(|count| count == 2);
    wait_until("threads are bound", || !unbound());
    end(daemon.pid(), directory.path());
    wait_until("none is bound any more, or held down", || {
        let is_normal = |program: &Program| support::is_normal(program.pid());
        unbound() && programs.iter().all(is_normal)
    });
}

/// Starts an engine where another has been.
pub fn next_engine(directory: &Path) -> UserEngine {
    let config = support::config(directory, None, None);
    let (_, engine) = support::start_engine(config, QUANTUM_NS).expect("the next engine starts");
    engine
}

fn both_die(mechanism: Mechanism) {
    let daemon = Daemon::start(mechanism);
    kill_both(daemon.daemon.pid());
    sleep(Duration::from_millis(200));
    assert!(daemon.normal() < 4, "no process is left to put them right");
    let _engine = next_engine(daemon.directory.path());
    assert_eq!(daemon.normal(), 4, "the next engine has swept");
}

fn stall(mechanism: Mechanism) {
    let daemon = Daemon::start(mechanism);
    support::signal(daemon.daemon.pid(), libc::SIGSTOP);
    // A second's grace, a quarter until the guardian looks, and then some.
    wait_until("the guardian steps in", || daemon.normal() == 4);
    sleep(Duration::from_secs(1));
    assert_eq!(daemon.normal(), 4);
    support::signal(daemon.daemon.pid(), libc::SIGCONT);
    wait_until("the engine goes on", || daemon.normal() <= 1);
    sleep(Duration::from_millis(500));
    let clocks_ns = crate::shares::clocks_of(&daemon.hogs);
    assert_shares(Duration::from_secs(2), clocks_ns, &[1; 4], QUANTUM_NS);
    support::signal(daemon.daemon.pid(), libc::SIGKILL);
    daemon.expect_release();
}

/// An engine that stalls between writing down a deed and doing it may do the deed after the
/// release.
fn late_deeds(mechanism: Mechanism) {
    let daemon = Daemon::start(mechanism);
    support::signal(daemon.daemon.pid(), libc::SIGSTOP);
    let all_normal = || daemon.normal() == 4;
    wait_until("the guardian steps in", all_normal);
    for _ in 0..2 {
        for hog in &daemon.hogs {
            match mechanism {
                Mechanism::Stop => support::signal(hog.pid(), libc::SIGSTOP),
                Mechanism::Idle => support::make_idle(hog.pid()),
                Mechanism::GroupIdle => control_groups::set(hog.pid(), "cpu.idle"),
                Mechanism::GroupFreeze => control_groups::set(hog.pid(), "cgroup.freeze"),
            }
        }
        // One was the winner when the engine stalled, and the table says nothing of it.
        let put_right = || daemon.normal() >= 3;
        wait_until("the guardian steps in again", put_right);
    }
    for hog in &daemon.hogs {
        support::signal(hog.pid(), libc::SIGCONT);
    }
}

/// Where the table has the engine's promise: `alive_until_ns`, after magic
/// and boot identifier.
const PROMISE: std::ops::Range<usize> = 24..32;

/// An engine with nothing to do promises nothing. Before it does anything, it promises to end
/// that soon.
fn hang(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let promise = || {
        let table = std::fs::read(world.directory.path().join("demoted.table"));
        let table = table.expect("it is there");
        u64::from_ne_bytes(table[PROMISE].try_into().expect("eight bytes"))
    };
    world.engine().nudge();
    wait_until("it has nothing to do", || promise() == u64::MAX);
    let hangs = Arc::new(AtomicBool::new(true));
    let until = hangs.clone();
    let policy = Watched {
        stride: Stride::new(),
        before_pick: move || {
            while until.load(Ordering::Relaxed) {
                sleep(Duration::from_millis(1));
            }
        },
    };
    world.set_policy(policy);
    let hog = Program::hog();
    world.enter("hog", 1, &hog);
    wait_until("it has promised", || promise() != u64::MAX);
    sleep(Duration::from_millis(300));
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let now_ns = now.tv_sec as u64 * 1000 * MS + now.tv_nsec as u64;
    // A second's grace.
    assert!(promise() < now_ns + 1000 * MS, "it hangs for 300 ms");
    hangs.store(false, Ordering::Relaxed);
}

fn panic(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let now = Arc::new(AtomicBool::new(false));
    let told = now.clone();
    let policy = Watched {
        stride: Stride::new(),
        // `panic!` would print a message although all is well.
        before_pick: move || {
            if told.load(Ordering::Relaxed) {
                std::panic::resume_unwind(Box::new("told to"));
            }
        },
    };
    world.set_policy(policy);
    let hogs = world.hogs(&[1, 1, 1]);
    let normal = || support::count_normal(&hogs);
    wait_until("two are held down", || normal() <= 1);
    assert_eq!(world.engine().status().failure, None);
    now.store(true, Ordering::Relaxed);
    wait_until("all are put right", || normal() == 3);
    support::wait_readable(world.engine().exits());
    let engine = world.engine();
    wait_until("the failure is told", || engine.status().failure.is_some());
    assert_eq!(engine.status().failure.as_deref(), Some("told to"));
    let client = prorata_core::ids::ClientId::from_parts(0, 0);
    assert!(matches!(
        engine.manage(client, hogs[0].id()),
        Err(EngineError::Failed)
    ));
    assert_eq!(engine.processes(client), []);
}

fn guardian_dies(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let _hogs = world.hogs(&[1, 1]);
    let engine = world.engine();
    let first = engine.status().guardian.expect("there is one");
    support::signal(first, libc::SIGKILL);
    let replaced = || {
        engine
            .status()
            .guardian
            .is_some_and(|guardian| guardian != first)
    };
    wait_until("another guardian starts", replaced);
    // Signals that end ordinary processes leave it alone.
    let second = engine.status().guardian.expect("there is one");
    for harmless in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM, libc::SIGQUIT] {
        support::signal(second, harmless);
    }
    sleep(Duration::from_millis(300));
    assert_eq!(engine.status().guardian, Some(second));
    assert_ne!(
        support::stat_field(second, 6),
        support::stat_field(std::process::id(), 6)
    );
}

/// One that its user stopped, say. Its end is not waited for when the engine ends, either.
fn hung_guardian() {
    let mut world = World::new(None, 20 * MS);
    let _hogs = world.hogs(&[1, 1]);
    let guardian = |world: &World| world.engine().status().guardian;
    let first = guardian(&world).expect("there is one");
    support::signal(first, libc::SIGSTOP);
    wait_until("another guardian starts", || {
        guardian(&world).is_some_and(|guardian| guardian != first)
    });
    wait_until("the first one is gone", || {
        support::stat_field(first, 3).is_empty()
    });
    support::freeze(guardian(&world).expect("it has just started"));
    world.end_engine();
}

fn orderly_end(mechanism: Mechanism) {
    let mut world = World::new(Some(mechanism), QUANTUM_NS);
    let hogs = [
        Program::hog(),
        Program::start(&["threads", "3"]),
        Program::hog(),
    ];
    world.enter_all(&[1, 1, 1], &hogs);
    let normal = || support::count_normal(&hogs);
    wait_until("two are held down", || normal() <= 1);
    let guardian = world.engine().status().guardian.expect("there is one");
    world.end_engine();
    assert_eq!(normal(), 3);
    assert_eq!(support::stat_field(guardian, 3), "");
}

fn own_policies(mechanism: Mechanism) {
    let mut world = World::new(Some(mechanism), QUANTUM_NS);
    let shell = |script| Program::start(&["run", "sh", "-c", script]);
    let programs = [
        shell("exec chrt -b 0 nice -n 5 sh -c 'while :; do :; done'"),
        shell("exec chrt -i 0 sh -c 'while :; do :; done'"),
        Program::hog(),
    ];
    let [batch, idle, _] = &programs;
    wait_until("they have their policies", || {
        support::policy_of(batch.pid()) == libc::SCHED_BATCH
            && support::stat_field(batch.pid(), 19) == "5"
            && support::policy_of(idle.pid()) == libc::SCHED_IDLE
    });
    world.enter_all(&[1, 1, 1], &programs);
    // Several turns, in which each is demoted and promoted.
    sleep(Duration::from_millis(300));
    let stopped = || {
        programs
            .iter()
            .any(|p| support::stat_field(p.pid(), 3) == "T")
    };
    wait_until("batch is held down", || support::is_held_down(batch.pid()));
    world.end_engine();
    assert!(!stopped());
    let policies = programs
        .each_ref()
        .map(|program| support::policy_of(program.pid()));
    assert_eq!(
        policies,
        [libc::SCHED_BATCH, libc::SCHED_IDLE, libc::SCHED_OTHER]
    );
    assert_eq!(support::stat_field(batch.pid(), 19), "5");
}

fn lock_held(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let hogs = world.hogs(&[1, 1]);
    sleep(Duration::from_millis(100));
    let held = world.lock();
    sleep(Duration::from_millis(500));
    // The engine still answers and manages the hogs.
    assert_eq!(
        world
            .engine()
            .processes(prorata_core::ids::ClientId::from_parts(0, 0))
            .len(),
        1
    );
    drop(held);
    let decisions = world.engine().status().decisions;
    wait_until("decisions go on", || {
        world.engine().status().decisions > decisions + 5
    });
    let before: Vec<u64> = hogs.iter().map(Program::cpu_ns).collect();
    // One hog received the whole half second; the other catches up.
    wait_until("both run", || {
        let mut hogs = hogs.iter().zip(&before);
        hogs.all(|(hog, before)| hog.cpu_ns() > *before)
    });
}

/// Where the kernel groups by session, a client in another session is in another group, and
/// `SCHED_IDLE` has no effect between the two.
fn groups_differ() {
    let enabled = std::fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled");
    if !enabled.is_ok_and(|text| text.trim() == "1") {
        return support::cannot_run("the kernel does not group by session");
    }
    let world = World::new(None, QUANTUM_NS);
    let hogs = world.hogs(&[1, 1]);
    let mechanism = || world.engine().status().mechanism;
    wait_until("all are in one group", || mechanism() == Mechanism::Idle);
    let stranger = Program::start(&["session"]);
    let session = support::wait_for_child(stranger.pid());
    let client = world.enter("stranger", 1, &stranger);
    wait_until("groups differ", || mechanism() != Mechanism::Idle);
    let clocks_ns = || vec![support::cpu_ns(session), hogs[0].cpu_ns(), hogs[1].cpu_ns()];
    assert_shares(Duration::from_secs(2), clocks_ns, &[1; 3], QUANTUM_NS);
    world.engine().release(client);
    wait_until("all are in one group again", || {
        mechanism() == Mechanism::Idle
    });
}
