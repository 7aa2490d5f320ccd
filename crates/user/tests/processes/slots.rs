//! The engine keeps to the timetable, and nothing stays raised in whichever way it ends.

use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use prorata_core::ids::ClientId;
use prorata_core::slots::claim::Schedulee;
use prorata_user::SlotMechanism;

use crate::Tests;
use crate::safety::{kill_both, next_engine};
use crate::support::timetable::{self, Bulletin, process};
use crate::support::{self, MS, Program, World, shared_cpu, wait_until};

pub const TESTS_OF_ROOT: Tests = &[
    ("schedulees run in their slots", alternation),
    ("claims leave the free slots to tickets", free_slots),
    ("a client runs in its slots with all its processes", client),
    ("one thread of a process runs in its slots", one_thread),
    ("a gift of another user is not raised", gift),
    ("a process that is not managed is not raised", stranger),
    (
        "a process that the kernel would end for it is not raised",
        limited,
    ),
    ("a child that is born in a slot is not raised", newborn),
    ("a suspended client is not raised", suspended),
    ("the slots of a schedulee that ended go to others", ended),
    ("nothing stays raised when the daemon is killed", || {
        put_right(|daemon, _| support::signal(daemon, libc::SIGKILL))
    }),
    ("nothing stays raised when the daemon stops", || {
        put_right(|daemon, _| support::signal(daemon, libc::SIGSTOP))
    }),
    (
        "the next engine lowers if engine and guardian are killed",
        || {
            put_right(|daemon, directory| {
                kill_both(daemon);
                drop(next_engine(directory));
            })
        },
    ),
    (
        "slots are kept by SCHED_IDLE where that can be left (raised limits)",
        || as_user("--nice=20:20", "Some(Lower)"),
    ),
    (
        "a child that inherits the policy of a slot is lowered (raised limits)",
        || as_user("--rtprio=4:4", "Some(Raise)"),
    ),
    ("the keeper goes on under another guardian", guardian_dies),
    ("nothing stays raised when the engine ends", || {
        lowered(|world, _| world.end_engine())
    }),
    (
        "nothing stays raised when there is no timetable any more",
        || {
            lowered(|world, _| {
                let none = world.engine().set_timetable(None).expect("the engine runs");
                assert_eq!(none, None);
            })
        },
    ),
    ("nothing stays raised when the timetable closes", || {
        lowered(|_, bulletin| drop(bulletin.take()))
    }),
    ("nothing stays raised on a CPU that goes", || {
        lowered(|_, bulletin| bulletin.as_mut().expect("it is open").set_offline(0))
    }),
    ("nothing stays raised when the claim expires", expiry),
    ("no keeper wakes while nothing is claimed", idle),
];

/// Of an ordinary user, according to what the user may do.
pub fn tests_of_user() -> Vec<(&'static str, fn())> {
    match expected().as_str() {
        "Some(Raise)" => vec![(
            "an ordinary user's child that is born in a slot is not raised",
            newborn,
        )],
        _ => vec![("an ordinary user's schedulees run in their slots", by_hand)],
    }
}

/// Runs a test in a thread that can look at what is raised, on the machine's only CPU, too.
pub fn above_slots(test: fn()) {
    let above = move || {
        prorata_user::outrank_slots();
        test();
    };
    if let Err(panic) = std::thread::spawn(above).join() {
        std::panic::resume_unwind(panic);
    }
}

const QUANTUM_NS: u64 = 20 * MS;

fn cpu() -> u32 {
    shared_cpu() as u32
}

/// The CPU that has the slots, and another one if there is any.
fn shared_and_another() -> Vec<usize> {
    let mut cpus = vec![shared_cpu()];
    cpus.extend((shared_cpu() > 0).then_some(0));
    cpus
}

/// CPU time of each, in percent of all of them in so many seconds.
fn shares(seconds: u64, clocks_ns: impl Fn() -> Vec<u64>) -> Vec<u64> {
    let before = support::at_once(&clocks_ns);
    sleep(Duration::from_secs(seconds));
    let after = support::at_once(&clocks_ns);
    let used: Vec<u64> = after.iter().zip(before).map(|(a, b)| a - b).collect();
    let all: u64 = used.iter().sum();
    used.iter().map(|used| used * 100 / all).collect()
}

/// What each used, in percent of the time that passed: programs outside take of the free slots, and
/// not of those of raised schedulees.
fn parts_of_time(seconds: u64, clocks_ns: impl Fn() -> Vec<u64>) -> Vec<u64> {
    let clocks = || (clocks_ns(), Instant::now());
    let (before, begun) = support::at_once(clocks);
    sleep(Duration::from_secs(seconds));
    let (after, ended) = support::at_once(clocks);
    let passed_ns = (ended - begun).as_nanos() as u64;
    let used = after
        .iter()
        .zip(before)
        .map(|(after, before)| after - before);
    used.map(|used_ns| used_ns * 100 / passed_ns).collect()
}

fn start(world: &World, bulletin: &Bulletin) {
    let mechanism = world.engine().set_timetable(Some(bulletin.reader()));
    assert_eq!(
        mechanism.expect("the keeper starts"),
        Some(SlotMechanism::Raise)
    );
}

fn alternation() {
    let world = World::new(None, QUANTUM_NS);
    let hogs = world.hogs(&[1, 1]);
    let mut bulletin = Bulletin::open(world.directory.path(), &[cpu()], 10, 10);
    bulletin.claim(0, 0..2, process(hogs[0].pid()));
    bulletin.claim(0, 2..9, process(hogs[1].pid()));
    start(&world, &bulletin);
    sleep(Duration::from_millis(300));
    let shares = parts_of_time(4, || hogs.iter().map(Program::cpu_ns).collect());
    // Seven of ten slots; in the free ones the other one is due.
    assert!((60..=78).contains(&shares[1]), "{shares:?}");
    let report = world.engine().slot_report().expect("it is enforced");
    let row = report.rows[0];
    assert_eq!((report.rows.len(), row.cpu), (1, cpu()));
    assert!(row.ran > 200, "{row:?}");
    assert!(
        row.ran + row.lost + row.not_runnable >= row.boundaries - 1,
        "{row:?}"
    );
    assert!(
        row.late_p50_ns > 0 && row.late_p50_ns <= row.late_p99_ns,
        "{row:?}"
    );
}

fn free_slots() {
    let world = World::new(None, QUANTUM_NS);
    let hogs = world.hogs(&[1, 1, 3]);
    let mut bulletin = Bulletin::open(world.directory.path(), &[cpu()], 10, 10);
    bulletin.claim(0, 0..5, process(hogs[0].pid()));
    start(&world, &bulletin);
    sleep(Duration::from_millis(300));
    let shares = parts_of_time(4, || hogs.iter().map(Program::cpu_ns).collect());
    assert!((45..=60).contains(&shares[0]), "{shares:?}");
    // The others share the rest by their tickets.
    assert!(shares[2] > 2 * shares[1], "{shares:?}");
}

fn client() {
    let world = World::new(None, QUANTUM_NS);
    let hogs = [Program::hog(), Program::hog(), Program::hog()];
    let id = world.enter("two", 1, &hogs[0]);
    world.engine().manage(id, hogs[1].id()).expect("it runs");
    world.enter("one", 1, &hogs[2]);
    let mut bulletin = Bulletin::open(world.directory.path(), &[cpu()], 10, 10);
    bulletin.claim(0, 0..8, Schedulee::Client(id));
    start(&world, &bulletin);
    for hog in &hogs[..2] {
        wait_until("it is raised", || support::is_raised(hog.pid()));
    }
    assert!(!support::is_raised(hogs[2].pid()));
    let shares = shares(2, || hogs.iter().map(Program::cpu_ns).collect());
    assert!(shares[0] + shares[1] > 70, "{shares:?}");
}

fn one_thread() {
    let world = World::new(None, QUANTUM_NS);
    let program = Program::start(&["threads", "3"]);
    support::wait_for_threads(program.pid(), 4);
    world.enter("threads", 1, &program);
    let tids: Vec<u32> = support::threads_of(program.pid()).collect();
    let mut bulletin = Bulletin::open(world.directory.path(), &[cpu()], 10, 10);
    bulletin.claim(0, 0..7, timetable::thread(program.pid(), tids[2]));
    start(&world, &bulletin);
    let policy = |tid| support::policy_of(tid) & !libc::SCHED_RESET_ON_FORK;
    wait_until("it is raised", || policy(tids[2]) == libc::SCHED_FIFO);
    for &tid in tids.iter().filter(|&&tid| tid != tids[2]) {
        assert_eq!(policy(tid), libc::SCHED_OTHER);
    }
    world.engine().set_timetable(None).expect("the engine runs");
    assert_eq!(policy(tids[2]), libc::SCHED_OTHER);
}

/// Keeps a table for a while. Returns whether the process was raised at any time.
fn is_ever_raised(world: &World, bulletin: &Bulletin, pid: u32) -> bool {
    start(world, bulletin);
    (0..250).any(|_| {
        sleep(Duration::from_millis(2));
        support::is_raised(pid)
    })
}

fn gift() {
    let world = World::new(None, QUANTUM_NS);
    let hogs = world.hogs(&[1, 1]);
    let (stranger, mine) = (hogs[0].pid(), hogs[1].pid());
    let mut bulletin = Bulletin::open(world.directory.path(), &[cpu()], 4, 10);
    bulletin.claim_until(crate::NOBODY, 0, 0..2, process(stranger), None);
    assert!(!is_ever_raised(&world, &bulletin, stranger));
    bulletin.claim(0, 2..3, process(mine));
    wait_until("that of the own claim is raised", || {
        support::is_raised(mine)
    });
    assert!(!support::is_raised(stranger));
}

fn stranger() {
    let world = World::new(None, QUANTUM_NS);
    let _hogs = world.hogs(&[1]);
    let stranger = Program::hog();
    let mut bulletin = Bulletin::open(world.directory.path(), &[cpu()], 4, 10);
    bulletin.claim(0, 0..2, process(stranger.pid()));
    assert!(!is_ever_raised(&world, &bulletin, stranger.pid()));
    // Nor a later process of the same number.
    let pid = stranger.pid();
    world.enter("stranger", 1, &stranger);
    let Schedulee::Process { started, .. } = process(pid) else {
        panic!("it is a process");
    };
    let mut bulletin = Bulletin::open(world.directory.path(), &[cpu()], 4, 10);
    let started = started - 1;
    bulletin.claim(0, 0..2, Schedulee::Process { pid, started });
    assert!(!is_ever_raised(&world, &bulletin, pid));
}

/// The kernel ends a process that computes for longer with a real-time policy.
fn limited() {
    let world = World::new(None, QUANTUM_NS);
    let script = "while :; do :; done";
    let limit = "--rttime=200000:200000";
    let hog = Program::start(&["run", "prlimit", limit, "sh", "-c", script]);
    wait_until("it has its limit", || {
        support::program_of(hog.pid()) == "sh"
    });
    world.enter("limited", 1, &hog);
    let mut bulletin = Bulletin::open(world.directory.path(), &[cpu()], 10, 10);
    bulletin.claim(0, 0..9, process(hog.pid()));
    assert!(!is_ever_raised(&world, &bulletin, hog.pid()));
    assert!(!support::has_ended(hog.pid()));
}

fn newborn() {
    let cpus = shared_and_another();
    let world = World::new(None, QUANTUM_NS);
    let mut parent = Program::start_on(&cpus, &["breeder", "hog"]);
    world.enter("breeder", 1, &parent);
    let mut bulletin = Bulletin::open(world.directory.path(), &[cpu()], 10, 100);
    bulletin.claim(0, 0..9, process(parent.pid()));
    start(&world, &bulletin);
    wait_until("the parent is raised", || support::is_raised(parent.pid()));
    parent.say("go");
    let child = support::wait_for_child(parent.pid());
    let is_free = || support::cpus_of_threads(child) == [cpus.len() as u32];
    wait_until("the child is not bound", is_free);
    assert!(!support::is_raised(child));
    sleep(Duration::from_millis(300));
    assert!(is_free() && !support::is_raised(child));
}

fn suspended() {
    let world = World::new(None, QUANTUM_NS);
    let hog = Program::hog();
    let client = world.enter("hog", 1, &hog);
    let mut bulletin = Bulletin::open(world.directory.path(), &[cpu()], 10, 100);
    bulletin.claim(0, 0..9, Schedulee::Client(client));
    start(&world, &bulletin);
    wait_until("it is raised", || support::is_raised(hog.pid()));
    world.engine().suspend(client);
    for _ in 0..100 {
        assert!(!support::is_raised(hog.pid()));
        sleep(Duration::from_millis(5));
    }
    world.engine().resume(client);
    wait_until("it is raised again", || support::is_raised(hog.pid()));
}

fn ended() {
    let world = World::new(None, QUANTUM_NS);
    let mut hogs = world.hogs(&[1, 1]);
    let mut bulletin = Bulletin::open(world.directory.path(), &[cpu()], 10, 10);
    bulletin.claim(0, 0..9, process(hogs[0].pid()));
    start(&world, &bulletin);
    wait_until("it is raised", || support::is_raised(hogs[0].pid()));
    drop(hogs.remove(0));
    let rest = &hogs[0];
    let used_ns = || rest.cpu_ns();
    let before = used_ns();
    wait_until("the other one gets the CPU", || {
        used_ns() > before + 500 * MS
    });
    assert!(!support::is_raised(rest.pid()));
    let report = world.engine().slot_report().expect("it is enforced");
    assert!(report.rows[0].not_runnable > 0, "{report:?}");
}

/// Ends a daemon in some way while schedulees are raised. Nothing stays raised or bound.
fn put_right(end: impl Fn(u32, &Path)) {
    // Where there is only one CPU, nothing is left to others, and bindings do not show.
    let cpus = shared_and_another();
    let two = cpus.len() == 2;
    let hogs = [0, 1].map(|_| Program::start_on(&cpus, &["hog"]));
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().to_str().expect("plain text");
    let pids = hogs.each_ref().map(|hog| hog.pid().to_string());
    let arguments = ["slot-daemon", path, &pids[0], &pids[1]];
    let mut daemon = Program::start_on(&cpus, &arguments);
    assert_eq!(daemon.hear(), "Some(Raise)");
    let raised = || hogs.iter().filter(|hog| support::is_raised(hog.pid()));
    let is_bound = |hog: &Program| support::cpus_of_threads(hog.pid()) != [cpus.len() as u32];
    for round in 0..3 {
        let hog = &hogs[round % 2];
        wait_until("each is raised", || {
            support::is_raised(hog.pid()) && is_bound(hog) == two
        });
    }
    end(daemon.pid(), directory.path());
    wait_until("none is raised or bound", || {
        raised().count() == 0 && !hogs.iter().any(is_bound)
    });
    wait_until("none is held down", || support::count_normal(&hogs) == 2);
    // And stays so.
    sleep(Duration::from_millis(300));
    assert!(raised().count() == 0 && !hogs.iter().any(is_bound));
}

/// The mechanism that the tests of users expect, if it is not the last one.
const EXPECTED: &str = "PRORATA_TEST_SLOTS";

fn expected() -> String {
    std::env::var(EXPECTED).unwrap_or("Some(Stop)".into())
}

/// Two hogs share a CPU by claims of seven and of two in ten slots, although one of them has most of
/// the tickets. When the engine ends, nothing gives way any more.
fn by_hand() {
    let mut world = World::new(None, QUANTUM_NS);
    let hogs = world.hogs(&[1, 20]);
    let mut bulletin = Bulletin::open(world.directory.path(), &[cpu()], 10, 20);
    bulletin.claim(0, 0..7, process(hogs[0].pid()));
    bulletin.claim(0, 7..9, process(hogs[1].pid()));
    let mechanism = world.engine().set_timetable(Some(bulletin.reader()));
    let mechanism = format!("{:?}", mechanism.expect("the keeper starts"));
    assert_eq!(mechanism, expected());
    sleep(Duration::from_millis(500));
    let shares = shares(4, || hogs.iter().map(Program::cpu_ns).collect());
    assert!((55..=82).contains(&shares[0]), "{shares:?}");
    world.end_engine();
    assert_eq!(support::count_normal(&hogs), 2);
}

/// Runs the tests of an ordinary user whose processes have this limit.
fn as_user(limit: &str, mechanism: &str) {
    let limited = Command::new("prlimit").args([limit, "true"]).output();
    let limited = limited.expect("prlimit (util-linux) is installed");
    if !limited.status.success() {
        return support::cannot_run("it needs CAP_SYS_RESOURCE");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join("slots");
    let everyone = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path(), everyone).expect("the directory is ours");
    std::fs::copy("/proc/self/exe", &program).expect("there is room for a copy");
    let nobody = crate::NOBODY.to_string();
    let status = Command::new("prlimit")
        .args([limit, "setpriv", "--reuid", &nobody, "--regid", &nobody])
        .arg("--clear-groups")
        .arg(&program)
        .arg("ordinary user's")
        .env(EXPECTED, mechanism)
        .current_dir("/")
        .stdout(std::process::Stdio::null())
        .status();
    assert!(status.expect("it is installed").success());
}

fn guardian_dies() {
    let world = World::new(None, QUANTUM_NS);
    let hogs = world.hogs(&[1, 1]);
    let mut bulletin = Bulletin::open(world.directory.path(), &[cpu()], 10, 10);
    bulletin.claim(0, 0..9, process(hogs[0].pid()));
    start(&world, &bulletin);
    let guardian = || world.engine().status().guardian;
    let first = guardian().expect("there is one");
    wait_until("it is raised", || support::is_raised(hogs[0].pid()));
    support::signal(first, libc::SIGKILL);
    let replaced = || guardian().is_some_and(|guardian| guardian != first);
    wait_until("another guardian starts", replaced);
    wait_until("it is raised", || support::is_raised(hogs[0].pid()));
}

/// Ends the reign of a timetable in some way. Nothing stays raised.
fn lowered(end: impl Fn(&mut World, &mut Option<Bulletin>)) {
    let mut world = World::new(None, QUANTUM_NS);
    let hogs = world.hogs(&[1, 1]);
    let mut bulletin = Bulletin::open(world.directory.path(), &[cpu()], 10, 10);
    for (column, hog) in [0, 4].into_iter().zip(&hogs) {
        bulletin.claim(0, column..column + 4, process(hog.pid()));
    }
    start(&world, &bulletin);
    for hog in &hogs {
        wait_until("it is raised", || support::is_raised(hog.pid()));
    }
    let mut bulletin = Some(bulletin);
    end(&mut world, &mut bulletin);
    let raised = || hogs.iter().any(|hog| support::is_raised(hog.pid()));
    wait_until("none is raised", || !raised());
    for _ in 0..50 {
        assert!(!raised());
        sleep(Duration::from_millis(3));
    }
}

fn expiry() {
    let world = World::new(None, QUANTUM_NS);
    let hogs = world.hogs(&[1]);
    let client = ClientId::from_parts(0, 0);
    assert_eq!(world.engine().find(hogs[0].pid()), Some(client));
    let mut bulletin = Bulletin::open(world.directory.path(), &[cpu()], 10, 10);
    let expires = bulletin.tick() + 100;
    bulletin.claim_until(0, 0, 0..9, process(hogs[0].pid()), Some(expires));
    start(&world, &bulletin);
    wait_until("it is raised", || support::is_raised(hogs[0].pid()));
    wait_until("the claim ends", || bulletin.tick() > expires + 2);
    for _ in 0..50 {
        assert!(!support::is_raised(hogs[0].pid()));
        sleep(Duration::from_millis(3));
    }
}

fn idle() {
    let world = World::new(None, QUANTUM_NS);
    let hogs = world.hogs(&[1, 1]);
    let mut bulletin = Bulletin::open(world.directory.path(), &[cpu()], 10, 10);
    start(&world, &bulletin);
    sleep(Duration::from_millis(200));
    let before = support::sleeps_of("keeper");
    sleep(Duration::from_secs(1));
    assert_eq!(support::sleeps_of("keeper"), before);
    bulletin.claim(0, 0..1, process(hogs[0].pid()));
    wait_until("its hog is raised", || support::is_raised(hogs[0].pid()));
    assert!(support::sleeps_of("keeper") > before);
}
