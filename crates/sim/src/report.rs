//! A simulated run in figures.

use prorata_scenario::measure::{PoolReport, Ran};
use prorata_scenario::{Report, Scenario};

use crate::machine::Machine;
use crate::measures::Measures;

/// The figures of a run that is over.
pub fn report(scenario: &Scenario, seed: u64, machine: &Machine, measures: &Measures) -> Report {
    let (mean_waiting_threads, most_waiting_threads) = measures.queue_length();
    let usages = (0..machine.client_count())
        .map(|client| machine.dispatcher().usage(machine.client_id(client)));
    let (groups, objects) = machine.parts();
    let ran = Ran {
        scenario,
        engine: "sim",
        seed,
        duration_ns: machine.now_ns(),
        cpus: machine.spec().cpus,
        quantum_ns: machine.spec().quantum.0,
        policy: machine.spec().policy,
        groups,
        objects,
        measures: &measures.run,
        sees_turns: true,
        service_ns: usages
            .map(|usage| (usage.received_ns, usage.specified_ns))
            .collect(),
        conserves: &|| machine.check().is_ok(),
    };
    let mut report = Report {
        counts: Some(machine.counts()),
        mean_waiting_threads: Some(mean_waiting_threads),
        most_waiting_threads: Some(most_waiting_threads),
        pools: pools(machine, measures),
        ..ran.report()
    };
    if machine.timetable().is_some() {
        for (client, number) in report.clients.iter_mut().zip(0..) {
            let usage = machine.dispatcher().usage(machine.client_id(number));
            client.in_slots_ns = Some(usage.in_slots_ns);
            client.uncharged_ns = Some(usage.uncharged_ns);
        }
    }
    if machine.pool_count() > 1 {
        for (client, number) in report.clients.iter_mut().zip(0..) {
            client.pool = Some(machine.pool_name(machine.pool_of(number)).to_owned());
        }
    }
    report
}

fn pools(machine: &Machine, measures: &Measures) -> Vec<PoolReport> {
    let mut members = vec![0; machine.pool_count() as usize];
    (0..machine.client_count()).for_each(|c| members[machine.pool_of(c) as usize] += 1);
    let pools = measures.pools().iter().zip(0..);
    let pools = pools.map(|(measured, pool)| {
        let (mean_waiting_threads, most_waiting_threads) = measured.queue_length();
        PoolReport {
            name: machine.pool_name(pool).to_owned(),
            cpus: machine.pool_cpus(pool).len() as u32,
            clients: members[pool as usize],
            busy_ns: measured.busy_ns,
            mean_waiting_threads,
            most_waiting_threads,
        }
    });
    pools.collect()
}
