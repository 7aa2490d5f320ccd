//! Checks that real processes can run a scenario, before any process starts. Errors name
//! the place in the file.

use prorata_core::policy::PolicyName;
use prorata_scenario::Scenario;
use prorata_scenario::file::slots::Claim;
use prorata_scenario::file::{Action, KeyPath, MutexKind, Problem, ScenarioError, Step, Time};

use crate::engine::ProcessEngine;
use crate::stage::own_cpus;

const NICE: &str = "nice values are simulated: leave them out, or use --engine sim";

type Result<T> = std::result::Result<T, ScenarioError>;

/// Refuses scenarios that the engine cannot run on this machine.
///
/// # Errors
///
/// The first thing that it cannot do, with its place.
pub fn check(scenario: &Scenario, kind: &ProcessEngine) -> Result<()> {
    let root = KeyPath::default();
    check_machine(scenario, kind, &root.key("machine"))?;
    check_number(scenario, kind, &root.key("client"))?;
    check_slots(scenario, &root)?;
    for (i, client) in scenario.clients.iter().enumerate() {
        let place = root.key("client").index(i);
        if client.nice != 0 {
            return Err(place.key("nice").problem(Problem::Step(NICE)));
        }
    }
    for (i, at) in scenario.timeline.iter().enumerate() {
        let place = root.key("at").index(i).key("do");
        match &at.action {
            Action::Policy(policy) => check_policy(*policy, kind, &place.key("policy"))?,
            Action::Quantum(quantum) => check_quantum(*quantum, kind, &place.key("quantum"))?,
            Action::Claim(claim) => check_claim(claim, &place.key("claim"))?,
            Action::SetNice(_) => {
                return Err(place.key("set-nice").problem(Problem::Step(NICE)));
            }
            _ => {}
        }
    }
    for (name, program) in &scenario.programs {
        let place = root.key("program").key(name).key("steps");
        check_steps(&program.steps, kind, &place)?;
    }
    for (name, mutex) in &scenario.mutexes {
        if mutex.kernel {
            return Err(root
                .key("mutex")
                .key(name)
                .key("kernel")
                .problem(Problem::Step(
                    "a lock of the kernel is simulated: leave the key out, or use --engine sim",
                )));
        }
    }
    if kind.sees_yields {
        return Ok(());
    }
    for (name, mutex) in &scenario.mutexes {
        if mutex.kind == MutexKind::Lottery && !mutex.keeps_cpu {
            return Err(root.key("mutex").key(name).problem(Problem::Step(
                "this engine cannot see the releasing thread yield the CPU: say keeps-cpu = true",
            )));
        }
    }
    Ok(())
}

/// All processes of a run are one user's, and the numbers of their threads are the scenario's own.
fn check_slots(scenario: &Scenario, root: &KeyPath) -> Result<()> {
    let is_another = |user| user != 0;
    let mut users = scenario.clients.iter().map(|client| client.user);
    if let Some(i) = users.position(is_another)
        && scenario.slots.is_some()
    {
        let place = root.key("client").index(i).key("user");
        return Err(place.problem(Problem::Step(
            "users beside a timetable are simulated: leave the key out, or use --engine sim",
        )));
    }
    let places = (0..).map(|i| root.key("claim").index(i));
    let mut claims = scenario.claims.iter().zip(places);
    claims.try_for_each(|(claim, place)| check_claim(claim, &place))
}

fn check_claim(claim: &Claim, place: &KeyPath) -> Result<()> {
    match claim.thread {
        None => Ok(()),
        Some(_) => Err(place.key("thread").problem(Problem::Step(
            "slots of one thread are simulated: leave the key out, or use --engine sim",
        ))),
    }
}

fn check_machine(scenario: &Scenario, kind: &ProcessEngine, place: &KeyPath) -> Result<()> {
    let machine = &scenario.machine;
    // Where the CPUs cannot be found out, the run says so.
    let usable = own_cpus().map_or(u32::MAX, |cpus| cpus.len() as u32);
    if machine.cpus > usable {
        return Err(place.key("cpus").problem(Problem::Range {
            what: "cpus",
            is: machine.cpus.to_string(),
            low: "1".to_owned(),
            high: format!("{usable}, as many as this process may use"),
        }));
    }
    if !machine.pools.is_empty() {
        return Err(place.key("pools").problem(Problem::Step(
            "pools of CPUs are for the simulator: leave them out, or use --engine sim",
        )));
    }
    let costs = &machine.costs;
    let simulated = [costs.context_switch, costs.cache_refill, costs.interrupt];
    if simulated.iter().any(|cost| *cost > Time::ZERO) {
        return Err(place.key("costs").problem(Problem::Step(
            "costs are simulated, a real machine has its own: leave them out, or use --engine sim",
        )));
    }
    if !machine.hybrid.is_off() {
        return Err(place.key("hybrid").problem(Problem::Step(
            "hybrid scheduling is simulated: leave it out, or use --engine sim",
        )));
    }
    check_policy(machine.policy, kind, &place.key("policy"))?;
    check_quantum(machine.quantum, kind, &place.key("quantum"))
}

fn check_policy(policy: PolicyName, kind: &ProcessEngine, place: &KeyPath) -> Result<()> {
    if kind.policies.contains(&policy) {
        return Ok(());
    }
    let known: Vec<String> = kind.policies.iter().map(ToString::to_string).collect();
    Err(place.problem(Problem::Unknown {
        kind: "policy of this engine",
        name: policy.to_string(),
        fix: format!("name one of {}, or use --engine sim", known.join(", ")),
    }))
}

fn check_quantum(quantum: Time, kind: &ProcessEngine, place: &KeyPath) -> Result<()> {
    if kind.quanta_ns.contains(&quantum.0) {
        return Ok(());
    }
    Err(place.problem(Problem::Range {
        what: "quantum",
        is: quantum.to_string(),
        low: Time(*kind.quanta_ns.start()).to_string(),
        high: format!("{}, for this engine", Time(*kind.quanta_ns.end())),
    }))
}

fn check_number(scenario: &Scenario, kind: &ProcessEngine, place: &KeyPath) -> Result<()> {
    let mut clients = 0;
    for (i, client) in scenario.clients.iter().enumerate() {
        clients += client.count.unwrap_or(1);
        if clients > kind.most_clients {
            return Err(place.index(i).problem(Problem::Range {
                what: "the number of clients",
                is: clients.to_string(),
                low: "1".to_owned(),
                high: format!("{}, as each is a process", kind.most_clients),
            }));
        }
    }
    Ok(())
}

fn check_steps(steps: &[Step], kind: &ProcessEngine, place: &KeyPath) -> Result<()> {
    for (i, step) in steps.iter().enumerate() {
        let place = place.index(i);
        match step {
            Step::Block(_) => {
                return Err(place.key("block").problem(Problem::Step(
                    "a sleep in the kernel is simulated: write sleep, or use --engine sim",
                )));
            }
            Step::Yield if !kind.sees_yields => {
                return Err(place.problem(Problem::Step(
                    "this engine cannot see a thread yield: leave it out, or sleep",
                )));
            }
            Step::Serve(serve) => {
                check_steps(&serve.steps, kind, &place.key("serve").key("steps"))?
            }
            Step::Loop(repeat) => {
                if repeat.until.is_some() {
                    return Err(place.key("loop").key("until").problem(Problem::Step(
                        "a loop with a time is simulated: say how often, or use --engine sim",
                    )));
                }
                check_steps(&repeat.steps, kind, &place.key("loop").key("steps"))?
            }
            _ => {}
        }
    }
    Ok(())
}
