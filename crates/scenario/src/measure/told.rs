//! Waiting times of threads and refusals of the ledger, as events tell them. The same for
//! simulated threads and real ones.

use std::collections::BTreeMap;

use super::{Times, WaitReport};
use crate::event::Event;

/// Most refusals that are kept.
const REFUSALS: usize = 16;

/// By mutex or service, and client.
type Waits = BTreeMap<(u32, u32), Times>;

/// Waiting times at mutexes, times of calls, and refusals.
#[derive(Debug, Default)]
pub struct Told {
    mutex_waits: Waits,
    call_times: Waits,
    refused: Vec<String>,
}

impl Told {
    /// Notes an event of these kinds; ignores all others.
    pub fn note(&mut self, event: Event<'_>) {
        match event {
            Event::Acquired {
                client,
                mutex,
                waited_ns,
                ..
            } => self
                .mutex_waits
                .entry((mutex, client))
                .or_default()
                .record(waited_ns),
            Event::Answered {
                client,
                service,
                took_ns,
            } => self
                .call_times
                .entry((service, client))
                .or_default()
                .record(took_ns),
            Event::Refused { error } if self.refused.len() < REFUSALS => {
                self.refused.push(error.to_string());
            }
            Event::SlotsRefused { why } if self.refused.len() < REFUSALS => {
                self.refused.push(why.to_owned());
            }
            _ => {}
        }
    }

    /// Waiting times for each mutex and each client that acquired it. `names` are in the
    /// order of the mutexes' numbers.
    pub fn mutexes<'a>(
        &self,
        names: impl Iterator<Item = &'a str>,
        client_name: impl Fn(u32) -> String,
    ) -> Vec<WaitReport> {
        reports(&self.mutex_waits, names, client_name)
    }

    /// Times from call to reply for each service and each client that called it. `names`
    /// are in the order of the services' numbers.
    pub fn services<'a>(
        &self,
        names: impl Iterator<Item = &'a str>,
        client_name: impl Fn(u32) -> String,
    ) -> Vec<WaitReport> {
        reports(&self.call_times, names, client_name)
    }

    /// The first few refusals of the ledger and the timetable.
    pub fn refused(&self) -> &[String] {
        &self.refused
    }
}

fn reports<'a>(
    waits: &Waits,
    names: impl Iterator<Item = &'a str>,
    client_name: impl Fn(u32) -> String,
) -> Vec<WaitReport> {
    let names: Vec<&str> = names.collect();
    let reports = waits.iter().map(|(&(number, client), times)| WaitReport {
        name: names[number as usize].to_owned(),
        client: client_name(client),
        times: times.summary(),
    });
    reports.collect()
}
