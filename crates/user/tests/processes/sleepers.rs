//! Clients that sleep: they give the rest of their turns away, and gain
//! nothing beyond compensation.

use std::thread::sleep;
use std::time::Duration;

use libtest_mimic::Trial;
use prorata_core::hybrid::{LEAD_BOUND_NS, Mechanisms, WakeClass};
use prorata_user::Mechanism;

use crate::shares::{clocks_of, excuse, used_during};
use crate::support::witness::judge;
use crate::support::{MS, Program, World, is_held_down, stat_field, wait_until};
use crate::{MechanismTests, add};

pub const TESTS: MechanismTests = &[
    ("a sleeper's turn goes to others", turns_are_given_away),
    ("a light sleeper gets all that it asks for", light_sleeper),
    (
        "a client below its due is never held down",
        early_client_is_not_held_down,
    ),
];

pub fn list(mechanism: Mechanism, trials: &mut Vec<Trial>) {
    for (run_us, sleep_us) in STRATEGIES {
        let name = format!("running {run_us} us and sleeping {sleep_us} us gains nothing");
        add(trials, &name, mechanism, move |mechanism| {
            gains_nothing(mechanism, run_us, sleep_us, Mechanisms::NONE)
        });
    }
    for (run_us, sleep_us) in [STRATEGIES[0], STRATEGIES[3]] {
        let name = format!("running {run_us} us and sleeping {sleep_us} us gains a lead at most");
        add(trials, &name, mechanism, move |mechanism| {
            gains_nothing(mechanism, run_us, sleep_us, Mechanisms::ALL)
        });
    }
}

const QUANTUM_NS: u64 = 20 * MS;

/// While a client with nearly all tickets sleeps, others may run.
fn turns_are_given_away(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let (sleeper, hog) = (Program::start(&["bursts", "1000", "30000"]), Program::hog());
    world.enter("sleeper", 99, &sleeper);
    world.enter("hog", 1, &hog);
    sleep(Duration::from_millis(500));
    let is_in = |program: &Program, state| stat_field(program.pid(), 3) == state;
    // The engine notices a block within a millisecond or two of thirty, or a few more if its
    // thread has to wait for a CPU.
    judge(excuse(QUANTUM_NS), || {
        let (mut asleep, mut kept_from_it) = (0, 0);
        for _ in 0..2000 {
            if is_in(&sleeper, "S") {
                asleep += 1;
                kept_from_it += u32::from(is_in(&hog, "T"));
            }
            sleep(Duration::from_millis(1));
        }
        // It sleeps most of the time.
        if asleep > 500 && kept_from_it * 4 < asleep {
            Ok(())
        } else {
            Err(format!("the hog was stopped in {kept_from_it} of {asleep}"))
        }
    });
}

/// A client that asks for less than its share gets it.
fn light_sleeper(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    let programs = [Program::start(&["bursts", "5000", "45000"]), Program::hog()];
    world.enter_all(&[1, 1], &programs);
    sleep(Duration::from_millis(500));
    // It receives a tenth of the CPU if it never waits. At worst it waits for a whole quantum
    // each time, and receives 5 ms of 70. Other load takes from the hog first, and so raises
    // the sleeper's part.
    judge(excuse(QUANTUM_NS), || {
        let used_ns = used_during(Duration::from_secs(3), clocks_of(&programs));
        let part = used_ns[0] as f64 / used_ns.iter().sum::<u64>() as f64;
        if (0.06..0.52).contains(&part) {
            Ok(())
        } else {
            Err(format!("{part:.3} of the CPU"))
        }
    });
}

/// Ways to be asleep at each look, to sleep off a debt, and to save up for a burst.
const STRATEGIES: [(u64, u64); 5] = [
    (19_000, 1_000),
    (1_000, 200),
    (10_000, 10_000),
    (60_000, 100_000),
    (4_000, 1_000),
];

/// Hybrid lottery scheduling (1999): whichever client the quantum belongs to.
fn early_client_is_not_held_down(mechanism: Mechanism) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    world.lock().set_mechanisms_beside(Mechanisms::ALL);
    let hogs = world.hogs(&[1, 1, 1]);
    let editor = Program::start(&["bursts", "2000", "98000"]);
    let client = world.enter("editor", 1, &editor);
    // New clients are not early.
    wait_until("it is early", || {
        let outlook = world.lock().outlook(client, WakeClass::User);
        outlook.is_some_and(|outlook| outlook.is_early)
    });
    // That decision is enforced.
    world.wait_for_decisions(2);
    let any_waits = |programs: &[Program]| {
        let mut programs = programs.iter();
        programs.any(|program| is_held_down(program.pid()))
    };
    // On a machine that does other work it may ask for more than it is due.
    judge(excuse(QUANTUM_NS), || {
        let (mut held_down, mut hogs_waited) = (0, 0);
        for _ in 0..1000 {
            held_down += u32::from(is_held_down(editor.pid()));
            hogs_waited += u32::from(any_waits(&hogs));
            sleep(Duration::from_millis(1));
        }
        if held_down == 0 && hogs_waited > 0 {
            Ok(())
        } else {
            Err(format!(
                "held down {held_down} times, the hogs {hogs_waited}"
            ))
        }
    });
}

/// With a tenth of the tickets, no way of sleeping gets a client more than a
/// tenth of the CPU, but for a lead.
fn gains_nothing(mechanism: Mechanism, run_us: u64, sleep_us: u64, mechanisms: Mechanisms) {
    let world = World::new(Some(mechanism), QUANTUM_NS);
    world.lock().set_mechanisms_beside(mechanisms);
    let lead_quanta = match mechanisms.judges_wakes() {
        true => LEAD_BOUND_NS as f64 / QUANTUM_NS as f64,
        false => 0.0,
    };
    let strategy = ["bursts", &run_us.to_string(), &sleep_us.to_string()];
    let programs = [Program::start(&strategy), Program::hog()];
    world.enter_all(&[1, 9], &programs);
    sleep(Duration::from_millis(500));
    judge(excuse(QUANTUM_NS), || {
        let used_ns = used_during(Duration::from_secs(4), clocks_of(&programs));
        let due_ns = used_ns.iter().sum::<u64>() / 10;
        let ahead_quanta = (used_ns[0] as f64 - due_ns as f64) / QUANTUM_NS as f64;
        if ahead_quanta < 2.0 + lead_quanta {
            Ok(())
        } else {
            Err(format!(
                "{used_ns:?} ns, {ahead_quanta:.1} quanta more than {due_ns}"
            ))
        }
    });
}
