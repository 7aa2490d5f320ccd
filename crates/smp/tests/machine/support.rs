//! Scenarios and machines of the tests.

use std::path::Path;

use prorata_scenario::Scenario;
use prorata_smp::{LayoutName, MachineModel, SchedulerCosts, SmpSimulation, WritersWake};

pub const LAYOUTS: [LayoutName; 7] = [
    LayoutName::GlobalList,
    LayoutName::PriorityLevels,
    LayoutName::MultiQueue,
    LayoutName::MultiQueueTournament,
    LayoutName::LocalQueues,
    LayoutName::Pools(2),
    LayoutName::PoolsTournament(2),
];

pub fn scenario(text: &str) -> Scenario {
    let text = format!("title = \"t\"\nduration = \"1s\"\n{text}");
    Scenario::parse(Path::new("test.toml"), text).unwrap_or_else(|error| panic!("{error}"))
}

pub fn machine(cpus: u32, layout: LayoutName, costs: SchedulerCosts) -> MachineModel {
    MachineModel {
        cpus,
        layout,
        costs,
        topology: None,
        writers: WritersWake::default(),
    }
}

pub fn usual(cpus: u32, layout: LayoutName) -> MachineModel {
    machine(cpus, layout, SchedulerCosts::default())
}

pub fn start(scenario: &Scenario, machine: &MachineModel) -> SmpSimulation {
    SmpSimulation::new(scenario, machine, 2001).unwrap_or_else(|error| panic!("{error}"))
}
