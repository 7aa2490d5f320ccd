//! Programs without a client compute, too, on one of two CPUs.

use std::time::Duration;

use prorata_user::Mechanism;

use crate::MechanismTests;
use crate::shares::{check_within, excuse, two_usable_cpus, used_during};
use crate::support::witness::judge;
use crate::support::{self, MS, Program, World, wait_until};

pub const TESTS: MechanismTests = &[(
    "load outside on one of two CPUs leaves shares as they are due",
    beside_load,
)];

const QUANTUM_NS: u64 = 20 * MS;

/// What the placement promises at any time, while the CPUs give enough. They do not where programs
/// outside crowd both: then one thread, which can use no more than a part of one CPU, gets less than
/// two. So this test needs a machine without other load.
const TOLERANCE_QUANTA: f64 = 5.0;

/// One client has two programs, the other one. The kernel alone would give them 3:1 or more,
/// as would the engine if it gave each client a CPU for good.
fn beside_load(mechanism: Mechanism) {
    let Some(cpus) = two_usable_cpus() else {
        return;
    };
    let others = [(); 4].map(|()| Program::start_on(&cpus[..1], &["hog"]));
    let mut world = World::with_cpus(Some(mechanism), QUANTUM_NS, &cpus.map(|cpu| cpu as u32));
    let programs = [(); 3].map(|()| Program::start_on(&cpus, &["hog"]));
    let clients = world.enter_all(&[1, 1], &programs[..2]);
    world
        .engine()
        .manage(clients[0], programs[2].id())
        .expect("it can be managed");
    wait_until("the load is measured", || {
        let outside = world.engine().status().outside;
        let on = |cpu: usize| outside.iter().find(|load| load.cpu == cpu as u32);
        on(cpus[0]).is_some_and(|load| load.percent > 50)
    });
    // Before, the kernel placed the programs.
    wait_until("what the single program lost is made up for", || {
        let usage = world.usage(clients[1]);
        usage.specified_ns.abs_diff(usage.received_ns) < QUANTUM_NS
    });
    let clocks_ns = || {
        let [first, single, second] = programs.each_ref().map(Program::cpu_ns);
        vec![first + second, single]
    };
    judge(excuse(QUANTUM_NS), || {
        let used_ns = used_during(Duration::from_secs(2), clocks_ns);
        check_within(TOLERANCE_QUANTA, &used_ns, &[1, 1], QUANTUM_NS)
    });
    drop(others);
    world.end_engine();
    let counts = programs
        .iter()
        .map(|program| support::cpus_of_threads(program.pid()));
    assert!(
        counts.flatten().all(|count| count == 2),
        "one is still bound"
    );
}
