//! How fast the simulator is, and how much memory a client takes: on one core,
//! with nobody watching.

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

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

fn main() {
    let busy = || vec![Step::Compute(time(1000))];
    let sleepy = || vec![Step::Compute(exponential(5)), Step::Sleep(exponential(50))];
    for (cpus, clients, warm, events) in [
        (8, 1000, 1 << 16, 1 << 20),
        (1024, 1_000_000, 1 << 21, 1 << 21),
    ] {
        for (what, steps) in [("busy", busy()), ("sleepy", sleepy())] {
            for policy in [
                PolicyName::Stride,
                PolicyName::Lottery,
                PolicyName::ClassLottery,
            ] {
                let before = IN_USE.load(Ordering::Relaxed);
                let mut simulation =
                    Simulation::new(&scenario(cpus, clients, policy, steps.clone()), 1).unwrap();
                for _ in 0..warm {
                    simulation.step().unwrap();
                }
                let bytes = IN_USE.load(Ordering::Relaxed) - before;
                let start = Instant::now();
                for _ in 0..events {
                    simulation.step().unwrap();
                }
                let took = start.elapsed();
                black_box(&simulation);
                println!(
                    "{cpus} {clients} {what} {policy:?}: {:.2} M events/s, {} bytes a client, idle {}",
                    events as f64 / took.as_secs_f64() / 1e6,
                    bytes / clients as usize,
                    simulation.machine().counts().idle_ns
                );
            }
        }
    }
}
