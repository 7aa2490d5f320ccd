//! Random scenarios in which every client can always progress. Mutexes are locked in one
//! order, and their holders wait for nothing else. Servers make no calls. Messages and
//! signals come from clients that send for ever.

use std::collections::BTreeMap;

use prorata_core::policy::PolicyName;
use prorata_core::rng::{Xoshiro256PlusPlus, below};
use prorata_scenario::file::{
    Amount, BASE, Block, Client, Costs, Currency, Distribution, Hybrid, Loop, MachineSpec, Measure,
    Mutex, MutexKind, Normal, Pipe, Pool, Program, Quanta, RandomRule, Resource, Rule, Scenario,
    Serve, Step, Tickets, Time, Trace, Varying,
};

use super::slots;

type Lots = Xoshiro256PlusPlus;

/// Most clients of a scenario.
pub(super) const MAX_CLIENTS: usize = 9;

const MUTEXES: [&str; 3] = ["m0", "m1", "m2"];
const PIPE: &str = "pipe";
const SERVICE: &str = "service";
const SIGNAL: &str = "signal";
const JOB: &str = "job";

/// A random scenario, longer than any trial.
pub fn scenario(lots: &mut Xoshiro256PlusPlus) -> Scenario {
    let machine = machine(lots);
    let currencies = currencies(lots);
    let mut programs = BTreeMap::new();
    programs.insert(
        JOB.to_owned(),
        Program {
            steps: vec![Step::Compute(duration(lots, 300))],
        },
    );
    // Programs that others rely on come first.
    let mut bodies = vec![
        vec![
            Step::Sleep(duration(lots, 3000)),
            Step::Signal(SIGNAL.to_owned()),
        ],
        vec![Step::Serve(Serve {
            service: SERVICE.to_owned(),
            steps: inner(lots),
        })],
        vec![
            Step::Compute(duration(lots, 500)),
            Step::Call(SERVICE.to_owned()),
        ],
        vec![
            Step::Compute(duration(lots, 500)),
            Step::Send(PIPE.to_owned()),
        ],
        vec![
            Step::Receive(PIPE.to_owned()),
            Step::Compute(duration(lots, 500)),
        ],
    ];
    for _ in 0..1 + below(lots, (MAX_CLIENTS - bodies.len()) as u64) {
        bodies.push(body(lots));
    }
    let mut clients = Vec::new();
    for (i, mut steps) in bodies.into_iter().enumerate() {
        // Whatever else it does, it uses CPU time now and then.
        steps.push(Step::Compute(duration(lots, 1000)));
        let program = format!("p{i}");
        let steps = vec![Step::Loop(Loop {
            times: None,
            until: None,
            chance: None,
            steps,
        })];
        programs.insert(program.clone(), Program { steps });
        clients.push(Client {
            user: 0,
            name: format!("client{i}"),
            count: None,
            tickets: tickets(lots, &currencies),
            program,
            start: Time(below(lots, 20_000_000)),
            pool: pick(lots, &machine.pools)
                .map(|pool| pool.name)
                .filter(|_| below(lots, 2) == 0),
            max: None,
            nice: 0,
            cpus: cpus(lots, &machine),
        });
    }
    let mut scenario = Scenario {
        slots: None,
        claims: Vec::new(),
        title: "A trial".to_owned(),
        duration: Time::from_secs(100),
        seed: 0,
        machine,
        currencies,
        clients,
        programs,
        mutexes: mutexes(lots),
        pipes: [(
            PIPE.to_owned(),
            Pipe {
                capacity: 1 + below(lots, 3) as u32,
            },
        )]
        .into(),
        timeline: Vec::new(),
        // An event happens even where all clients have stopped.
        measure: Measure {
            every: Some(Time::from_ms(7)),
            pairs: Vec::new(),
        },
        assertions: Vec::new(),
        reproduces: None,
    };
    slots::add_timetable(&mut scenario, lots);
    scenario
}

fn machine(lots: &mut Lots) -> MachineSpec {
    let cost = |lots: &mut Lots| Time(below(lots, 2) * below(lots, 20_000));
    let pools = pools(lots);
    let cpus = match pools.len() {
        0 => 1 + below(lots, 4) as u32,
        _ => pools.iter().map(|pool| pool.cpus).sum(),
    };
    MachineSpec {
        cpus,
        pools,
        quantum: quantum(lots),
        quanta: pick(lots, &[Quanta::Own, Quanta::Aligned]).unwrap_or_default(),
        policy: policy(lots),
        costs: Costs {
            context_switch: cost(lots),
            cache_refill: cost(lots),
            interrupt: cost(lots),
        },
        hybrid: hybrid(lots),
    }
}

/// In half of the machines each mechanism is in force by chance.
fn hybrid(lots: &mut Lots) -> Hybrid {
    let is_on = below(lots, 2) > 0;
    let mut mechanism = || is_on && below(lots, 2) > 0;
    Hybrid {
        kernel_priorities: mechanism(),
        abbreviated_quanta: mechanism(),
        ticket_boost: mechanism(),
        as_printed: false,
        nice: false,
    }
}

/// Two or three pools of one or two CPUs, or none.
fn pools(lots: &mut Lots) -> Vec<Pool> {
    let count = below(lots, 2) * (2 + below(lots, 2));
    let pools = (0..count).map(|i| Pool {
        name: format!("pool{i}"),
        cpus: 1 + below(lots, 2) as u32,
    });
    pools.collect()
}

/// One in four clients may use only some CPUs, where there are no pools.
fn cpus(lots: &mut Lots, machine: &MachineSpec) -> Option<Vec<u32>> {
    if !machine.pools.is_empty() || below(lots, 4) > 0 {
        return None;
    }
    let mut cpus: Vec<u32> = (0..machine.cpus).filter(|_| below(lots, 2) > 0).collect();
    if cpus.is_empty() {
        cpus.push(below(lots, machine.cpus.into()) as u32);
    }
    Some(cpus)
}

/// A quantum from one to ten milliseconds.
pub(super) fn quantum(lots: &mut Lots) -> Time {
    Time::from_ms(1 + below(lots, 10))
}

pub(super) fn policy(lots: &mut Lots) -> PolicyName {
    let all = [
        PolicyName::Stride,
        PolicyName::HierarchicalStride,
        PolicyName::Lottery,
        PolicyName::ListLottery,
        PolicyName::TreeLottery,
        PolicyName::ClassLottery,
        PolicyName::Eevdf,
    ];
    pick(lots, &all).unwrap_or_default()
}

pub(super) fn pick<T: Clone>(lots: &mut Lots, of: &[T]) -> Option<T> {
    (!of.is_empty()).then(|| of[below(lots, of.len() as u64) as usize].clone())
}

/// Each currency is backed by the base currency or by earlier ones.
fn currencies(lots: &mut Lots) -> Vec<Currency> {
    let mut currencies: Vec<Currency> = Vec::new();
    for i in 0..below(lots, 4) {
        let backers = (0..=below(lots, 2)).map(|_| amount(lots, &currencies));
        let tickets = distinct(backers.collect());
        currencies.push(Currency {
            count: None,
            name: format!("currency{i}"),
            tickets,
        });
    }
    currencies
}

fn amount(lots: &mut Lots, currencies: &[Currency]) -> Amount {
    let place = below(lots, currencies.len() as u64 + 1) as usize;
    Amount {
        amount: 1 + below(lots, 1000) as u32,
        currency: currencies
            .get(place)
            .map_or(BASE.to_owned(), |currency| currency.name.clone()),
    }
}

fn distinct(mut amounts: Vec<Amount>) -> Vec<Amount> {
    amounts.sort_by(|a, b| a.currency.cmp(&b.currency));
    amounts.dedup_by(|a, b| a.currency == b.currency);
    amounts
}

fn tickets(lots: &mut Lots, currencies: &[Currency]) -> Tickets {
    if below(lots, 6) > 0 {
        let held = (0..below(lots, 3)).map(|_| amount(lots, currencies));
        return Tickets::Fixed(distinct(held.collect()));
    }
    let Amount { amount, currency } = amount(lots, currencies);
    Tickets::Ruled(Rule::Random(RandomRule {
        between: (1, amount),
        every: Time::from_ms(1 + below(lots, 30)),
        currency,
    }))
}

fn mutexes(lots: &mut Lots) -> BTreeMap<String, Mutex> {
    let mutexes = MUTEXES.iter().map(|name| {
        let kind = pick(lots, &[MutexKind::Fifo, MutexKind::Lottery]).unwrap_or_default();
        let mutex = Mutex {
            kind,
            keeps_cpu: false,
            kernel: below(lots, 2) > 0,
        };
        ((*name).to_owned(), mutex)
    });
    mutexes.collect()
}

/// A sleep, in the kernel or not.
fn sleep(lots: &mut Lots) -> Step {
    let time = duration(lots, 10_000);
    match pick(lots, &[Resource::Lock, Resource::Disk, Resource::Other]) {
        Some(resource) if below(lots, 2) > 0 => Step::Block(Block { time, resource }),
        _ => Step::Sleep(time),
    }
}

/// A few steps of a program on which no other relies.
fn body(lots: &mut Lots) -> Vec<Step> {
    let mut steps = Vec::new();
    for _ in 0..1 + below(lots, 3) {
        match below(lots, 8) {
            0 => steps.push(sleep(lots)),
            1 => steps.push(Step::Call(SERVICE.to_owned())),
            2 => steps.push(Step::Wait(SIGNAL.to_owned())),
            3 => steps.push(Step::Yield),
            // A client that sleeps between forks can always afford its jobs.
            4 => steps.extend([
                Step::Fork(JOB.to_owned()),
                Step::Sleep(duration(lots, 20_000)),
            ]),
            5 => steps.push(Step::Loop(Loop {
                times: Some(1 + below(lots, 3) as u32),
                until: None,
                chance: None,
                steps: inner(lots),
            })),
            _ => steps.extend(inner(lots)),
        }
    }
    steps
}

/// Steps that wait for nothing but mutexes: computing, perhaps with some
/// locked.
fn inner(lots: &mut Lots) -> Vec<Step> {
    let locked: Vec<&str> = MUTEXES
        .into_iter()
        .filter(|_| below(lots, 4) == 0)
        .collect();
    let step = |name: &&str, step: fn(String) -> Step| step((*name).to_owned());
    let mut steps: Vec<Step> = locked.iter().map(|name| step(name, Step::Lock)).collect();
    steps.push(Step::Compute(duration(lots, 2000)));
    steps.extend(locked.iter().rev().map(|name| step(name, Step::Unlock)));
    steps
}

/// Of every kind, `us` microseconds or so.
fn duration(lots: &mut Lots, us: u64) -> Distribution {
    let time = |lots: &mut Lots| Time(1000 * (1 + below(lots, us)));
    let varying = match below(lots, 5) {
        0 => return Distribution::Fixed(time(lots)),
        1 => {
            let (a, b) = (time(lots), time(lots));
            Varying::Uniform(a.min(b), a.max(b))
        }
        2 => Varying::Exponential(time(lots)),
        3 => Varying::Normal(Normal {
            mean: time(lots),
            deviation: time(lots),
        }),
        _ => Varying::Trace(Trace::Times((0..3).map(|_| time(lots)).collect())),
    };
    Distribution::Varying(varying)
}
