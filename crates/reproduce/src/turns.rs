//! TurnLog of a simulation, looked at one by one.

use std::collections::BTreeMap;

use prorata_scenario::event::Event;
use prorata_sim::{Machine, Observer};

#[derive(Clone, Default, Debug)]
pub(crate) struct TurnLog {
    /// In order.
    pub all: Vec<Turn>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Turn {
    pub client: u32,
    /// Zero until it ends.
    pub used_ns: u64,
}

impl Observer for TurnLog {
    fn observe(&mut self, _: u64, event: Event<'_>, _: &Machine) {
        match event {
            Event::TurnBegan { client } => self.all.push(Turn { client, used_ns: 0 }),
            Event::TurnEnded { client, used_ns } => {
                let mut turns = self.all.iter_mut().rev();
                if let Some(turn) = turns.find(|turn| turn.client == client) {
                    turn.used_ns = used_ns;
                }
            }
            _ => {}
        }
    }
}

/// The error of one client after each allocation (1995, 2): what it received
/// less what it is specified, the latter advanced by `t/T` every quantum
/// (1995, 5.2). For one CPU.
#[derive(Clone, Debug)]
pub(crate) struct Errors {
    client: u32,
    /// Part of everything that it is due in the present turn.
    share: f64,
    error: f64,
    /// In quanta, by allocation.
    pub all: Vec<f64>,
}

impl Errors {
    pub fn of(client: u32) -> Errors {
        Errors {
            client,
            share: 0.0,
            error: 0.0,
            all: Vec::new(),
        }
    }
}

impl Observer for Errors {
    fn observe(&mut self, _: u64, event: Event<'_>, machine: &Machine) {
        match event {
            Event::TurnBegan { .. } => {
                let ledger = machine.dispatcher().ledger();
                let value = ledger.value(machine.client_id(self.client)).to_f64();
                self.share = value / ledger.active_base_amount() as f64;
            }
            Event::TurnEnded { client, used_ns } => {
                let quanta = used_ns as f64 / machine.spec().quantum.0 as f64;
                let received = f64::from(u8::from(client == self.client));
                self.error += quanta * (received - self.share);
                self.all.push(self.error);
            }
            _ => {}
        }
    }
}

/// Response times: from the end of one turn up to and including the end of
/// another (1995, 5.3).
#[derive(Clone, Default, Debug)]
pub(crate) struct ResponseTimes {
    /// By client.
    clients: Vec<(Option<u64>, Histogram)>,
}

impl ResponseTimes {
    /// Those of one client, in quanta.
    pub fn of(&self, client: u32) -> Histogram {
        let found = self.clients.get(client as usize);
        found.map(|(_, times)| times.clone()).unwrap_or_default()
    }
}

impl Observer for ResponseTimes {
    fn observe(&mut self, now_ns: u64, event: Event<'_>, machine: &Machine) {
        let Event::TurnEnded { client, .. } = event else {
            return;
        };
        let index = client as usize;
        if index >= self.clients.len() {
            self.clients.resize_with(index + 1, Default::default);
        }
        let (last_ns, times) = &mut self.clients[index];
        if let Some(last_ns) = last_ns.replace(now_ns) {
            times.count((now_ns - last_ns) / machine.spec().quantum.0, 1);
        }
    }
}

/// How often each whole number came up.
#[derive(Clone, Default, PartialEq, Debug)]
pub(crate) struct Histogram {
    pub counts: BTreeMap<u64, u64>,
}

impl Histogram {
    pub fn count(&mut self, value: u64, times: u64) {
        *self.counts.entry(value).or_default() += times;
    }

    pub fn add(&mut self, other: &Histogram) {
        let counts = other.counts.iter();
        counts.for_each(|(value, times)| self.count(*value, *times));
    }

    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    fn moment(&self, power: i32, about: f64) -> f64 {
        let terms = self.counts.iter();
        let terms = terms.map(|(value, times)| (*value as f64 - about).powi(power) * *times as f64);
        terms.sum::<f64>() / self.total().max(1) as f64
    }

    pub fn mean(&self) -> f64 {
        self.moment(1, 0.0)
    }

    /// Standard deviation of all there were.
    pub fn deviation(&self) -> f64 {
        self.moment(2, self.mean()).sqrt()
    }

    pub fn shortest(&self) -> u64 {
        self.counts.first_key_value().map_or(0, |(value, _)| *value)
    }

    pub fn longest(&self) -> u64 {
        self.counts.last_key_value().map_or(0, |(value, _)| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_has_the_usual_figures() {
        let mut histogram = Histogram::default();
        for (value, times) in [(2, 1), (4, 3), (5, 2), (7, 1), (9, 1)] {
            histogram.count(value, times);
        }
        assert_eq!((histogram.mean(), histogram.deviation()), (5.0, 2.0));
        assert_eq!((histogram.shortest(), histogram.longest()), (2, 9));
        let mut twice = histogram.clone();
        twice.add(&histogram);
        assert_eq!((twice.total(), twice.mean()), (16, 5.0));
        assert_eq!(Histogram::default().deviation(), 0.0);
    }
}
