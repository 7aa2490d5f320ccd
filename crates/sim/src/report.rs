//! A simulated run in figures.

use std::ops::Range;

use prorata_scenario::measure::{
    ClientReport, Measured, PairReport, PointReport, PoolReport, RelativeError, Times, judge,
};
use prorata_scenario::{Report, Scenario};

use crate::machine::Machine;
use crate::measures::Measures;

/// The figures of a run that is over.
pub fn report(scenario: &Scenario, seed: u64, machine: &Machine, measures: &Measures) -> Report {
    let (mean_waiting_threads, most_waiting_threads) = measures.queue_length();
    let told = measures.told();
    let client_name = |client| machine.client_name(client).into_owned();
    Report {
        title: scenario.title.clone(),
        engine: "sim",
        mechanism: None,
        took_ns: None,
        seed,
        duration_ns: machine.now_ns(),
        cpus: machine.spec().cpus,
        quantum_ns: machine.spec().quantum.0,
        policy: machine.spec().policy,
        counts: Some(machine.counts()),
        mean_waiting_threads: Some(mean_waiting_threads),
        most_waiting_threads: Some(most_waiting_threads),
        pools: pools(machine, measures),
        clients: clients(machine, measures),
        pairs: pairs(machine, measures),
        mutexes: told.mutexes(machine.mutex_names(), client_name),
        services: told.services(machine.service_names(), client_name),
        series: series(measures),
        refused: told.refused().to_vec(),
        verdicts: judge(scenario, &Simulated { machine, measures }),
    }
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

/// A simulation, which measures everything.
struct Simulated<'a> {
    machine: &'a Machine,
    measures: &'a Measures,
}

impl Measured for Simulated<'_> {
    fn find_clients(&self, name: &str) -> Option<Range<u32>> {
        self.machine.find_clients(name)
    }

    fn client_count(&self) -> u32 {
        self.machine.client_count()
    }

    fn received_ns_at(&self, time_ns: u64, client: u32) -> u64 {
        self.measures.received_ns_at(time_ns, client)
    }

    fn absolute_error(&self, client: u32) -> Option<f64> {
        Some(
            self.measures.clients()[client as usize]
                .absolute_error
                .largest,
        )
    }

    fn relative_errors(&self) -> Option<&[RelativeError]> {
        Some(self.measures.pairs())
    }

    fn dispatch_latencies(&self, client: u32) -> Option<&Times> {
        Some(&self.measures.clients()[client as usize].dispatch_latencies)
    }

    fn response_times(&self, client: u32) -> Option<&Times> {
        Some(&self.measures.clients()[client as usize].response_times)
    }

    fn conserves(&self) -> Option<bool> {
        Some(self.machine.check().is_ok())
    }
}

fn clients(machine: &Machine, measures: &Measures) -> Vec<ClientReport> {
    let busy_ns = machine.counts().busy_ns.max(1);
    let clients = measures.clients().iter().zip(0..);
    let clients = clients.map(|(measured, client)| {
        let usage = machine.dispatcher().usage(machine.client_id(client));
        ClientReport {
            name: machine.client_name(client).into_owned(),
            pool: (machine.pool_count() > 1)
                .then(|| machine.pool_name(machine.pool_of(client)).to_owned()),
            received_ns: usage.received_ns,
            specified_ns: usage.specified_ns,
            share: usage.received_ns as f64 / busy_ns as f64,
            largest_error: measured.absolute_error.largest,
            mean_error: Some(measured.absolute_error.mean()),
            turns: Some(measured.turns),
            blocks: Some(measured.blocks),
            migrations: Some(measured.migrations),
            response_time: measured.response_times.summary(),
            response_time_buckets: measured.response_times.histogram(),
            dispatch_latency: measured.dispatch_latencies.summary(),
            dispatch_latency_buckets: measured.dispatch_latencies.histogram(),
        }
    });
    clients.collect()
}

fn pairs(machine: &Machine, measures: &Measures) -> Vec<PairReport> {
    let name = |client| machine.client_name(client).into_owned();
    let pairs = measures.pairs().iter().map(|pair| PairReport {
        clients: (name(pair.clients.0), name(pair.clients.1)),
        largest_error: pair.largest,
    });
    pairs.collect()
}

/// Times by client, of one mutex or service.
fn series(measures: &Measures) -> Vec<PointReport> {
    let points = measures.series().iter().map(|point| PointReport {
        time_ns: point.time_ns,
        received_ns: point.service.iter().map(|service| service.0).collect(),
        specified_ns: point.service.iter().map(|service| service.1).collect(),
        relative_errors: point.relative_errors.clone(),
        waiting_threads: Some(point.waiting_threads),
        waiting_in_pools: point.waiting_in_pools.clone(),
    });
    points.collect()
}
