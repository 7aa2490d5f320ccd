//! Whether what was measured is what the scenario asserts.

use std::ops::Range;

use serde::Serialize;

use super::{Measures, Times};
use crate::machine::Machine;
use crate::scenario::{Assertion, Scenario, Time};

/// An assertion with what was measured.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Verdict {
    /// The assertion in words.
    pub assertion: String,
    /// What was measured; nothing if there was nothing to measure, which
    /// holds for no assertion.
    pub measured: Option<f64>,
    /// In what the measured figure is counted.
    pub unit: &'static str,
    /// Whether the assertion holds.
    pub holds: bool,
}

/// All assertions of a scenario against a run of it that is over.
pub fn judge(scenario: &Scenario, machine: &Machine, measures: &Measures) -> Vec<Verdict> {
    let judge = Judge { machine, measures };
    let verdicts = scenario.assertions.iter();
    verdicts.map(|assertion| judge.verdict(assertion)).collect()
}

struct Judge<'a> {
    machine: &'a Machine,
    measures: &'a Measures,
}

impl Judge<'_> {
    fn verdict(&self, assertion: &Assertion) -> Verdict {
        match assertion {
            Assertion::Share(share) => {
                let span = self.span(share.from, share.to);
                let total = self.received_ns(0..self.machine.client_count(), &span);
                let received = self.received_ns(self.clients(&share.client), &span);
                let measured = quotient(received, total);
                verdict(
                    format!(
                        "share of {} is {} within {}",
                        share.client, share.is, share.within
                    ),
                    measured,
                    "of the CPU time received",
                    |measured| (measured - share.is).abs() <= share.within,
                )
            }
            Assertion::Ratio(ratio) => {
                let span = self.span(ratio.from, ratio.to);
                let (first, second) = &ratio.of;
                let measured = quotient(
                    self.received_ns(self.clients(first), &span),
                    self.received_ns(self.clients(second), &span),
                );
                verdict(
                    format!(
                        "{first} to {second} is {} within {}",
                        ratio.is, ratio.within
                    ),
                    measured,
                    "to 1",
                    |measured| (measured / ratio.is - 1.0).abs() <= ratio.within,
                )
            }
            Assertion::AbsoluteError(bound) => {
                let errors = self.clients(&bound.client).map(|client| {
                    let measures = self.measures.clients().get(client as usize);
                    measures.map_or(0.0, |measures| measures.absolute_error.largest)
                });
                verdict(
                    format!(
                        "absolute error of {} is at most {}",
                        bound.client, bound.at_most
                    ),
                    errors.reduce(f64::max),
                    "quanta",
                    |measured| measured <= bound.at_most,
                )
            }
            Assertion::RelativeError(bound) => {
                let (first, second) = &bound.of;
                let clients = (self.clients(first).start, self.clients(second).start);
                let mut pairs = self.measures.pairs().iter();
                let pair = pairs.find(|pair| pair.clients == clients);
                verdict(
                    format!(
                        "relative error of {first} and {second} is at most {}",
                        bound.at_most
                    ),
                    pair.map(|pair| pair.largest),
                    "quanta",
                    |measured| measured <= bound.at_most,
                )
            }
            Assertion::DispatchLatency(bound) => {
                let name = format!("dispatch latency of {}", bound.client);
                let times = self.times(&bound.client, false);
                percentile(name, &times, bound.percentile, bound.at_most)
            }
            Assertion::ResponseTime(bound) => {
                let name = format!("response time of {}", bound.client);
                let times = self.times(&bound.client, true);
                percentile(name, &times, bound.percentile, bound.at_most)
            }
            Assertion::Conservation(wanted) => {
                let balances = self.machine.check().is_ok();
                verdict(
                    "value and CPU time are conserved".to_owned(),
                    Some(f64::from(u8::from(balances))),
                    "(1 if so)",
                    |_| balances == *wanted,
                )
            }
        }
    }

    fn clients(&self, name: &str) -> Range<u32> {
        self.machine.find_clients(name).unwrap_or(0..0)
    }

    fn span(&self, from: Option<Time>, to: Option<Time>) -> Range<u64> {
        let end_ns = self.machine.end_ns();
        from.map_or(0, |time| time.0)..to.map_or(end_ns, |time| time.0)
    }

    fn received_ns(&self, clients: Range<u32>, span: &Range<u64>) -> u64 {
        let received = clients.map(|client| {
            let at = |time_ns| self.measures.received_ns_at(time_ns, client);
            at(span.end) - at(span.start)
        });
        received.sum()
    }

    fn times(&self, name: &str, response: bool) -> Times {
        let mut all = Times::default();
        for client in self.clients(name) {
            if let Some(measures) = self.measures.clients().get(client as usize) {
                let times = if response {
                    &measures.response_times
                } else {
                    &measures.dispatch_latencies
                };
                all.merge(times);
            }
        }
        all
    }
}

fn verdict(
    assertion: String,
    measured: Option<f64>,
    unit: &'static str,
    holds: impl FnOnce(f64) -> bool,
) -> Verdict {
    Verdict {
        assertion,
        measured,
        unit,
        holds: measured.is_some_and(holds),
    }
}

fn percentile(name: String, times: &Times, percentile: f64, at_most: Time) -> Verdict {
    let measured = times
        .percentile_ns(percentile)
        .map(|time_ns| time_ns as f64);
    verdict(
        format!("{name}, percentile {percentile}, is at most {at_most}"),
        measured,
        "ns",
        |measured| measured <= at_most.0 as f64,
    )
}

fn quotient(first: u64, second: u64) -> Option<f64> {
    (second > 0).then(|| first as f64 / second as f64)
}
