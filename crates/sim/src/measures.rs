//! What is measured: service against the ideal, response times, latencies,
//! waiting at mutexes, switches, migrations and queue lengths.

use std::collections::BTreeMap;

use prorata_scenario::event::{Event, Why};
use prorata_scenario::measure::{AbsoluteError, RelativeError, Times, Told};
use prorata_scenario::plan::client_id;

use crate::machine::Machine;
use crate::observer::Observer;

/// Everything measured of one client.
#[derive(Clone, Default, Debug)]
pub struct ClientMeasures {
    /// Difference between service received and due.
    pub absolute_error: AbsoluteError,
    /// From the end of one turn up to and including the end of another
    /// (1995, 5.3).
    pub response_times: Times,
    /// From a wake, or a start, to the CPU.
    pub dispatch_latencies: Times,
    /// Turns that it had.
    pub turns: u64,
    /// Times that a thread of it began to wait or to sleep.
    pub blocks: u64,
    /// Times that a thread of it went on on another CPU.
    pub migrations: u64,
    last_turn_end_ns: Option<u64>,
}

/// A point of the time series.
#[derive(Clone, PartialEq, Debug)]
pub struct Point {
    /// When.
    pub time_ns: u64,
    /// By client: CPU time received, and due.
    pub service: Vec<(u64, u64)>,
    /// By pair: relative error in quanta.
    pub relative_errors: Vec<f64>,
    /// Threads that could run but had no CPU.
    pub waiting_threads: u64,
    /// The same by pool of CPUs; empty where they are one pool.
    pub waiting_in_pools: Vec<u64>,
}

/// Measures a run.
#[derive(Debug, Default)]
pub struct Measures {
    clients: Vec<ClientMeasures>,
    pairs: Vec<RelativeError>,
    told: Told,
    series: Vec<Point>,
    /// Service received by each client at the times that assertions speak of.
    marks: BTreeMap<u64, Vec<u64>>,
    /// By thread: woke and has had no CPU since.
    woken: Vec<bool>,
    queue: QueueLength,
    /// By pool, if there are several.
    pools: Vec<PoolMeasures>,
}

/// Everything measured of one pool of CPUs.
#[derive(Clone, Copy, Default, Debug)]
pub struct PoolMeasures {
    /// CPU time that its CPUs gave to threads.
    pub busy_ns: u64,
    queue: QueueLength,
}

impl PoolMeasures {
    /// Mean and largest number of its threads that could run but had no CPU.
    pub fn queue_length(&self) -> (f64, u64) {
        self.queue.mean_and_longest()
    }
}

/// Threads that can run but have no CPU, over time.
#[derive(Clone, Copy, Default, Debug)]
struct QueueLength {
    /// Sum over time.
    thread_ns: u128,
    since_ns: u64,
    now: u64,
    longest: u64,
}

impl QueueLength {
    fn look(&mut self, now_ns: u64, waiting: u64) {
        if now_ns > self.since_ns {
            self.thread_ns += u128::from(self.now) * u128::from(now_ns - self.since_ns);
            self.longest = self.longest.max(self.now);
            self.since_ns = now_ns;
        }
        self.now = waiting;
    }

    fn mean_and_longest(&self) -> (f64, u64) {
        let mean = self.thread_ns as f64 / self.since_ns.max(1) as f64;
        (mean, self.longest)
    }
}

impl Measures {
    /// Nothing measured yet.
    pub fn new() -> Measures {
        Measures::default()
    }

    /// By client.
    pub fn clients(&self) -> &[ClientMeasures] {
        &self.clients
    }

    /// The pairs that the scenario asks for.
    pub fn pairs(&self) -> &[RelativeError] {
        &self.pairs
    }

    /// Waits at mutexes and for services, and what the ledger refused.
    pub fn told(&self) -> &Told {
        &self.told
    }

    /// The time series, empty unless the scenario asks for one.
    pub fn series(&self) -> &[Point] {
        &self.series
    }

    /// Mean and largest number of threads that could run but had no CPU.
    pub fn queue_length(&self) -> (f64, u64) {
        self.queue.mean_and_longest()
    }

    /// By pool of CPUs; empty where they are one pool.
    pub fn pools(&self) -> &[PoolMeasures] {
        &self.pools
    }

    /// CPU time that a client had received at a time that an assertion speaks
    /// of, or at the end.
    pub fn received_ns_at(&self, time_ns: u64, client: u32) -> u64 {
        let at = self
            .marks
            .get(&time_ns)
            .and_then(|received| received.get(client as usize));
        at.copied().unwrap_or(0)
    }

    fn client(&mut self, client: u32) -> &mut ClientMeasures {
        let index = client as usize;
        if index >= self.clients.len() {
            self.clients.resize_with(index + 1, ClientMeasures::default);
        }
        &mut self.clients[index]
    }

    fn turn_began(&mut self, client: u32, machine: &Machine) {
        let error = &mut self.client(client).absolute_error;
        look_at_client(error, client, machine);
        for pair in &mut self.pairs {
            if pair.clients.0 == client || pair.clients.1 == client {
                look_at_pair(pair, machine);
            }
        }
    }

    fn turn_ended(&mut self, now_ns: u64, client: u32, used_ns: u64, machine: &Machine) {
        let measures = self.client(client);
        measures.turns += 1;
        look_at_client(&mut measures.absolute_error, client, machine);
        measures.absolute_error.count_turn();
        if let Some(last_ns) = measures.last_turn_end_ns.replace(now_ns) {
            measures.response_times.record(now_ns - last_ns);
        }
        for pair in &mut self.pairs {
            if pair.clients.0 == client || pair.clients.1 == client {
                pair.count_turn(client, used_ns, machine.spec().quantum.0);
                look_at_pair(pair, machine);
            }
        }
    }

    fn mark(&mut self, now_ns: u64, machine: &Machine) {
        let received = (0..machine.client_count()).map(|client| machine.received_ns(client));
        self.marks.insert(now_ns, received.collect());
    }

    fn sample(&mut self, now_ns: u64, machine: &Machine) {
        let service = (0..machine.client_count()).map(|client| {
            let usage = machine.dispatcher().usage(machine.client_id(client));
            (usage.received_ns, usage.specified_ns)
        });
        self.series.push(Point {
            time_ns: now_ns,
            service: service.collect(),
            relative_errors: self.pairs.iter().map(|pair| pair.last).collect(),
            waiting_threads: machine.waiting_threads(),
            waiting_in_pools: (0..self.pools.len() as u32)
                .map(|pool| machine.waiting_in(pool))
                .collect(),
        });
    }

    fn woke(&mut self, thread: u32) {
        let index = thread as usize;
        if index >= self.woken.len() {
            self.woken.resize(index + 1, false);
        }
        self.woken[index] = true;
    }
}

impl Observer for Measures {
    fn observe(&mut self, now_ns: u64, event: Event<'_>, machine: &Machine) {
        self.queue.look(now_ns, machine.waiting_threads());
        for (measures, pool) in self.pools.iter_mut().zip(0..) {
            measures.queue.look(now_ns, machine.waiting_in(pool));
        }
        match event {
            Event::Began => {
                self.clients
                    .resize_with(machine.client_count() as usize, ClientMeasures::default);
                self.pairs = machine
                    .pairs()
                    .iter()
                    .map(|pair| RelativeError::new(*pair))
                    .collect();
                if machine.pool_count() > 1 {
                    self.pools
                        .resize(machine.pool_count() as usize, PoolMeasures::default());
                }
                self.mark(now_ns, machine);
            }
            Event::Ran {
                client, used_ns, ..
            } => {
                let pool = machine.pool_of(client) as usize;
                if let Some(measures) = self.pools.get_mut(pool) {
                    measures.busy_ns += used_ns;
                }
            }
            Event::Ready { thread, .. } => self.woke(thread),
            Event::TurnBegan { client } => self.turn_began(client, machine),
            Event::TurnEnded { client, used_ns } => {
                self.turn_ended(now_ns, client, used_ns, machine);
            }
            Event::Dispatched {
                client,
                thread,
                start_ns,
                ready_ns,
                migrated,
                ..
            } => {
                let woke = std::mem::take(&mut self.woken[thread as usize]);
                let measures = self.client(client);
                measures.migrations += u64::from(migrated);
                if woke {
                    measures.dispatch_latencies.record(start_ns - ready_ns);
                }
            }
            Event::Left {
                client,
                why: Why::Sleeps | Why::Waits | Why::WaitsForMutex,
                ..
            } => self.client(client).blocks += 1,
            Event::Sample => self.sample(now_ns, machine),
            Event::Mark | Event::Finished => self.mark(now_ns, machine),
            _ => self.told.note(event),
        }
    }
}

fn look_at_client(error: &mut AbsoluteError, client: u32, machine: &Machine) {
    let usage = machine.dispatcher().usage(client_id(client));
    error.note(usage, machine.spec().quantum.0);
}

/// Reads what both are worth, if both compete.
fn look_at_pair(pair: &mut RelativeError, machine: &Machine) {
    let (first, second) = pair.clients;
    if machine.pool_of(first) != machine.pool_of(second) {
        pair.apart();
        return;
    }
    let ledger = machine.dispatcher().ledger();
    let value = |client| ledger.value(client_id(client)).to_f64();
    let both_compete = machine.runnable_threads(first) > 0 && machine.runnable_threads(second) > 0;
    pair.note(value(first), value(second), both_compete);
}
