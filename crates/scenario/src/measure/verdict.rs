//! Whether what was measured is what the scenario asserts.

use std::ops::Range;

use serde::Serialize;

use super::{RelativeError, Times};
use crate::file::{Assertion, Scenario, Time, TimeBound};

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
    /// Whether the engine can tell. If not, nothing is said of the assertion,
    /// and `holds` is false.
    pub judged: bool,
    /// Whether the assertion holds.
    pub holds: bool,
}

impl Verdict {
    /// Whether the engine can tell that the assertion does not hold.
    pub fn fails(&self) -> bool {
        self.judged && !self.holds
    }
}

/// What an engine measured in a run that is over. Where it gives nothing, it
/// does not measure that.
pub trait Measured {
    /// The numbers of a client's copies, or of the one copy of that name.
    fn find_clients(&self, name: &str) -> Option<Range<u32>>;

    /// Number of clients.
    fn client_count(&self) -> u32;

    /// CPU time that a client had received at a time that an assertion speaks
    /// of, or at the end.
    fn received_ns_at(&self, time_ns: u64, client: u32) -> u64;

    /// A client's largest absolute error, in quanta.
    fn absolute_error(&self, client: u32) -> Option<f64>;

    /// The largest relative error of each pair that the scenario asks for.
    fn relative_errors(&self) -> Option<&[RelativeError]>;

    /// From a wake, or a start, to the CPU.
    fn dispatch_latencies(&self, client: u32) -> Option<&Times>;

    /// From the end of one turn to the end of the next.
    fn response_times(&self, client: u32) -> Option<&Times>;

    /// Whether no value and no CPU time came or went.
    fn conserves(&self) -> Option<bool>;
}

/// All assertions of a scenario against a run of it that is over.
pub fn judge(scenario: &Scenario, measured: &impl Measured) -> Vec<Verdict> {
    let judge = Judge {
        measured,
        end_ns: scenario.duration.0,
    };
    let verdicts = scenario.assertions.iter();
    verdicts.map(|assertion| judge.verdict(assertion)).collect()
}

struct Judge<'a, M> {
    measured: &'a M,
    end_ns: u64,
}

/// What there is to compare an assertion with.
enum Reading {
    /// The engine does not measure it.
    Unknown,
    /// What it measured, if there was anything to measure.
    Known(Option<f64>),
}

impl<M: Measured> Judge<'_, M> {
    fn verdict(&self, assertion: &Assertion) -> Verdict {
        match assertion {
            Assertion::Share(share) => {
                let span = self.span(share.from, share.to);
                let total = self.received_ns(0..self.measured.client_count(), &span);
                let received = self.received_ns(self.clients(&share.client), &span);
                verdict(
                    format!(
                        "share of {} is {} within {}",
                        share.client, share.is, share.within
                    ),
                    Reading::Known(quotient(received, total)),
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
                    Reading::Known(measured),
                    "to 1",
                    |measured| (measured / ratio.is - 1.0).abs() <= ratio.within,
                )
            }
            Assertion::AbsoluteError(bound) => verdict(
                format!(
                    "absolute error of {} is at most {}",
                    bound.client, bound.at_most
                ),
                self.absolute_error(&bound.client),
                "quanta",
                |measured| measured <= bound.at_most,
            ),
            Assertion::RelativeError(bound) => {
                let (first, second) = &bound.of;
                verdict(
                    format!(
                        "relative error of {first} and {second} is at most {}",
                        bound.at_most
                    ),
                    self.relative_error(first, second),
                    "quanta",
                    |measured| measured <= bound.at_most,
                )
            }
            Assertion::DispatchLatency(bound) => {
                let times = self.times(bound, |client| self.measured.dispatch_latencies(client));
                percentile("dispatch latency", bound, times)
            }
            Assertion::ResponseTime(bound) => {
                let times = self.times(bound, |client| self.measured.response_times(client));
                percentile("response time", bound, times)
            }
            Assertion::Conservation(wanted) => {
                let conserves = self.measured.conserves();
                let reading = conserves.map_or(Reading::Unknown, |conserves| {
                    Reading::Known(Some(f64::from(u8::from(conserves))))
                });
                verdict(
                    "value and CPU time are conserved".to_owned(),
                    reading,
                    "(1 if so)",
                    |_| conserves == Some(*wanted),
                )
            }
        }
    }

    fn clients(&self, name: &str) -> Range<u32> {
        self.measured.find_clients(name).unwrap_or(0..0)
    }

    fn span(&self, from: Option<Time>, to: Option<Time>) -> Range<u64> {
        from.map_or(0, |time| time.0)..to.map_or(self.end_ns, |time| time.0)
    }

    fn received_ns(&self, clients: Range<u32>, span: &Range<u64>) -> u64 {
        let received = clients.map(|client| {
            let at = |time_ns| self.measured.received_ns_at(time_ns, client);
            at(span.end) - at(span.start)
        });
        received.sum()
    }

    fn absolute_error(&self, client: &str) -> Reading {
        let errors = self
            .clients(client)
            .map(|c| self.measured.absolute_error(c));
        let errors: Option<Vec<f64>> = errors.collect();
        errors.map_or(Reading::Unknown, |errors| {
            Reading::Known(errors.into_iter().reduce(f64::max))
        })
    }

    fn relative_error(&self, first: &str, second: &str) -> Reading {
        let clients = (self.clients(first).start, self.clients(second).start);
        let errors = self.measured.relative_errors();
        errors.map_or(Reading::Unknown, |errors| {
            let pair = errors.iter().find(|pair| pair.clients == clients);
            Reading::Known(pair.map(|pair| pair.largest))
        })
    }

    /// A percentile of the times of all copies together.
    fn times<'b>(&self, bound: &TimeBound, of: impl Fn(u32) -> Option<&'b Times>) -> Reading {
        let mut all = Times::default();
        for client in self.clients(&bound.client) {
            match of(client) {
                Some(times) => all.merge(times),
                None => return Reading::Unknown,
            }
        }
        let measured = all.percentile_ns(bound.percentile);
        Reading::Known(measured.map(|time_ns| time_ns as f64))
    }
}

fn verdict(
    assertion: String,
    reading: Reading,
    unit: &'static str,
    holds: impl FnOnce(f64) -> bool,
) -> Verdict {
    let (judged, measured) = match reading {
        Reading::Unknown => (false, None),
        Reading::Known(measured) => (true, measured),
    };
    Verdict {
        assertion,
        measured,
        unit,
        judged,
        holds: measured.is_some_and(holds),
    }
}

fn percentile(what: &str, bound: &TimeBound, times: Reading) -> Verdict {
    let TimeBound {
        client,
        percentile,
        at_most,
    } = bound;
    verdict(
        format!("{what} of {client}, percentile {percentile}, is at most {at_most}"),
        times,
        "ns",
        |measured| measured <= at_most.0 as f64,
    )
}

fn quotient(first: u64, second: u64) -> Option<f64> {
    (second > 0).then(|| first as f64 / second as f64)
}
