//! Verdicts: whether the measures are as the scenario asserts.

use std::ops::Range;

use serde::Serialize;

use super::{ClientMeasures, ClientSlots, Ran, Times};
use crate::file::{Assertion, CountBound, LengthBound, Time, TimeBound};
use crate::plan::find_clients;

/// An assertion with the measured figure.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Verdict {
    /// The assertion in words.
    pub assertion: String,
    /// The measured figure; nothing if there was nothing to measure, and then the assertion
    /// does not hold.
    pub measured: Option<f64>,
    /// The unit of the measured figure.
    pub unit: &'static str,
    /// Whether the engine can judge the assertion. If not, `holds` is false.
    pub judged: bool,
    /// Whether the assertion holds.
    pub holds: bool,
}

impl Verdict {
    /// Whether the engine judged the assertion, and it does not hold.
    pub fn fails(&self) -> bool {
        self.judged && !self.holds
    }
}

/// All assertions of a scenario against a run of it.
pub(super) fn judge(ran: &Ran<'_>) -> Vec<Verdict> {
    let assertions = ran.scenario.assertions.iter();
    let judge = Judge { ran };
    assertions
        .map(|assertion| judge.verdict(assertion))
        .collect()
}

struct Judge<'a> {
    ran: &'a Ran<'a>,
}

impl Judge<'_> {
    fn verdict(&self, assertion: &Assertion) -> Verdict {
        if let Some(verdict) = self.slot_verdict(assertion) {
            return verdict;
        }
        match assertion {
            Assertion::Share(share) => {
                let span = self.span(share.from, share.to);
                let all_clients = 0..self.ran.service_ns.len() as u32;
                let total = self.received_ns(all_clients, &span);
                let received = self.received_ns(self.clients(&share.client), &span);
                verdict(
                    format!(
                        "share of {} is {} within {}",
                        share.client, share.is, share.within
                    ),
                    quotient(received, total),
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
                let times = self.times(bound, |client| &client.dispatch_latencies);
                percentile("dispatch latency", bound, times)
            }
            Assertion::ResponseTime(bound) => {
                if !self.ran.sees_turns {
                    return Verdict {
                        judged: false,
                        ..percentile("response time", bound, None)
                    };
                }
                let times = self.times(bound, |client| &client.response_times);
                percentile("response time", bound, times)
            }
            Assertion::Conservation(wanted) => {
                let conserves = (self.ran.conserves)();
                verdict(
                    "value and CPU time are conserved".to_owned(),
                    Some(f64::from(u8::from(conserves))),
                    "(1 if so)",
                    |_| conserves == *wanted,
                )
            }
            _ => unreachable!("judged as one on the timetable"),
        }
    }

    /// An assertion on the timetable; not judged by an engine without one, nor by one that does
    /// not measure the figure.
    fn slot_verdict(&self, assertion: &Assertion) -> Option<Verdict> {
        let worst = |client: &str, of: fn(&ClientSlots) -> u64| {
            let slots = self.ran.measures.slots.as_ref()?;
            let clients = self.clients(client).map(|client| client as usize);
            let most = clients.map(|client| of(&slots.clients[client])).max();
            most.map(|most| most as f64)
        };
        let count = |what: &str, bound: &CountBound, of| {
            let CountBound { client, at_most } = bound;
            verdict(
                format!("{what} of {client} are at most {at_most}"),
                worst(client, of),
                "",
                |measured| measured <= *at_most as f64,
            )
        };
        let length = |what: &str, bound: &LengthBound, of| {
            let LengthBound { client, at_most } = bound;
            verdict(
                format!("{what} of {client} is at most {at_most}"),
                worst(client, of),
                "ns",
                |measured| measured <= at_most.0 as f64,
            )
        };
        let slots = self.ran.measures.slots.as_ref();
        let verdict = match assertion {
            Assertion::SlotLateness(bound) => {
                let mut all = Times::default();
                let clients = self.clients(&bound.client).map(|client| client as usize);
                let times = |client: usize| slots.map(|slots| &slots.clients[client].lateness);
                clients.filter_map(times).for_each(|times| all.merge(times));
                let measured = all.percentile_ns(bound.percentile);
                percentile("slot lateness", bound, measured.map(|ns| ns as f64))
            }
            Assertion::Missed(bound) => count("missed slots", bound, |client| client.missed),
            Assertion::Revocations(bound) => {
                count("revoked claims", bound, |client| client.revocations)
            }
            Assertion::GangSkew(bound) => length("gang skew", bound, |client| client.skew_ns),
            Assertion::Blackout(bound) => length("blackout", bound, |client| client.blackout_ns),
            Assertion::TokensConserved(wanted) => verdict(
                "tokens are conserved".to_owned(),
                slots.map(|slots| f64::from(u8::from(slots.tokens_conserved))),
                "(1 if so)",
                |measured| (measured == 1.0) == *wanted,
            ),
            _ => return None,
        };
        let judged = slots.is_some_and(|slots| match assertion {
            Assertion::SlotLateness(_) | Assertion::GangSkew(_) | Assertion::Blackout(_) => {
                slots.sees_slots
            }
            Assertion::Missed(_) => slots.counts_missed,
            _ => true,
        });
        let holds = judged && verdict.holds;
        Some(Verdict {
            judged,
            measured: verdict.measured.filter(|_| judged),
            holds,
            ..verdict
        })
    }

    fn clients(&self, name: &str) -> Range<u32> {
        find_clients(self.ran.groups, name).unwrap_or(0..0)
    }

    fn span(&self, from: Option<Time>, to: Option<Time>) -> Range<u64> {
        from.map_or(0, |time| time.0)..to.map_or(self.ran.scenario.duration.0, |time| time.0)
    }

    fn received_ns(&self, clients: Range<u32>, span: &Range<u64>) -> u64 {
        let received = clients.map(|client| {
            let at = |time_ns| self.ran.measures.received_ns_at(time_ns, client);
            at(span.end) - at(span.start)
        });
        received.sum()
    }

    fn measures(&self, name: &str) -> impl Iterator<Item = &ClientMeasures> {
        let clients = self.clients(name).map(|client| client as usize);
        clients.map(|client| &self.ran.measures.clients[client])
    }

    fn absolute_error(&self, client: &str) -> Option<f64> {
        let errors = self.measures(client).map(|c| c.absolute_error.largest);
        errors.reduce(f64::max)
    }

    fn relative_error(&self, first: &str, second: &str) -> Option<f64> {
        let clients = (self.clients(first).start, self.clients(second).start);
        let mut pairs = self.ran.measures.pairs.iter();
        let pair = pairs.find(|pair| pair.clients == clients);
        pair.map(|pair| pair.largest)
    }

    /// A percentile of the times of all copies together.
    fn times(&self, bound: &TimeBound, of: impl Fn(&ClientMeasures) -> &Times) -> Option<f64> {
        let mut all = Times::default();
        self.measures(&bound.client)
            .for_each(|client| all.merge(of(client)));
        let measured = all.percentile_ns(bound.percentile);
        measured.map(|time_ns| time_ns as f64)
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
        judged: true,
        holds: measured.is_some_and(holds),
    }
}

fn percentile(what: &str, bound: &TimeBound, measured: Option<f64>) -> Verdict {
    let TimeBound {
        client,
        percentile,
        at_most,
    } = bound;
    verdict(
        format!("{what} of {client}, percentile {percentile}, is at most {at_most}"),
        measured,
        "ns",
        |measured| measured <= at_most.0 as f64,
    )
}

fn quotient(first: u64, second: u64) -> Option<f64> {
    (second > 0).then(|| first as f64 / second as f64)
}
