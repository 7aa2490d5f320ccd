//! The programs that the 2001 paper measures schedulers with, as scenarios.

mod build;
mod chat;
mod queries;
mod reflex;

use std::collections::BTreeMap;

use prorata_scenario::Scenario;
use prorata_scenario::file::{Client, Loop, MachineSpec, Measure, Program, Step, Tickets, Time};

pub use build::Build;
pub use chat::{Chat, Preparation, Socket, SocketBuffer};
pub use queries::DecisionSupport;
pub use reflex::Reflex;

/// The longest time that a program may run.
const LONGEST: Time = Time::from_secs(3600);

/// A scenario without programs, pipes and mutexes.
fn empty(title: &str) -> Scenario {
    Scenario {
        title: title.to_owned(),
        duration: LONGEST,
        seed: 0,
        machine: MachineSpec::default(),
        currencies: Vec::new(),
        clients: Vec::new(),
        programs: BTreeMap::new(),
        mutexes: BTreeMap::new(),
        pipes: BTreeMap::new(),
        slots: None,
        claims: Vec::new(),
        timeline: Vec::new(),
        measure: Measure::default(),
        assertions: Vec::new(),
        reproduces: None,
    }
}

/// Adds a process whose first thread starts all others and ends.
fn add_process(scenario: &mut Scenario, name: &str, threads: Vec<(String, Vec<Step>)>) {
    let mut steps = Vec::new();
    for (name, program) in threads {
        steps.push(Step::Fork(name.clone()));
        scenario.programs.insert(name, Program { steps: program });
    }
    add_main_thread(scenario, name, steps);
}

/// Adds a process whose first thread does this.
fn add_main_thread(scenario: &mut Scenario, name: &str, steps: Vec<Step>) {
    scenario.programs.insert(name.to_owned(), Program { steps });
    scenario.clients.push(client(name, None));
}

fn client(name: &str, count: Option<u32>) -> Client {
    Client {
        name: name.to_owned(),
        count,
        tickets: Tickets::default(),
        program: name.to_owned(),
        start: Time::ZERO,
        pool: None,
        max: None,
        nice: 0,
        user: 0,
        cpus: None,
    }
}

/// A loop of so many times, or without end.
fn repeat(times: Option<u32>, steps: Vec<Step>) -> Step {
    Step::Loop(Loop {
        times,
        chance: None,
        until: None,
        steps,
    })
}
