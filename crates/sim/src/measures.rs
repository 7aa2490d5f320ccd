//! The measures of a simulated run: those of any engine, and queue lengths.

use prorata_scenario::event::{Event, Why};
use prorata_scenario::measure::{
    AbsoluteError, ClientMeasures, PointReport, RelativeError, RunMeasures, SlotMeasures,
};
use prorata_scenario::plan::client_id;

use crate::machine::Machine;
use crate::observer::Observer;

/// Measures a run.
#[derive(Debug, Default)]
pub struct Measures {
    pub(crate) run: RunMeasures,
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
        &self.run.clients
    }

    /// The time series, empty unless the scenario asks for one.
    pub fn series(&self) -> &[PointReport] {
        &self.run.series
    }

    /// Mean and largest number of threads that could run but had no CPU.
    pub fn queue_length(&self) -> (f64, u64) {
        self.queue.mean_and_longest()
    }

    /// By pool of CPUs; empty where they are one pool.
    pub fn pools(&self) -> &[PoolMeasures] {
        &self.pools
    }

    fn client(&mut self, client: u32) -> &mut ClientMeasures {
        &mut self.run.clients[client as usize]
    }

    fn turn_began(&mut self, client: u32, machine: &Machine) {
        let error = &mut self.client(client).absolute_error;
        look_at_client(error, client, machine);
        for pair in self.pairs_of(client) {
            look_at_pair(pair, machine);
        }
    }

    fn turn_ended(&mut self, now_ns: u64, client: u32, used_ns: u64, machine: &Machine) {
        let measures = self.client(client);
        look_at_client(&mut measures.absolute_error, client, machine);
        measures.end_turn(now_ns);
        for pair in self.pairs_of(client) {
            pair.count_turn(client, used_ns, machine.spec().quantum.0);
            look_at_pair(pair, machine);
        }
    }

    #[cold]
    fn look_at_slots(&mut self, now_ns: u64, event: Event<'_>, machine: &Machine) {
        let Some(slots) = &mut self.run.slots else {
            return;
        };
        slots.note(event);
        let exits = u32::from(matches!(
            event,
            Event::Left {
                why: Why::Exited,
                ..
            }
        ));
        let clients = match (event, event.client()) {
            (Event::Finished, _) => 0..machine.client_count(),
            (_, Some(client)) => client..client + 1,
            (_, None) => 0..0,
        };
        for client in clients {
            let runnable = machine.runnable_threads(client) - exits;
            let is_dark = runnable > 0 && machine.cpus_of(client) == 0;
            slots.look(now_ns, client, is_dark);
        }
        if let Event::SlotEnded { client, .. } = event {
            let error = &mut self.run.clients[client as usize].absolute_error;
            look_at_client(error, client, machine);
        }
        if event == Event::Finished {
            let conserved = machine.timetable().is_some_and(|table| table.audit());
            slots.tokens_conserved = conserved;
        }
    }

    fn pairs_of(&mut self, client: u32) -> impl Iterator<Item = &mut RelativeError> {
        let pairs = self.run.pairs.iter_mut();
        pairs.filter(move |pair| pair.clients.0 == client || pair.clients.1 == client)
    }

    fn mark(&mut self, now_ns: u64, machine: &Machine) {
        let received = (0..machine.client_count()).map(|client| machine.received_ns(client));
        self.run.mark(now_ns, received.collect());
    }

    fn sample(&mut self, now_ns: u64, machine: &Machine) {
        let usages = (0..machine.client_count())
            .map(|client| machine.dispatcher().usage(machine.client_id(client)));
        let (received_ns, specified_ns) = usages
            .map(|usage| (usage.received_ns, usage.specified_ns))
            .unzip();
        self.run.series.push(PointReport {
            time_ns: now_ns,
            received_ns,
            specified_ns,
            relative_errors: self.run.pairs.iter().map(|pair| pair.last).collect(),
            waiting_threads: Some(machine.waiting_threads()),
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
        if self.run.slots.is_some() {
            self.look_at_slots(now_ns, event, machine);
        }
        match event {
            Event::Began => {
                self.run = RunMeasures::new(machine.client_count(), machine.pairs());
                if machine.pool_count() > 1 {
                    self.pools
                        .resize(machine.pool_count() as usize, PoolMeasures::default());
                }
                if machine.timetable().is_some() {
                    let measures = SlotMeasures::new(machine.client_count());
                    self.run.slots = Some(Box::new(measures));
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
            _ => self.run.told.note(event),
        }
    }
}

fn look_at_client(error: &mut AbsoluteError, client: u32, machine: &Machine) {
    let usage = machine.dispatcher().usage(client_id(client));
    error.note(usage, machine.spec().quantum.0);
}

/// Reads the values of both, and whether both compete.
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
