//! The CPUs that a client may use.

use prorata_core::affinity::Affinity;

use super::limits;
use crate::file::{Client, KeyPath, MachineSpec, Problem, ScenarioError};

/// The affinity of a client, at a place of the file; none if it may use all CPUs.
pub(super) fn affinity(
    client: &Client,
    machine: &MachineSpec,
    place: &KeyPath,
) -> Result<Option<Affinity>, ScenarioError> {
    let Some(cpus) = &client.cpus else {
        return Ok(None);
    };
    let place = place.key("cpus");
    if cpus.is_empty() {
        return Err(place.problem(Problem::Step(
            "the client has no CPU to run on: name at least one, or leave cpus out",
        )));
    }
    if !machine.pools.is_empty() {
        return Err(place.problem(Problem::Step(
            "a pool says which CPUs its clients use: say pool instead, or leave machine.pools out",
        )));
    }
    for (i, &cpu) in cpus.iter().enumerate() {
        let highest = machine.cpus - 1;
        limits::within("the number of a CPU", cpu, 0, highest, &place.index(i))?;
    }
    Ok(Some(cpus.iter().copied().collect()))
}
