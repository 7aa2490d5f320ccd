//! How fast the simulator is, and how much memory a client takes: on one core, without an
//! observer.

mod peers;

use std::alloc::{GlobalAlloc, Layout};
use std::fmt;
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};

use prorata_core::policy::PolicyName;
use prorata_report::figures::{self, Figure};
use prorata_scenario::file::{
    Amount, Client, Distribution, Loop, MachineSpec, Program, Step, Tickets, Time, Varying,
};
use prorata_scenario::{Plan, Scenario};
use prorata_sim::Simulation;
use prorata_sim::memory::HugePages;

/// The program's allocator, counting bytes in use.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the program's allocator unchanged; counting does
// not touch the memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps to the contract of `alloc`.
        unsafe { HugePages.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the memory came from `alloc` above, with this layout.
        unsafe { HugePages.dealloc(memory, layout) }
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
        user: 0,
        name: format!("g{group}-"),
        count: Some(clients / groups),
        tickets: Tickets::Fixed(vec![Amount::base(100 + group)]),
        program: "p".into(),
        start: Time::ZERO,
        pool: None,
        max: None,
        nice: 0,
        cpus: None,
    };
    let steps = vec![Step::Loop(Loop {
        times: None,
        until: None,
        chance: None,
        steps,
    })];
    Scenario {
        slots: None,
        claims: Vec::new(),
        title: "speed".into(),
        duration: Time::MAX,
        seed: 1,
        machine: MachineSpec {
            cpus,
            policy,
            ..MachineSpec::default()
        },
        currencies: Vec::new(),
        clients: (0..groups).map(client).collect(),
        programs: [("p".into(), Program { steps })].into(),
        mutexes: Default::default(),
        pipes: Default::default(),
        timeline: Vec::new(),
        measure: Default::default(),
        assertions: Vec::new(),
        reproduces: None,
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
    /// Million events a second that are to be reached.
    target: f64,
}

fn cases() -> Vec<Case> {
    let busy = || vec![Step::Compute(time(1000))];
    let sleepy = || vec![Step::Compute(exponential(5)), Step::Sleep(exponential(50))];
    let small = |name, steps| Case {
        name,
        cpus: 8,
        clients: 1_000,
        steps,
        warm_up: 1 << 16,
        events: 1 << 21,
        target: 10.0,
    };
    let large = |name, steps| Case {
        name,
        cpus: 1024,
        clients: 1_000_000,
        steps,
        warm_up: 1 << 21,
        events: 1 << 21,
        target: 2.0,
    };
    vec![
        small("small, computing", busy()),
        small("small, sleeping", sleepy()),
        large("large, computing", busy()),
        large("large, sleeping", sleepy()),
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
    let mut reached = Vec::new();
    for case in cases() {
        for policy in policies {
            let name = format!("{}, {policy:?}", case.name);
            if wanted.as_ref().is_none_or(|wanted| name.contains(wanted)) {
                let measured = measure(&case, policy);
                println!("{name}: {measured}");
                if policy == PolicyName::Stride {
                    reached.extend(measured.figures(&case));
                }
            }
        }
    }
    if wanted.is_none() {
        reached.extend(peers::compare());
        figures::keep(env!("CARGO_TARGET_TMPDIR"), "sim", &reached);
    }
}

/// What a case came to.
struct Measured {
    events_a_second: f64,
    turns_a_second: f64,
    /// What there was when the plan was made, when the machine was, and at the
    /// end of the warm-up.
    bytes_a_client: [usize; 3],
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [plan, machine, all] = self.bytes_a_client;
        write!(
            f,
            "{:.2} million events and {:.2} million turns a second, {all} bytes a client: \
             ledger {plan}, machine and dispatcher {}, as it runs {}",
            self.events_a_second / 1e6,
            self.turns_a_second / 1e6,
            machine - plan,
            all - machine,
        )
    }
}

impl Measured {
    fn figures(&self, case: &Case) -> Vec<Figure> {
        let machine = format!(
            "{} CPUs, {} clients, {}",
            case.cpus, case.clients, case.name
        );
        let name = format!("simulated on one core: {machine}");
        let million = self.events_a_second / 1e6;
        let mut figures = vec![Figure::at_least(
            name,
            million,
            "million events/s",
            case.target,
        )];
        if case.clients >= 1_000_000 {
            let bytes = self.bytes_a_client[2] as f64;
            let name = format!("memory: {machine}");
            figures.push(Figure::at_most(name, bytes, "bytes/client", 300.0));
        }
        figures
    }
}

fn measure(case: &Case, policy: PolicyName) -> Measured {
    let scenario = scenario(case.cpus, case.clients, policy, case.steps.clone());
    let before = IN_USE.load(Ordering::Relaxed);
    let bytes = || (IN_USE.load(Ordering::Relaxed) - before) / case.clients as usize;
    let plan = Plan::new(&scenario).expect("a scenario");
    let of_plan = bytes();
    let mut simulation = Simulation::of(plan, 1, ());
    let of_machine = bytes();
    let mut steps = |events: u64| {
        for _ in 0..events {
            simulation.step().expect("it goes on");
        }
        simulation.machine().counts()
    };
    let warm = steps(case.warm_up);
    let bytes_a_client = [of_plan, of_machine, bytes()];
    let start = cpu_seconds();
    let counts = steps(case.events);
    let seconds = cpu_seconds() - start;
    black_box(&simulation);
    Measured {
        events_a_second: case.events as f64 / seconds,
        turns_a_second: (counts.turns - warm.turns) as f64 / seconds,
        bytes_a_client,
    }
}
