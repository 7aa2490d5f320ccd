//! Whatever becomes of the engine, every process ends up running and
//! undemoted.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use prorata_core::policy::{ClientIndex, Policy, PolicyError, Stride};
use prorata_user::{EngineConfig, EngineError, Mechanism, UserEngine};

use crate::shares::assert_shares;
use crate::support::witness::judge;
use crate::support::{self, MS, Program, World, wait_until};
use crate::{add, add_for_root};

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
        let name = format!("the engine is {name}");
        add(trials, &name, mechanism, move |mechanism| {
            judge(RELEASE / 4, || daemon_dies(mechanism, signal));
        });
    }
    for (name, signal) in [("killed", libc::SIGKILL), ("terminated", libc::SIGTERM)] {
        let name = format!("the engine is {name} with threads bound");
        add(trials, &name, mechanism, move |mechanism| {
            bound(mechanism, |daemon, _| support::signal(daemon, signal))
        });
    }
    add(
        trials,
        "engine and guardian are killed with threads bound",
        mechanism,
        |mechanism| {
            bound(mechanism, |daemon, directory| {
                kill_both(daemon);
                drop(next_engine(directory));
            })
        },
    );
    add(
        trials,
        "a stalled engine's late deeds are undone",
        mechanism,
        late_deeds,
    );
    add(
        trials,
        "a decision thread that hangs has promised not to",
        mechanism,
        hang,
    );
    add(
        trials,
        "engine and guardian are killed",
        mechanism,
        both_die,
    );
    add(trials, "the engine stalls and goes on", mechanism, stall);
    add(trials, "the decision thread panics", mechanism, panic);
    add(
        trials,
        "a dead guardian is replaced",
        mechanism,
        guardian_dies,
    );
    add(
        trials,
        "an engine that ends releases all",
        mechanism,
        orderly_end,
    );
    add(
        trials,
        "own policies and nice values come back",
        mechanism,
        own_policies,
    );
    add(
        trials,
        "a lock that is held long is waited out",
        mechanism,
        lock_held,
    );
}

pub fn list_once(trials: &mut Vec<Trial>) {
    add_for_root(
        trials,
        "clients in different groups are stopped, not demoted",
        groups_differ,
    );
}

const QUANTUM_NS: u64 = 20 * MS;

/// What an engine leaves demoted or stopped is put right within this time: by
/// its guardian as soon as it dies, not only when it has been silent for long.
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
        let mut daemon = Program::start(&arguments);
        assert_eq!(daemon.hear(), "ready");
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
        self.hogs
            .iter()
            .filter(|hog| support::is_normal(hog.pid()))
            .count()
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
    // An ordinary user's guardian waits for a CPU like anybody, and in a session
    // of its own longer than we would here.
    let is_prompt = rustix::process::geteuid().is_root();
    if took < RELEASE || !is_prompt {
        Ok(())
    } else {
        Err(format!("all are put right after {took:?}"))
    }
}

/// Kills an engine in a process of its own, and its guardian.
fn kill_both(daemon: u32) {
    let guardian = support::children_of(daemon)[0];
    // Held fast first, or it might replace the guardian in between.
    support::freeze(daemon);
    support::signal(guardian, libc::SIGKILL);
    support::signal(daemon, libc::SIGKILL);
}

/// Whatever ends the engine: those that it had bound may use their CPUs again.
/// `end` gets the pid of its process and its state directory.
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
fn next_engine(directory: &Path) -> UserEngine {
    let config = EngineConfig {
        cpus: None,
        state_directory: directory.to_owned(),
        socket: support::socket(),
        mechanism: None,
    };
    let dispatcher = support::dispatcher(Box::new(Stride::new()), QUANTUM_NS);
    UserEngine::start(config, dispatcher).expect("the next engine starts")
}

fn both_die(mechanism: Mechanism) {
    let daemon = Daemon::start(mechanism);
    kill_both(daemon.daemon.pid());
    sleep(Duration::from_millis(200));
    assert!(daemon.normal() < 4, "nobody is left to put them right");
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

/// An engine that stalls between writing down a deed and doing it may wake
/// just long enough for the latter.
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
            }
        }
        // One of them was the winner when the engine stalled; nothing was to be
        // done to it.
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

/// An engine with nothing to do promises nothing; but whatever it begins to
/// do, it must have promised to end soon.
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
    let policy = Unruly {
        stride: Stride::new(),
        before_pick: move || {
            while until.load(Ordering::Relaxed) {
                sleep(Duration::from_millis(1));
            }
        },
    };
    world
        .dispatcher
        .lock()
        .expect("nobody panicked")
        .set_policy(Box::new(policy));
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

/// Stride scheduling with something done before each pick.
struct Unruly<F> {
    stride: Stride,
    before_pick: F,
}

impl<F: Fn()> Policy for Unruly<F> {
    fn join(&mut self, client: ClientIndex, tickets: u32) -> Result<(), PolicyError> {
        self.stride.join(client, tickets)
    }
    fn leave(&mut self, client: ClientIndex) -> Result<(), PolicyError> {
        self.stride.leave(client)
    }
    fn forget(&mut self, client: ClientIndex) {
        self.stride.forget(client);
    }
    fn set_tickets(&mut self, client: ClientIndex, tickets: u32) -> Result<(), PolicyError> {
        self.stride.set_tickets(client, tickets)
    }
    fn pick(&mut self) -> Option<ClientIndex> {
        (self.before_pick)();
        self.stride.pick()
    }
    fn take(&mut self, client: ClientIndex) -> Result<(), PolicyError> {
        self.stride.take(client)
    }
    fn charge(&mut self, client: ClientIndex, used: u64, quantum: u64) -> Result<(), PolicyError> {
        self.stride.charge(client, used, quantum)
    }
    fn total_tickets(&self) -> u64 {
        self.stride.total_tickets()
    }
    fn len(&self) -> usize {
        self.stride.len()
    }
}

fn panic(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let now = Arc::new(AtomicBool::new(false));
    let told = now.clone();
    let policy = Unruly {
        stride: Stride::new(),
        // Not by `panic!`: what is printed where all is well hides what is not.
        before_pick: move || {
            if told.load(Ordering::Relaxed) {
                std::panic::resume_unwind(Box::new("told to"));
            }
        },
    };
    world
        .dispatcher
        .lock()
        .expect("nobody panicked")
        .set_policy(Box::new(policy));
    let hogs = [Program::hog(), Program::hog(), Program::hog()];
    for (index, hog) in hogs.iter().enumerate() {
        world.enter(&format!("hog {index}"), 1, hog);
    }
    let normal = || {
        hogs.iter()
            .filter(|hog| support::is_normal(hog.pid()))
            .count()
    };
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
    let hogs = [Program::hog(), Program::hog()];
    for (index, hog) in hogs.iter().enumerate() {
        world.enter(&format!("hog {index}"), 1, hog);
    }
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

fn orderly_end(mechanism: Mechanism) {
    let mut world = World::new(Some(mechanism), QUANTUM_NS);
    let hogs = [
        Program::hog(),
        Program::start(&["threads", "3"]),
        Program::hog(),
    ];
    for (index, hog) in hogs.iter().enumerate() {
        world.enter(&format!("hog {index}"), 1, hog);
    }
    let normal = || {
        hogs.iter()
            .filter(|hog| support::is_normal(hog.pid()))
            .count()
    };
    wait_until("two are held down", || normal() <= 1);
    let guardian = world.engine().status().guardian.expect("there is one");
    world.end_engine();
    assert_eq!(normal(), 3);
    assert_eq!(support::stat_field(guardian, 3), "");
}

fn own_policies(mechanism: Mechanism) {
    let mut world = World::new(Some(mechanism), QUANTUM_NS);
    let batch = Program::start(&[
        "run",
        "chrt",
        "-b",
        "0",
        "nice",
        "-n",
        "5",
        "sh",
        "-c",
        "while :; do :; done",
    ]);
    let idle = Program::start(&["run", "chrt", "-i", "0", "sh", "-c", "while :; do :; done"]);
    let hog = Program::hog();
    let programs = [&batch, &idle, &hog];
    wait_until("they have their policies", || {
        support::policy_of(batch.pid()) == libc::SCHED_BATCH
            && support::stat_field(batch.pid(), 19) == "5"
            && support::policy_of(idle.pid()) == libc::SCHED_IDLE
    });
    for (index, program) in programs.iter().enumerate() {
        world.enter(&format!("program {index}"), 1, program);
    }
    // Several turns, in which each is demoted and promoted.
    sleep(Duration::from_millis(300));
    let stopped = || {
        programs
            .iter()
            .any(|p| support::stat_field(p.pid(), 3) == "T")
    };
    let demoted = || {
        programs
            .iter()
            .all(|p| support::policy_of(p.pid()) == libc::SCHED_IDLE)
    };
    wait_until("batch is held down", || {
        stopped() || demoted() || { support::policy_of(batch.pid()) == libc::SCHED_IDLE }
    });
    world.end_engine();
    assert!(!stopped());
    let policies = programs.map(|program| support::policy_of(program.pid()));
    assert_eq!(
        policies,
        [libc::SCHED_BATCH, libc::SCHED_IDLE, libc::SCHED_OTHER]
    );
    assert_eq!(support::stat_field(batch.pid(), 19), "5");
}

fn lock_held(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let hogs = [Program::hog(), Program::hog()];
    for (index, hog) in hogs.iter().enumerate() {
        world.enter(&format!("hog {index}"), 1, hog);
    }
    sleep(Duration::from_millis(100));
    let dispatcher: &Mutex<_> = &world.dispatcher;
    let held = dispatcher.lock().expect("nobody panicked");
    sleep(Duration::from_millis(500));
    // The engine still answers and has not let go of anybody.
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
    let before = hogs.each_ref().map(Program::cpu_ns);
    // The half second went to one of them and is made up for.
    wait_until("both run", || {
        let mut hogs = hogs.iter().zip(before);
        hogs.all(|(hog, before)| hog.cpu_ns() > before)
    });
}

/// A client in another session is in another group where the kernel groups
/// by session: `SCHED_IDLE` would mean nothing between the two.
fn groups_differ() {
    let enabled = std::fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled");
    if !enabled.is_ok_and(|text| text.trim() == "1") {
        return support::cannot_run("the kernel does not group by session");
    }
    let world = World::new(None, QUANTUM_NS);
    let hogs = [Program::hog(), Program::hog()];
    for (index, hog) in hogs.iter().enumerate() {
        world.enter(&format!("hog {index}"), 1, hog);
    }
    let mechanism = || world.engine().status().mechanism;
    wait_until("all are in one group", || mechanism() == Mechanism::Idle);
    let stranger = Program::start(&["session"]);
    let session = support::wait_for_child(stranger.pid());
    let client = world.enter("stranger", 1, &stranger);
    wait_until("groups differ", || mechanism() == Mechanism::Stop);
    let clocks_ns = || vec![support::cpu_ns(session), hogs[0].cpu_ns(), hogs[1].cpu_ns()];
    assert_shares(Duration::from_secs(2), clocks_ns, &[1; 3], QUANTUM_NS);
    world.engine().release(client);
    wait_until("all are in one group again", || {
        mechanism() == Mechanism::Idle
    });
}
