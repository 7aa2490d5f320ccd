//! What is measured of real processes: their CPU clocks, what the dispatcher
//! says they are due, and what threads tell of their waits.

use std::collections::BTreeMap;
use std::ops::Range;

use prorata_core::dispatcher::{Dispatcher, Usage};
use prorata_scenario::measure::{
    AbsoluteError, Measured, PointReport, RelativeError, Times, Told, check_value,
};
use prorata_scenario::plan::{Group, client_id, find_clients};

/// Measures a run.
#[derive(Debug)]
pub(super) struct Measures {
    groups: Vec<Group>,
    /// By client.
    pub(super) absolute_errors: Vec<AbsoluteError>,
    pub(super) latencies: Vec<Times>,
    pub(super) pairs: Vec<RelativeError>,
    pub(super) told: Told,
    pub(super) series: Vec<PointReport>,
    /// CPU time received by each client at the times that assertions speak of.
    marks: BTreeMap<u64, Vec<u64>>,
    /// At the last look: by the processes' clocks.
    received_ns: Vec<u64>,
    /// At the last look: by the account of whoever decides.
    usages: Vec<Usage>,
    /// No value has come or gone, nor, in the end, any CPU time.
    conserves: bool,
}

impl Measures {
    pub(super) fn new(groups: &[Group], pairs: &[(u32, u32)]) -> Measures {
        let clients = groups.last().map_or(0, |group| group.clients.end) as usize;
        Measures {
            groups: groups.to_vec(),
            absolute_errors: vec![AbsoluteError::default(); clients],
            latencies: vec![Times::default(); clients],
            pairs: pairs.iter().map(|pair| RelativeError::new(*pair)).collect(),
            told: Told::default(),
            series: Vec::new(),
            marks: BTreeMap::from([(0, vec![0; clients])]),
            received_ns: vec![0; clients],
            usages: Vec::new(),
            conserves: true,
        }
    }

    /// Looks at what everybody has received and is due. Errors are the largest
    /// of all looks: what lies between two is not seen.
    pub(super) fn look(
        &mut self,
        received_ns: &[u64],
        usages: Vec<Usage>,
        dispatcher: &Dispatcher,
    ) {
        let quantum_ns = dispatcher.quantum_ns();
        for (error, usage) in self.absolute_errors.iter_mut().zip(&usages) {
            error.note(*usage, quantum_ns);
        }
        self.usages = usages;
        let ledger = dispatcher.ledger();
        for pair in &mut self.pairs {
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

    /// A time that an assertion speaks of has come.
    pub(super) fn mark(&mut self, time_ns: u64) {
        self.marks.insert(time_ns, self.received_ns.clone());
    }

    /// What each client had received when all was over.
    pub(super) fn received_at_end_ns(&self, end_ns: u64) -> &[u64] {
        self.marks.get(&end_ns).unwrap_or(&self.received_ns)
    }

    /// A point of the time series.
    pub(super) fn sample(&mut self, time_ns: u64) -> &PointReport {
        let specified = self.usages.iter().map(|usage| usage.specified_ns);
        let point = PointReport {
            time_ns,
            received_ns: self.received_ns.clone(),
            specified_ns: specified.collect(),
            relative_errors: self.pairs.iter().map(|pair| pair.last).collect(),
            waiting_threads: None,
            waiting_in_pools: Vec::new(),
        };
        self.series.push(point);
        &self.series[self.series.len() - 1]
    }

    /// A thread of a client had a CPU so long after it could go on.
    pub(super) fn woke(&mut self, client: u32, late_ns: u64) {
        self.latencies[client as usize].record(late_ns);
    }

    /// All is over, and the engine knows of it: compares what it charged with
    /// what the clocks show.
    pub(super) fn compare(&mut self, received_ns: &[u64], charged: &[Usage], quantum_ns: u64) {
        for (received_ns, charged) in received_ns.iter().zip(charged) {
            self.conserves &= charged.received_ns.abs_diff(*received_ns) <= quantum_ns;
        }
    }
}

impl Measured for Measures {
    fn find_clients(&self, name: &str) -> Option<Range<u32>> {
        find_clients(&self.groups, name)
    }

    fn client_count(&self) -> u32 {
        self.received_ns.len() as u32
    }

    fn received_ns_at(&self, time_ns: u64, client: u32) -> u64 {
        let at = self.marks.get(&time_ns);
        at.map_or(0, |received_ns| received_ns[client as usize])
    }

    fn absolute_error(&self, client: u32) -> Option<f64> {
        Some(self.absolute_errors[client as usize].largest)
    }

    fn relative_errors(&self) -> Option<&[RelativeError]> {
        Some(&self.pairs)
    }

    fn dispatch_latencies(&self, client: u32) -> Option<&Times> {
        Some(&self.latencies[client as usize])
    }

    fn response_times(&self, _: u32) -> Option<&Times> {
        // When a turn ends only the engine knows.
        None
    }

    fn conserves(&self) -> Option<bool> {
        Some(self.conserves)
    }
}
