//! The measures of real processes: their CPU clocks, their dues by the engine's account,
//! and the waits of their threads.

use prorata_core::dispatcher::{Dispatcher, Usage};
use prorata_scenario::measure::{PointReport, RunMeasures, check_value};
use prorata_scenario::plan::client_id;

/// Measures a run, look by look.
#[derive(Debug)]
pub(super) struct Looks {
    pub(super) run: RunMeasures,
    /// At the last look: by the processes' clocks.
    received_ns: Vec<u64>,
    /// At the last look: by the engine's account.
    usages: Vec<Usage>,
    /// No value has come or gone, nor, in the end, any CPU time.
    pub(super) conserves: bool,
}

impl Looks {
    pub(super) fn new(clients: u32, pairs: &[(u32, u32)]) -> Looks {
        let mut run = RunMeasures::new(clients, pairs);
        let received_ns = vec![0; clients as usize];
        run.mark(0, received_ns.clone());
        Looks {
            run,
            received_ns,
            usages: Vec::new(),
            conserves: true,
        }
    }

    /// Looks at what each client has received and is due. Errors are the largest of all
    /// looks; errors between two looks go unseen.
    pub(super) fn look(
        &mut self,
        received_ns: &[u64],
        usages: Vec<Usage>,
        dispatcher: &Dispatcher,
    ) {
        let quantum_ns = dispatcher.quantum_ns();
        for (client, usage) in self.run.clients.iter_mut().zip(&usages) {
            client.absolute_error.note(*usage, quantum_ns);
        }
        self.usages = usages;
        let ledger = dispatcher.ledger();
        for pair in &mut self.run.pairs {
            let (first, second) = pair.clients;
            for client in [first, second] {
                let index = client as usize;
                let used_ns = received_ns[index] - self.received_ns[index];
                pair.count_turn(client, used_ns, quantum_ns);
            }
            let value = |client| ledger.value(client_id(client)).to_f64();
            let (first, second) = (value(first), value(second));
            pair.note(first, second, first > 0.0 && second > 0.0);
        }
        self.conserves &= check_value(ledger, received_ns.len() as u32).is_ok();
        self.received_ns.copy_from_slice(received_ns);
    }

    /// A time that an assertion names has come.
    pub(super) fn mark(&mut self, time_ns: u64) {
        self.run.mark(time_ns, self.received_ns.clone());
    }

    pub(super) fn sample(&mut self, time_ns: u64) -> &PointReport {
        let specified = self.usages.iter().map(|usage| usage.specified_ns);
        self.run.series.push(PointReport {
            time_ns,
            received_ns: self.received_ns.clone(),
            specified_ns: specified.collect(),
            relative_errors: self.run.pairs.iter().map(|pair| pair.last).collect(),
            waiting_threads: None,
            waiting_in_pools: Vec::new(),
        });
        &self.run.series[self.run.series.len() - 1]
    }

    /// A thread of a client had a CPU so long after it could continue.
    pub(super) fn woke(&mut self, client: u32, late_ns: u64) {
        let client = &mut self.run.clients[client as usize];
        client.dispatch_latencies.record(late_ns);
    }

    /// The run is over, and the engine knows: compares what the engine charged with the
    /// clocks.
    pub(super) fn compare(&mut self, received_ns: &[u64], charged: &[Usage], quantum_ns: u64) {
        for (received_ns, charged) in received_ns.iter().zip(charged) {
            self.conserves &= charged.received_ns.abs_diff(*received_ns) <= quantum_ns;
        }
    }
}
