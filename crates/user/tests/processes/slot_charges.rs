//! What slots cost in tickets, and where that ends.
//!
//! All of it is counted in CPU time that the test's programs received, so that other load on the
//! machine does not matter.

use std::thread::sleep;
use std::time::{Duration, Instant};

use prorata_core::ids::ClientId;
use prorata_core::slots::claim::Schedulee;
use prorata_user::SlotMechanism;

use crate::Tests;
use crate::shares::{clocks_of, excuse};
use crate::support::timetable::Bulletin;
use crate::support::witness::judge;
use crate::support::{self, MS, Program, World, shared_cpu};

pub const TESTS_OF_ROOT: Tests = &[
    ("slots within tickets move nobody's share", within_tickets),
    (
        "slots beyond tickets leave the rest to tickets, and a client that frees them waits for a period",
        beyond_tickets,
    ),
    ("a limited client gets its limit in slots", limited),
];

const QUANTUM_NS: u64 = 20 * MS;
const SLOT_NS: u64 = 20 * MS;
const COLUMNS: u32 = 10;
const PERIOD_NS: u64 = COLUMNS as u64 * SLOT_NS;

/// Hogs of which the first has so many slots of each period.
struct Claimed {
    world: World,
    programs: Vec<Program>,
    first: ClientId,
    bulletin: Bulletin,
}

impl Claimed {
    fn new(tickets: &[u32], slots: u32) -> Claimed {
        let world = World::new(None, QUANTUM_NS);
        let programs: Vec<Program> = tickets.iter().map(|_| Program::hog()).collect();
        let first = world.enter_all(tickets, &programs)[0];
        let directory = world.directory.path();
        let cpus = [shared_cpu() as u32];
        let mut bulletin = Bulletin::open(directory, &cpus, COLUMNS, SLOT_NS / MS);
        bulletin.claim(0, 0..slots, Schedulee::Client(first));
        let mechanism = world.engine().set_timetable(Some(bulletin.reader()));
        let mechanism = mechanism.expect("the keeper starts");
        assert_eq!(mechanism, Some(SlotMechanism::Raise));
        sleep(Duration::from_millis(300));
        Claimed {
            world,
            programs,
            first,
            bulletin,
        }
    }

    fn clocks_ns(&self) -> Vec<u64> {
        support::at_once(clocks_of(&self.programs))
    }

    /// What each program used in so many seconds.
    fn used_ns(&self, seconds: u64) -> Vec<u64> {
        let before = self.clocks_ns();
        sleep(Duration::from_secs(seconds));
        let both = self.clocks_ns().into_iter().zip(before);
        both.map(|(after, before)| after - before).collect()
    }
}

/// Whether programs used CPU time in proportion to their tickets, within so much.
fn check_proportion(used_ns: &[u64], tickets: &[u32], within_ns: u64) -> Result<(), String> {
    let (all_ns, all): (u64, u32) = (used_ns.iter().sum(), tickets.iter().sum());
    for (&used, &tickets) in used_ns.iter().zip(tickets) {
        let due_ns = all_ns * u64::from(tickets) / u64::from(all);
        if used.abs_diff(due_ns) > within_ns {
            return Err(format!("{used_ns:?} ns for tickets {tickets} of {all}"));
        }
    }
    Ok(())
}

/// The first one has a fifth of all time in slots, and a half of all tickets.
fn within_tickets() {
    let tickets = [50, 30, 20];
    let claimed = Claimed::new(&tickets, 2);
    judge(excuse(QUANTUM_NS), || {
        // A quantum for each client, and a slot.
        let within_ns = 3 * QUANTUM_NS + SLOT_NS;
        check_proportion(&claimed.used_ns(4), &tickets, within_ns)
    });
    let usage = claimed.world.usage(claimed.first);
    assert!(usage.in_slots_ns > 500 * MS, "{usage:?}");
    assert!(usage.uncharged_ns < usage.in_slots_ns / 4, "{usage:?}");
}

/// The first one has a half of all time in slots, and a tenth of all tickets: at the end it has
/// received what its tickets give in twenty seconds.
fn beyond_tickets() {
    let mut claimed = Claimed::new(&[10, 60, 30], 5);
    judge(excuse(QUANTUM_NS), || {
        let used_ns = claimed.used_ns(4);
        if used_ns[0] < 1_900 * MS {
            return Err(format!("{used_ns:?}"));
        }
        check_proportion(&used_ns[1..], &[60, 30], 2 * QUANTUM_NS + SLOT_NS)
    });
    let usage = claimed.world.usage(claimed.first);
    assert!(usage.in_slots_ns > 2_000 * MS, "{usage:?}");
    // What its tickets give in a period and two quanta is charged, and its due.
    let charged_ns = usage.in_slots_ns - usage.uncharged_ns;
    assert!(charged_ns < usage.in_slots_ns / 4, "{usage:?}");

    judge(excuse(QUANTUM_NS), || {
        let cells = 0..5;
        claimed.bulletin.free(0, cells.clone());
        let before = claimed.clocks_ns();
        // More than a loser gets in `SCHED_IDLE` meanwhile.
        let turn_ns = 10 * MS;
        let deadline = Instant::now() + Duration::from_secs(60);
        let others_ns = loop {
            let now = claimed.clocks_ns();
            let used = |index: usize| now[index] - before[index];
            if used(0) >= turn_ns {
                break used(1) + used(2);
            }
            assert!(Instant::now() < deadline, "it is not served any more");
            sleep(Duration::from_millis(1));
        };
        claimed
            .bulletin
            .claim(0, cells, Schedulee::Client(claimed.first));
        sleep(Duration::from_secs(1));
        // Without slots it would have a turn in so much time.
        let stride_ns = QUANTUM_NS * 10;
        // Each of the others may be in the middle of a turn, and clocks are read once a quantum.
        let most_ns = stride_ns + PERIOD_NS + 2 * QUANTUM_NS + 3 * QUANTUM_NS;
        match others_ns <= most_ns {
            true => Ok(()),
            false => Err(format!(
                "the others were served for {others_ns} ns before it"
            )),
        }
    });
}

fn limited() {
    let claimed = Claimed::new(&[1, 1], 9);
    let percent = 20;
    support::limit(&mut claimed.world.lock(), claimed.first, Some(percent));
    claimed.world.engine().nudge();
    judge(excuse(QUANTUM_NS), || {
        let begun = Instant::now();
        let used_ns = claimed.used_ns(2);
        let limit_ns = begun.elapsed().as_nanos() as u64 * u64::from(percent) / 100;
        // A full allowance, and a quantum until the engine notices that it is exhausted.
        let most_ns = limit_ns + MS * u64::from(percent) + QUANTUM_NS + 10 * MS;
        match (1..=most_ns).contains(&used_ns[0]) {
            true => Ok(()),
            false => Err(format!("{used_ns:?} ns for {limit_ns}")),
        }
    });
    let pid = claimed.programs[0].pid();
    support::limit(&mut claimed.world.lock(), claimed.first, None);
    claimed.world.engine().nudge();
    support::wait_until("it has its slots again", || support::is_raised(pid));
}
