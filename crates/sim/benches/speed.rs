//! How fast the simulator is, and how much memory a client takes: on one core,
//! with nobody watching.

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};

use prorata_sim::Simulation;
use prorata_sim::scenario::{
    Amount, Client, Distribution, Loop, Machine, PolicyName, Program, Scenario, Step, Tickets,
    Time, Varying,
};

/// The system's allocator, counting bytes in use.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged; counting does
// not touch the memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps to the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the memory came from `alloc` above, with this layout.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn time(ms: u64) -> Distribution {
    Distribution::Fixed(Time::from_ms(ms))
}

fn exponential(ms: u64) -> Distribution {
    Distribution::Varying(Varying::Exponential(Time::from_ms(ms)))
}

fn scenario(cpus: u32, clients: u32, policy: PolicyName, steps: Vec<Step>) -> Scenario {
    let groups = 16;
    let client = |group: u32| Client {
        name: format!("g{group}-"),
        count: Some(clients / groups),
        tickets: Tickets::Fixed(vec![Amount::base(100 + group)]),
        program: "p".into(),
        start: Time::ZERO,
    };
    let steps = vec![Step::Loop(Loop { times: None, steps })];
    Scenario {
        title: "speed".into(),
        duration: Time::MAX,
        seed: 1,
        machine: Machine {
            cpus,
            policy,
            ..Machine::default()
        },
        currencies: Vec::new(),
        clients: (0..groups).map(client).collect(),
        programs: [("p".into(), Program { steps })].into(),
        mutexes: Default::default(),
        pipes: Default::default(),
        timeline: Vec::new(),
        measure: Default::default(),
        assertions: Vec::new(),
    }
}

/// A machine, its load, and for how many events it is timed.
struct Case {
    name: &'static str,
    cpus: u32,
    clients: u32,
    steps: Vec<Step>,
    /// Events before, so that all have started and tables have grown.
    warm_up: u64,
    events: u64,
}

fn cases() -> Vec<Case> {
    let busy = || vec![Step::Compute(time(1000))];
    let sleepy = || vec![Step::Compute(exponential(5)), Step::Sleep(exponential(50))];
    let case = |name, cpus, clients, steps, warm_up, events| Case {
        name,
        cpus,
        clients,
        steps,
        warm_up,
        events,
    };
    vec![
        case("small, computing", 8, 1_000, busy(), 1 << 16, 1 << 21),
        case("small, sleeping", 8, 1_000, sleepy(), 1 << 16, 1 << 20),
        case(
            "large, computing",
            1024,
            1_000_000,
            busy(),
            1 << 21,
            1 << 21,
        ),
        case(
            "large, sleeping",
            1024,
            1_000_000,
            sleepy(),
            1 << 21,
            1 << 20,
        ),
    ]
}

/// CPU time of this thread, so that other programs matter little.
fn cpu_seconds() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// With an argument only the cases whose name and policy contain it.
fn main() {
    let wanted = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'));
    let policies = [
        PolicyName::Stride,
        PolicyName::Lottery,
        PolicyName::ClassLottery,
    ];
    for case in cases() {
        for policy in policies {
            let name = format!("{}, {policy:?}", case.name);
            if wanted.as_ref().is_none_or(|wanted| name.contains(wanted)) {
                measure(&name, &case, policy);
            }
        }
    }
}

fn measure(name: &str, case: &Case, policy: PolicyName) {
    let scenario = scenario(case.cpus, case.clients, policy, case.steps.clone());
    let before = IN_USE.load(Ordering::Relaxed);
    let mut simulation = Simulation::new(&scenario, 1).expect("a scenario");
    let mut steps = |events: u64| {
        for _ in 0..events {
            simulation.step().expect("it goes on");
        }
        simulation.machine().counts()
    };
    let warm = steps(case.warm_up);
    let bytes = IN_USE.load(Ordering::Relaxed) - before;
    let start = cpu_seconds();
    let counts = steps(case.events);
    let seconds = cpu_seconds() - start;
    black_box(&simulation);
    println!(
        "{name}: {:.2} million events and {:.2} million turns a second, {} bytes a client",
        case.events as f64 / seconds / 1e6,
        (counts.turns - warm.turns) as f64 / seconds / 1e6,
        bytes / case.clients as usize,
    );
}
